/** Requests to the in-memory service, and what its operations have in common. */

import type { Fields } from '../definitions.js';
import { MemoryProblem } from '../problems.js';
import type { MemoryService } from '../service.js';

/** A request. `words` are the segments of its path below /v1. */
export interface MemoryRequest {
  method: string;
  words: string[];
  query: URLSearchParams;
  headers: Headers;
  text: string;
}

/** Body and status of a response. `waitSeconds`: how long the caller waits for one that is not empty. */
export interface MemoryResult {
  body?: Fields;
  status: number;
  waitSeconds?: number;
}

export type Handler = (service: MemoryService, request: MemoryRequest, ...names: string[]) => Fields | MemoryResult | undefined;

/** Operations by method and path, in which `*` is an argument. */
export type Operations = [string, Handler][];

/** Answers to calls with an idempotency key. */
export type Answers = Map<string, { text: string; result: MemoryResult }>;

/** Return the fields of a request. */
export function bodyOf({ text }: MemoryRequest): Fields {
  return text === '' ? {} : (JSON.parse(text) as Fields);
}

/** Answer a call with an idempotency key once; a repeat gets the same answer. */
export function once(service: MemoryService, request: MemoryRequest, answer: () => MemoryResult): MemoryResult {
  const key = request.headers.get('idempotency-key');
  if (key === null) return answer();
  const place = `${request.words.join('/')} ${key}`;
  const earlier = service.answers.get(place);
  if (earlier === undefined) {
    const result = answer();
    if (!result.body?.failed) service.answers.set(place, { text: request.text, result });
    return result;
  }
  if (earlier.text !== request.text)
    throw new MemoryProblem('idempotency_key_reused', 'The idempotency key was already used with different content.');
  const items = (value: unknown) =>
    Array.isArray(value) ? value.map((item: Fields) => ({ ...item, duplicate: true, ...('routes' in item ? { routes: null } : {}) })) : value;
  const body = Object.fromEntries(Object.entries(earlier.result.body ?? {}).map(([name, value]) => [name, items(value)]));
  return { ...earlier.result, body };
}

/** Return a page; if it is empty, the caller waits for another. */
export function polled({ query }: MemoryRequest, body: Fields): MemoryResult {
  const isEmpty = [body.records, body.gaps].every((list) => !Array.isArray(list) || list.length === 0) && !body.gap;
  return { status: 200, body, waitSeconds: isEmpty ? Number(query.get('wait_seconds') ?? 0) : 0 };
}

/** Return the conditions of a PUT. */
export function putOptions({ headers, query }: MemoryRequest) {
  return { onlyNew: headers.get('if-none-match') === '*', dryRun: query.get('dry_run') === 'true' };
}
