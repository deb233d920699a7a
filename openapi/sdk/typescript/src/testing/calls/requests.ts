/** Operations of requests to queues and topics, and of their replies. */

import type { MemoryService } from '../service.js';
import { type MemoryResult, type Operations, bodyOf, once } from './operations.js';

/** Return the replies to a request; while they are not complete, the caller waits. */
function repliesOf(service: MemoryService, token: string, waitSeconds: number): MemoryResult {
  const body = service.requests.replies(token);
  return body.complete ? { status: 200, body } : { status: 202, body, waitSeconds };
}

export const REQUEST_CALLS: Operations = [
  [
    'POST queues/*/requests',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const fields = bodyOf(request);
      const send = () => ({ request: service.requests.send(queue, fields) });
      const { body } = once(service, request, () => ({ status: 202, body: send() }));
      const wait = request.headers.has('idempotency-key') ? Number(fields.wait_seconds ?? 20) : 0;
      return repliesOf(service, body?.request as string, wait);
    },
  ],
  [
    'POST topics/*/requests',
    (service, request, name = '') => {
      const topic = service.topic(name);
      const fields = bodyOf(request);
      const send = () => ({ request: service.requests.publish(topic, fields) });
      const { body } = once(service, request, () => ({ status: 202, body: send() }));
      const wait = request.headers.has('idempotency-key') ? Number(fields.wait_seconds ?? 20) : 0;
      return repliesOf(service, body?.request as string, wait);
    },
  ],
  [
    'GET requests/*/reply',
    (service, { query }, token = '') => repliesOf(service, token, Number(query.get('wait_seconds') ?? 0)),
  ],
  [
    'POST requests/*/replies',
    (service, request, token = '') => {
      service.requests.reply(token, bodyOf(request), request.headers.get('idempotency-key') ?? '');
      return { status: 201, body: { request: token } };
    },
  ],
];
