/**
 * Retries where they are safe.
 *
 *   rejected, retryable                       retry, after Retry-After or a delay
 *   no response, or outcome 'unknown'         retry only if a repeat has no further effect
 *   anything else                             return to the caller
 *
 * A call that takes an Idempotency-Key gets one, the same for each attempt.
 */

import type { Problem } from './errors.js';
import { REPEATS } from './tables.js';

export interface RetryOptions {
  /** Time limit for retries, from the first failure; 0: one attempt. */
  seconds?: number;
  firstPauseSeconds?: number;
  longestPauseSeconds?: number;
}

const KEY = 'Idempotency-Key';
const GATEWAYS = new Set([502, 503, 504]);

/** A `fetch` with retries. */
export function retrying(send: typeof fetch = fetch, options: RetryOptions = {}): typeof fetch {
  const seconds = options.seconds ?? 60;
  const first = options.firstPauseSeconds ?? 0.1;
  const longest = options.longestPauseSeconds ?? 5;

  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : await request.arrayBuffer();
    const headers = new Headers(request.headers);
    const repeat = repeatOf(request.method, new URL(request.url).pathname);
    if (repeat?.kind === 'keyed' && !headers.has(KEY)) headers.set(KEY, crypto.randomUUID());
    const mayRepeat = repeat !== undefined && isRepeatable(repeat, headers, body);

    let failedSince = 0;
    for (let failures = 0; ; failures++) {
      const attempt = await once(send, request, headers, body);
      if (!attempt.retryable || (attempt.unknown && !mayRepeat)) return settled(attempt);
      const now = Date.now();
      failedSince ||= now;
      const most = Math.min(longest, first * 2 ** Math.min(failures, 16));
      const pause = attempt.after + most * Math.random();
      if (now + pause * 1000 > failedSince + seconds * 1000) return settled(attempt);
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
    return { error, retryable: true, unknown: true, after: 0 };
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

function settled(attempt: Attempt): Response {
  if (attempt.response === undefined) throw attempt.error;
  return attempt.response;
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
