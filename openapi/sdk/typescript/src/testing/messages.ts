/** Messages of an in-memory queue. */

import type { Body } from '../bodies.js';
import { given, shownContent } from './content.js';
import { type Fields, moment } from './definitions.js';

/** State of a stored message. */
export type StoredState = 'ready' | 'delayed' | 'in_flight' | 'dead_lettered';

const RECEIVER = {
  consumer: 'memory',
  principal: 'test',
  protocol: 'rest',
  address: 'memory',
  client: 'millstream-client',
};

/** A message of a queue, in one state. Times are in milliseconds since 1970. */
export class StoredMessage {
  readonly id: string;
  readonly content: Body;
  readonly headers: Record<string, string>;
  readonly group: string;
  readonly dedupId: string;
  readonly priority: number;
  readonly replyTo: string;
  readonly topic: string;
  readonly subject: string;
  readonly route: string;
  readonly key: string;
  readonly hops: number;
  offset = 0;
  sentAt: number;
  dueAt: number;
  expiresAt = 0;
  state: StoredState;
  receiveCount = 0;
  failures = 0;
  crashCount = 0;
  firstReceivedAt = 0;
  wasReceived = false;
  receiptHandle = '';
  reason = '';
  details = '';
  diedAt = 0;
  deadLetter: Fields | undefined;

  constructor(id: string, content: Body, fields: Fields, sentAt: number, dueAt: number) {
    this.id = id;
    this.content = content;
    this.headers = (fields.headers as Record<string, string> | undefined) ?? {};
    this.group = (fields.group as string | undefined) ?? '';
    this.dedupId = (fields.dedup_id as string | undefined) ?? '';
    this.priority = (fields.priority as number | undefined) ?? 0;
    this.replyTo = (fields.reply_to as string | undefined) ?? '';
    this.topic = (fields.topic as string | undefined) ?? '';
    this.subject = (fields.subject as string | undefined) ?? '';
    this.route = (fields.route as string | undefined) ?? '';
    this.key = (fields.key as string | undefined) ?? '';
    this.hops = (fields.hops as number | undefined) ?? 0;
    this.deadLetter = fields.dead_letter as Fields | undefined;
    this.sentAt = sentAt;
    this.dueAt = dueAt;
    this.state = dueAt > sentAt ? 'delayed' : 'ready';
  }

  /** The body as text. */
  get text(): string {
    return this.content.text;
  }

  /** The body as a JSON value. Throws SyntaxError for invalid JSON. */
  json<T = unknown>(): T {
    return this.content.json<T>();
  }

  /** Forget deliveries and failures. */
  reset(): void {
    this.receiveCount = this.failures = this.crashCount = 0;
    this.reason = this.details = '';
  }

  /** Return the message as a receive does. */
  delivered(): Fields {
    const first_received_at = moment(this.firstReceivedAt);
    return {
      ...this.#shown(),
      ...given('topic', this.topic),
      ...given('subject', this.subject),
      ...given('route', this.route),
      ...given('key', this.key),
      ...given('reply_to', this.replyTo),
      receipt_handle: this.receiptHandle,
      first_received_at,
      visible_at: moment(this.dueAt),
    };
  }

  /** Return the message as a list does. */
  browsed(): Fields {
    const isWaiting = this.state === 'delayed' || this.state === 'in_flight';
    const received = { first_received_at: moment(this.firstReceivedAt), last_received_by: RECEIVER };
    return {
      ...this.#shown(),
      state: this.state,
      ...(isWaiting ? { due_at: moment(this.dueAt) } : {}),
      ...(this.receiveCount > 0 ? received : {}),
    };
  }

  /** Return the dead letter as a list does. */
  died(): Fields {
    return { ...this.#shown(), reason: this.reason, died_at: moment(this.diedAt), ...given('details', this.details) };
  }

  #shown(): Fields {
    return {
      id: this.id,
      offset: this.offset,
      ...shownContent('body', this.content),
      ...given('headers', this.headers),
      ...given('group', this.group),
      ...given('dedup_id', this.dedupId),
      ...given('dead_letter', this.deadLetter),
      sent_at: moment(this.sentAt),
      receive_count: this.receiveCount,
      failures: this.failures,
      crash_count: this.crashCount,
    };
  }
}
