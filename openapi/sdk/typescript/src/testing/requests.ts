/** Requests of the in-memory service, and their replies. */

import type { Body } from '../bodies.js';
import { randomKey } from '../transport/effects.js';
import { contentOf, given, shownContent } from './content.js';
import { type Clock, type Fields, moment } from './definitions.js';
import { MemoryProblem } from './problems.js';
import type { MemoryQueue } from './queues.js';
import type { RoutedLog } from './topics/routed-log.js';

/** Refusals after which a message is acknowledged nevertheless. */
const FINAL = new Set(['reply_taken', 'reply_too_late']);

interface StoredReply {
  content: Body;
  headers: unknown;
  at: number;
}

interface StoredRequest {
  deadline: number;
  expiresAt: number;
  repliesMax: number;
  replies: StoredReply[];
  keys: Set<string>;
}

/** Requests by their token. */
export class MemoryRequests {
  readonly #now: Clock;
  readonly #requests = new Map<string, StoredRequest>();

  constructor(now: Clock) {
    this.#now = now;
  }

  /** Send a request to a queue; return its token. */
  send(queue: MemoryQueue, fields: Fields): string {
    return this.#ask(fields, queue.isFifo, (message) => queue.send([message]));
  }

  /** Publish a request to a topic; return its token. */
  publish(topic: RoutedLog, fields: Fields): string {
    return this.#ask(fields, topic.isFifo, (message) => topic.accept([message]));
  }

  #ask(fields: Fields, isFifo: boolean, send: (message: Fields) => unknown): string {
    const { timeout_seconds = 20, replies_max = 1, reply_ttl_seconds = 60, wait_seconds: _, ...content } = fields;
    const token = randomKey();
    const dedupId = fields.dedup_id || (isFifo ? token : undefined);
    send({ ...content, dedup_id: dedupId, ttl_seconds: timeout_seconds, reply_to: token });
    const deadline = this.#now() + Number(timeout_seconds) * 1000;
    const expiresAt = deadline + Number(reply_ttl_seconds) * 1000;
    this.#requests.set(token, { deadline, expiresAt, repliesMax: Number(replies_max), replies: [], keys: new Set() });
    return token;
  }

  /** Add a reply; a repeat with the same key adds nothing. */
  reply(token: string, fields: Fields, key: string): void {
    const request = this.#get(token);
    if (key !== '' && request.keys.has(key)) return;
    if (this.#now() >= request.deadline)
      throw new MemoryProblem('reply_too_late', 'The deadline of the request has passed.');
    if (request.replies.length >= request.repliesMax)
      throw new MemoryProblem('reply_taken', 'The request has as many replies as it accepts.');
    request.replies.push({ content: contentOf('body', fields), headers: fields.headers, at: this.#now() });
    request.keys.add(key);
  }

  /** Return the replies so far. */
  replies(token: string): Fields & { complete: boolean } {
    const request = this.#get(token);
    const replies = request.replies.map(({ content, headers, at }) => ({
      ...shownContent('body', content),
      ...given('headers', headers),
      at: moment(at),
    }));
    const isOverdue = this.#now() >= request.deadline;
    const complete = isOverdue || replies.length >= request.repliesMax;
    const timedOut = complete ? { timed_out: isOverdue && replies.length === 0 } : {};
    return { request: token, replies, complete, ...timedOut };
  }

  /** Put the reply of a settlement, if it has one, then settle. */
  settle(queue: MemoryQueue, settlement: Fields): Fields {
    const reply = settlement.reply as (Fields & { request: string }) | null | undefined;
    let refusal: Fields = {};
    if (reply) {
      try {
        this.reply(reply.request, reply, settlement.receipt_handle as string);
      } catch (error) {
        if (!(error instanceof MemoryProblem)) throw error;
        if (!FINAL.has(error.code)) return { status: 'error', error: error.item };
        refusal = { reply_error: error.item };
      }
    }
    const [result = {}] = queue.settle([settlement]);
    return 'error' in result ? result : { ...result, ...refusal };
  }

  #get(token: string): StoredRequest {
    const request = this.#requests.get(token);
    if (request === undefined || this.#now() >= request.expiresAt)
      throw new MemoryProblem('request_not_found', 'The request does not exist.');
    return request;
  }
}
