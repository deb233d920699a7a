/**
 * Retries where they are safe.
 *
 *   rejected, retryable                       retry, after Retry-After or a delay
 *   no response, or outcome 'unknown'         retry only if a repeat has no further effect
 *   anything else                             return to the caller
 *
 * A call that takes an Idempotency-Key gets one, the same for each attempt.
 */

import { ConnectionFailed, NotMillstream, type Problem, firstContactHint, unreachable } from './errors.js';
import { Reachability } from './reachability.js';
import { REPEATS } from './tables.js';

export interface RetryOptions {
  /** Time limit for retries, from the first failure; 0: one attempt. */
  seconds?: number;
  firstPauseSeconds?: number;
  longestPauseSeconds?: number;
  /** Time limit of a client that has never reached the service; default: 5. */
  firstContactSeconds?: number;
}

const KEY = 'Idempotency-Key';
const GATEWAYS = new Set([502, 503, 504]);
const UNREACHED_PAUSE_S = 0.5;
const FOREIGN_STATUSES = new Set([403, 404, 405]);
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

/** Return the time limit of retries, for a service that this client reached or never reached. */
export function limitOf(options: RetryOptions, isEstablished: boolean): number {
  const seconds = options.seconds ?? 60;
  return isEstablished ? seconds : Math.min(seconds, options.firstContactSeconds ?? 5);
}

/** Return an exponential delay in seconds, with full jitter. A service that was never reached is soon tried again. */
export function backoffOf(options: RetryOptions, failures: number, isEstablished: boolean): number {
  const { firstPauseSeconds = 0.1, longestPauseSeconds = 5 } = options;
  const longest = isEstablished ? longestPauseSeconds : Math.min(longestPauseSeconds, UNREACHED_PAUSE_S);
  return Math.min(longest, firstPauseSeconds * 2 ** Math.min(failures, 16)) * Math.random();
}

/** A `fetch` with retries. Throws ConnectionFailed and NotMillstream. */
export function retrying(
  send: typeof fetch = fetch,
  options: RetryOptions = {},
  service: Reachability = new Reachability(),
): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : await request.arrayBuffer();
    const headers = new Headers(request.headers);
    const repeat = repeatOf(request.method, new URL(request.url).pathname);
    if (repeat?.kind === 'keyed' && !headers.has(KEY)) headers.set(KEY, randomKey());
    const mayRepeat = repeat !== undefined && isRepeatable(repeat, headers, body);

    const started = Date.now();
    let failedSince = 0;
    for (let failures = 0; ; failures++) {
      const attempt = await once(send, request, headers, body);
      if (attempt.response !== undefined) service.established();
      if (!attempt.retryable || (attempt.unknown && !mayRepeat)) return settled(attempt, request.url, service);
      const now = Date.now();
      failedSince ||= now;
      const pause = attempt.after + backoffOf(options, failures, service.isEstablished);
      const limit = limitOf(options, service.isEstablished);
      const deadline = (service.isEstablished ? failedSince : started) + limit * 1000;
      if (now + pause * 1000 > deadline) return settled(attempt, request.url, service);
      service.warn(failureOf(attempt, request.url), failures + 1, `for up to ${limit} s`);
      await sleep(pause, request.signal);
    }
  };
}

interface Attempt {
  response?: Response;
  error?: unknown;
  retryable: boolean;
  unknown: boolean;
  after: number;
}

async function once(
  send: typeof fetch,
  request: Request,
  headers: Headers,
  body: ArrayBuffer | undefined,
): Promise<Attempt> {
  try {
    const { method, signal } = request;
    return await judged(await send(request.url, { method, headers, body, signal }));
  } catch (error) {
    if (request.signal.aborted) throw error;
    return { error, retryable: true, unknown: !isUnsent(error), after: 0 };
  }
}

async function judged(response: Response): Promise<Attempt> {
  if (response.ok || response.status < 400) {
    return { response, retryable: false, unknown: false, after: 0 };
  }
  const after = Math.max(0, Number(response.headers.get('retry-after')) || 0);
  const problem = await problemOf(response.clone());
  if (problem === undefined) {
    // the response is a proxy's; the service may have been reached
    const unknown = GATEWAYS.has(response.status);
    return { response, retryable: unknown || response.status === 429, unknown, after };
  }
  const unknown = problem.outcome === 'unknown';
  return { response, retryable: problem.retryable ?? false, unknown, after };
}

async function problemOf(response: Response): Promise<Problem | undefined> {
  try {
    const told: unknown = await response.json();
    return typeof told === 'object' && told !== null && 'code' in told ? (told as Problem) : undefined;
  } catch {
    return undefined;
  }
}

function isUnsent(error: unknown): boolean {
  return UNSENT.has((error as { cause?: { code?: string } }).cause?.code ?? '');
}

function settled({ response, error, unknown }: Attempt, url: string, service: Reachability): Response {
  const { origin } = new URL(url);
  if (response === undefined) {
    const hint = service.isEstablished ? '' : `. ${firstContactHint(url)}`;
    throw new ConnectionFailed(unreachable(origin, error) + hint, unknown, { cause: error });
  }
  const [contentType = ''] = (response.headers.get('content-type') ?? '').split(';');
  if (isForeign(response, contentType)) throw new NotMillstream(origin, response.status, contentType);
  return response;
}

/** Whether a response is another service's, and not that of a proxy whose service is down. */
function isForeign({ ok, status }: Response, contentType: string): boolean {
  if (!ok) return contentType === 'text/html' && FOREIGN_STATUSES.has(status);
  const isText = contentType.startsWith('text/') && contentType !== 'text/event-stream';
  return status !== 204 && (contentType === '' || isText);
}

function failureOf({ response, error }: Attempt, url: string): string {
  const { origin } = new URL(url);
  return response === undefined ? unreachable(origin, error) : `${origin} answers ${response.status}`;
}

/** An idempotency key. `crypto.randomUUID` exists in secure contexts only. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

interface Repeat {
  kind: string;
  guards: readonly string[];
}

function repeatOf(method: string, path: string): Repeat | undefined {
  const words = path.split('/');
  for (const [told, template, kind, guards] of REPEATS) {
    const names = template.split('/');
    const fits =
      told === method &&
      names.length === words.length &&
      names.every((name, place) => name.startsWith('{') || name === words[place]);
    if (fits) return { kind, guards };
  }
  return undefined;
}

function isRepeatable(repeat: Repeat, headers: Headers, body: ArrayBuffer | undefined): boolean {
  if (repeat.kind === 'keyed') return headers.has(KEY);
  if (repeat.kind !== 'guarded') return repeat.kind === 'safe';
  try {
    const said: unknown = JSON.parse(new TextDecoder().decode(body));
    return repeat.guards.some((name) => Boolean((said as Record<string, unknown>)[name]));
  } catch {
    return false;
  }
}

function sleep(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, seconds * 1000);
    signal.addEventListener('abort', stop, { once: true });
  });
}
