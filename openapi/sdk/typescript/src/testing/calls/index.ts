/** Operations of the in-memory service, by method and path. */

import type { Fields } from '../definitions.js';
import { unsupported } from '../problems.js';
import type { MemoryService } from '../service.js';
import { DEFINITION_CALLS } from './definitions.js';
import { GROUP_CALLS } from './groups.js';
import { JOB_CALLS } from './jobs.js';
import type { MemoryRequest, MemoryResult, Operations } from './operations.js';
import { QUEUE_CALLS } from './queues.js';
import { REQUEST_CALLS } from './requests.js';
import { STREAM_CALLS } from './streams.js';
import { TOPIC_CALLS } from './topics.js';

/** All operations: those of one kind precede those of every kind. */
const OPERATIONS: Operations = [
  ...QUEUE_CALLS,
  ...REQUEST_CALLS,
  ...STREAM_CALLS,
  ...TOPIC_CALLS,
  ...GROUP_CALLS,
  ...JOB_CALLS,
  ...DEFINITION_CALLS,
];

const isResult = (value: Fields | MemoryResult): value is MemoryResult => typeof value.status === 'number';

/** Return the result of a request. Throws MemoryProblem. */
export function dispatch(service: MemoryService, request: MemoryRequest): MemoryResult {
  for (const [pattern, handler] of OPERATIONS) {
    const [method, path = ''] = pattern.split(' ');
    const names = method === request.method ? namesIn(path.split('/'), request.words) : undefined;
    if (names === undefined) continue;
    const result = handler(service, request, ...names);
    if (result === undefined) return { status: 204 };
    return isResult(result) ? result : { status: 200, body: result };
  }
  throw unsupported(`${request.method} /${request.words.join('/')}`);
}

function namesIn(pattern: string[], words: string[]): string[] | undefined {
  const fits = pattern.length === words.length && pattern.every((part, place) => part === '*' || part === words[place]);
  return fits ? words.filter((_, place) => pattern[place] === '*') : undefined;
}
