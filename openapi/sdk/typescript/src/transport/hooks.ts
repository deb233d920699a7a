/** Hooks of each attempt of a call, for metrics, traces and logs. */

import type { Logger } from './settings.js';

/** An attempt that is about to be sent. Headers that a hook sets in `headers` are sent; they contain the API key. */
export interface RequestEvent {
  method: string;
  path: string;
  /** Counts from 1. */
  attempt: number;
  headers: Headers;
}

/** The end of an attempt: a response with its `status`, or an `error` without one. */
export interface ResponseEvent {
  request: RequestEvent;
  durationSeconds: number;
  status?: number;
  requestId: string;
  error?: unknown;
}

/** Functions that are called for each attempt. An error that one throws is logged, and the call continues. */
export interface Hooks {
  onRequest?: ((event: RequestEvent) => void) | undefined;
  onResponse?: ((event: ResponseEvent) => void) | undefined;
}

/** Send a request as one attempt, and report it to the hooks. */
export async function observed(
  { onRequest, onResponse }: Hooks,
  logger: Logger,
  request: RequestEvent,
  send: () => Promise<Response>,
): Promise<Response> {
  if (onRequest === undefined && onResponse === undefined) return send();
  run(onRequest, request, logger);
  const startedAt = performance.now();
  const report = (outcome: { status?: number; error?: unknown }, requestId: string): void => {
    const event = { request, durationSeconds: (performance.now() - startedAt) / 1000, requestId, ...outcome };
    run(onResponse, event, logger);
  };
  let response: Response;
  try {
    response = await send();
  } catch (error) {
    report({ error }, '');
    throw error;
  }
  report({ status: response.status }, response.headers.get('x-request-id') ?? '');
  return response;
}

function run<Event>(hook: ((event: Event) => void) | undefined, event: Event, logger: Logger): void {
  try {
    hook?.(event);
  } catch (error) {
    logger.error('a hook failed', error);
  }
}
