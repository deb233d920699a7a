/** A `fetch` with time limits, and with retries where they are safe. */

import {
  ConnectionFailed,
  type MillstreamError,
  NotMillstream,
  OutcomeUnknown,
  problemOf,
  refusalOf,
} from '../errors.js';
import { Attempts } from './attempts.js';
import { type Effect, effectOf } from './effects.js';
import { type Hooks, observed } from './hooks.js';
import { pageOrigin } from './origins.js';
import type { Reachability } from './reachability.js';
import type { Logger, Retries } from './settings.js';

const FOREIGN_STATUSES = new Set([403, 404, 405]);
const UNSENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const INVALID_CERTIFICATE = /CERT|UNABLE_TO_VERIFY/;
const UNKNOWN_CA = /SELF_SIGNED|UNABLE_TO/;
const CA_HINT = '. Set NODE_EXTRA_CA_CERTS to the file of the CA that signed its certificate';
const JSON_TYPE = /^application\/(.+\+)?json\b/;

/** What a `fetch` with retries needs. */
export interface Retrying {
  fetch: typeof fetch;
  retries: Retries;
  timeoutSeconds: number;
  hooks: Hooks;
  logger: Logger;
  service: Reachability;
}

interface Call {
  request: Request;
  headers: Headers;
  body: ArrayBuffer | undefined;
  effect: Effect;
}

/** A response to return, or a failure with the response that it was made of, if there is one. */
interface Outcome {
  response?: Response;
  failure?: MillstreamError;
  afterSeconds?: number;
}

/** Return a `fetch` with retries, whose calls with an Idempotency-Key get one. Throws MillstreamError. */
export function retrying(options: Retrying): typeof fetch {
  return async (input, init) => {
    const call = await callOf(input instanceof Request && init === undefined ? input : new Request(input, init));
    const { request, effect } = call;
    const attempts = new Attempts(effect.mayRepeat, request.method !== 'GET', options.retries, options.service);
    for (;;) {
      const { response, failure, afterSeconds } = await attempt(call, attempts.number, options);
      if (failure === undefined && response !== undefined) return response;
      const error = failure as MillstreamError;
      const isRepeatedDelete = attempts.mayHaveHappened && request.method === 'DELETE' && error.status === 404;
      if (isRepeatedDelete) return new Response(null, { status: 204, headers: { 'content-type': 'application/json' } });
      const pause = pauseOrResponse(attempts, error, response, afterSeconds);
      if (typeof pause !== 'number') return pause;
      await sleep(pause, request.signal);
    }
  };
}

async function callOf(request: Request): Promise<Call> {
  const body = request.body === null ? undefined : await request.arrayBuffer();
  const headers = new Headers(request.headers);
  return { request, headers, body, effect: effectOf(request, headers, body) };
}

/** Return the seconds until the next attempt, or the rejection for the caller. Throws what is not a rejection. */
function pauseOrResponse(
  attempts: Attempts,
  failure: MillstreamError,
  response: Response | undefined,
  afterSeconds: number | undefined,
): number | Response {
  try {
    return attempts.pauseAfter(failure, afterSeconds);
  } catch (error) {
    if (error === failure && response !== undefined) return response;
    throw error;
  }
}

async function attempt(call: Call, number: number, options: Retrying): Promise<Outcome> {
  const { fetch, timeoutSeconds, hooks, logger, service } = options;
  const { origin, pathname } = new URL(call.request.url);
  const event = { method: call.request.method, path: pathname, attempt: number, headers: call.headers };
  try {
    const send = () => answer(fetch, call, timeoutSeconds + call.effect.waitSeconds);
    const response = await observed(hooks, logger, event, send);
    service.established();
    return await outcomeOf(response, origin);
  } catch (error) {
    if (call.request.signal.aborted || error instanceof NotMillstream) throw error;
    const failure = failureOf(error, origin);
    // with a page, the browser does not show whether there was a connection
    if (failure instanceof OutcomeUnknown && pageOrigin() === undefined) service.established();
    return { failure };
  }
}

class Silence extends Error {}

/** Return a response whose JSON has arrived completely; other bodies are streamed. */
async function answer(send: typeof fetch, call: Call, seconds: number): Promise<Response> {
  const { method, url, signal } = call.request;
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(signal.reason);
  };
  const timer = setTimeout(() => {
    controller.abort(new Silence(`nothing within ${seconds} s`));
  }, seconds * 1000);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  let isStream = false;
  try {
    const init = { method, headers: call.headers, signal: controller.signal };
    const response = await send(url, call.body === undefined ? init : { ...init, body: call.body });
    isStream = response.body !== null && !JSON_TYPE.test(response.headers.get('content-type') ?? '');
    return isStream ? response : await complete(response);
  } catch (error) {
    throw controller.signal.aborted ? (controller.signal.reason as Error) : error;
  } finally {
    clearTimeout(timer);
    if (!isStream) signal.removeEventListener('abort', abort);
  }
}

async function complete(response: Response): Promise<Response> {
  if (response.body === null) return response;
  const { status, statusText, headers } = response;
  return new Response(await response.arrayBuffer(), { status, statusText, headers });
}

async function outcomeOf(response: Response, origin: string): Promise<Outcome> {
  const [contentType = ''] = (response.headers.get('content-type') ?? '').split(';');
  if (isForeign(response, contentType)) throw new NotMillstream(origin, response.status, contentType);
  if (response.status < 400) return { response };
  const afterSeconds = Math.max(0, Number(response.headers.get('retry-after')) || 0);
  const failure = refusalOf(problemOf(response.status, await jsonOf(response.clone())));
  return { response, failure, afterSeconds };
}

async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

/** Whether a response is another service's, and not that of a proxy whose service is down. */
function isForeign({ ok, status }: Response, contentType: string): boolean {
  if (!ok) return contentType === 'text/html' && FOREIGN_STATUSES.has(status);
  const isText = contentType.startsWith('text/') && contentType !== 'text/event-stream';
  return status !== 204 && (contentType === '' || isText);
}

/** Return the error for a call without a response. Nothing was sent only if there was no connection. */
function failureOf(error: unknown, origin: string): MillstreamError {
  const { cause } = error as { cause?: { code?: string; message?: string } };
  const code = cause?.code ?? '';
  const reason = code || (cause?.message ?? (error instanceof Error ? error.message : String(error)));
  if (INVALID_CERTIFICATE.test(code)) {
    const detail = `Cannot reach ${origin}: ${code}${UNKNOWN_CA.test(code) ? CA_HINT : ''}`;
    return new ConnectionFailed(detail, { retryable: false }, { cause: error });
  }
  if (UNSENT.has(code)) return new ConnectionFailed(`Cannot reach ${origin}: ${reason}`, {}, { cause: error });
  return new OutcomeUnknown(`No answer came from ${origin}: ${reason}`, { cause: error });
}

/** Wait. Throws the signal's reason when it is aborted. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
  });
}
