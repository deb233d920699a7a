/** Operations of queues: send, receive and settle messages, and look at them. */

import type { Fields } from '../definitions.js';
import { unsupported } from '../problems.js';
import { type Operations, bodyOf, once } from './operations.js';

/** Refuse a list with conditions: ignoring them would return what was not asked for. */
function refuseFilters(query: URLSearchParams, ...known: string[]): void {
  const conditions = [...query.keys()].filter((name) => !['limit', 'cursor', ...known].includes(name));
  if (conditions.length > 0) throw unsupported(`list of messages by ${conditions.join(', ')}`);
}

export const QUEUE_CALLS: Operations = [
  [
    'POST queues/*/messages',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const send = () => queue.send(bodyOf(request).messages as Fields[]);
      return once(service, request, () => ({ status: 201, body: { messages: send() } }));
    },
  ],
  [
    'POST queues/*/receive',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const { messages_max = 1, visibility_timeout_seconds: timeout, wait_seconds, attempt_id } = bodyOf(request);
      const attempt = attempt_id as string | undefined;
      const messages = queue.receive(messages_max as number, timeout as number | undefined, attempt);
      const wait = (wait_seconds as number | null | undefined) ?? queue.config.receive_wait_seconds;
      return { status: 200, body: { messages }, waitSeconds: messages.length > 0 ? 0 : wait };
    },
  ],
  [
    'POST queues/*/settle',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const settlements = bodyOf(request).settlements as Fields[];
      return { results: settlements.map((settlement) => service.requests.settle(queue, settlement)) };
    },
  ],
  ['GET queues/*/stats', (service, _, name = '') => service.queue(name).stats()],
  [
    'GET queues/*/messages',
    (service, { query }, name = '') => {
      refuseFilters(query, 'state');
      const state = query.get('state');
      const messages = service.queue(name).messages.filter((message) => state === null || message.state === state);
      return { items: messages.map((message) => message.browsed()), next_cursor: null };
    },
  ],
  [
    'GET queues/*/messages/*',
    (service, _, name = '', identity = '') => {
      const message = service.queue(name).find(identity);
      return message.state === 'dead_lettered' ? message.died() : message.browsed();
    },
  ],
  [
    'DELETE queues/*/messages/*',
    (service, _, name = '', identity = '') => {
      service.queue(name).deleteMessage(identity);
      return undefined;
    },
  ],
  ['POST queues/*/purges', (service, _, name = '') => ({ purged: service.queue(name).purge() })],
  [
    'GET queues/*/dead-letters',
    (service, { query }, name = '') => {
      refuseFilters(query);
      return { items: service.queue(name).deadLetters.map((message) => message.died()), next_cursor: null };
    },
  ],
  ['GET queues/*/dead-letters/reasons', (service, _, name = '') => ({ items: service.queue(name).reasons() })],
  [
    'POST queues/*/redrives',
    (service, request, name = '') => ({ redriven: service.queue(name).redrive(bodyOf(request)) }),
  ],
];
