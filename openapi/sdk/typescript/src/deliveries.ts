/** Received messages and records. */

import { Body, encodedBody } from './bodies.js';
import type { ItemRefused } from './errors.js';
import type { DeadLetterOriginOut, ReceivedMessageOut, RecordOut, SettlementIn } from './generated/types.gen.js';

/** Receiver of settlements. */
export interface Settling {
  /** Settle one delivery; return why its reply was refused, if it was. Throws ItemRefused. */
  settle(settlement: SettlementIn): Promise<ItemRefused | undefined>;
}

/** Options of a reply. */
export interface ReplyOptions {
  headers?: Record<string, string>;
  contentType?: string;
}

/** A received message. Settle it before `visibleAt`; after that it is redelivered. */
export class Message extends Body {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly group: string;
  readonly receiveCount: number;
  /** Number of deliveries that were negatively acknowledged. */
  readonly failures: number;
  readonly sentAt: Date;
  readonly visibleAt: Date;
  readonly receiptHandle: string;
  /** Topic that it was published to; empty for a message that no route brought. */
  readonly topic: string;
  /** Subject in the topic. */
  readonly subject: string;
  /** Route of the topic that brought it. */
  readonly route: string;
  /** Key in the topic; in a FIFO queue it is the `group`. */
  readonly key: string;
  /** If it is a request: what a reply to it names, as in `client.reply`; otherwise empty. */
  readonly replyTo: string;
  /** Why it was dead-lettered to this queue, if it was. */
  readonly deadLetter: DeadLetterOriginOut | undefined;
  #settled = false;
  readonly #source: Settling;

  constructor(fields: ReceivedMessageOut, source: Settling) {
    super(fields.body, fields.body_base64, fields.content_type);
    this.id = fields.id;
    this.headers = fields.headers ?? {};
    this.group = fields.group ?? '';
    this.receiveCount = fields.receive_count;
    this.failures = fields.failures;
    this.sentAt = new Date(fields.sent_at);
    this.visibleAt = new Date(fields.visible_at);
    this.receiptHandle = fields.receipt_handle;
    this.topic = fields.topic ?? '';
    this.subject = fields.subject ?? '';
    this.route = fields.route ?? '';
    this.key = fields.key ?? '';
    this.replyTo = fields.reply_to ?? '';
    this.deadLetter = fields.dead_letter;
    this.#source = source;
  }

  /** @deprecated Former name of `receiveCount`. */
  get receives(): number {
    return this.receiveCount;
  }

  /** Whether the message was settled. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Acknowledge the message, which deletes it. */
  ack(): Promise<void> {
    return this.#end({ receipt_handle: this.receiptHandle, action: 'ack' });
  }

  /**
   * Reply to the request that this message is, and acknowledge it.
   *
   * Throws TypeError if it has no `replyTo`. If no reply is accepted any more, the message is acknowledged and ItemRefused
   * is thrown, with `reply_taken` or `reply_too_late`.
   */
  reply(body: unknown, { headers, contentType }: ReplyOptions = {}): Promise<void> {
    if (this.replyTo === '') throw new TypeError(`Message ${this.id} is not a request: it has no replyTo.`);
    const content = { ...encodedBody('body', body), headers, content_type: contentType };
    return this.#end({ receipt_handle: this.receiptHandle, action: 'ack', reply: { request: this.replyTo, ...content } });
  }

  /** Report a failed attempt: redelivered after a delay or the queue's back-off. `details`: up to 4096 characters. */
  nack(delaySeconds?: number, reason?: string, details?: string): Promise<void> {
    return this.#end({
      receipt_handle: this.receiptHandle,
      action: 'nack',
      delay_seconds: delaySeconds,
      reason,
      details,
    });
  }

  /** Return the message without counting an attempt; it is ready immediately. */
  release(): Promise<void> {
    return this.#end({ receipt_handle: this.receiptHandle, action: 'release' });
  }

  /** Reject the message permanently; it is dead-lettered. `details`, such as a stack: up to 4096 characters. */
  reject(reason?: string, details?: string): Promise<void> {
    return this.#end({ receipt_handle: this.receiptHandle, action: 'reject', reason, details });
  }

  /** Extend the visibility timeout, counted from now. */
  extend(seconds: number): Promise<void> {
    return this.#settle({
      receipt_handle: this.receiptHandle,
      action: 'extend',
      visibility_timeout_seconds: seconds,
    });
  }

  async #settle(settlement: SettlementIn): Promise<void> {
    await this.#source.settle(settlement);
  }

  async #end(settlement: SettlementIn): Promise<void> {
    const replyError = await this.#source.settle(settlement);
    this.#settled = true;
    if (replyError !== undefined) throw replyError;
  }
}

/** A record with its offset. */
export class StreamRecord extends Body {
  /** -1 if only one shard is read. */
  readonly shard: number;
  readonly offset: number;
  readonly key: string;
  /** Of a message that was published to a topic; empty for other records. */
  readonly subject: string;
  readonly headers: Record<string, string>;
  readonly arrivalTime: Date;
  readonly eventTime: Date | undefined;

  constructor(fields: RecordOut, shard = fields.shard ?? -1) {
    super(fields.data, fields.data_base64, fields.content_type);
    this.shard = shard;
    this.offset = fields.offset;
    this.key = fields.key ?? '';
    this.subject = fields.subject ?? '';
    this.headers = fields.headers ?? {};
    this.arrivalTime = new Date(fields.arrival_time);
    this.eventTime = fields.event_time === undefined ? undefined : new Date(fields.event_time);
  }
}

/**
 * Offsets [first, next) of a shard that are not available: 'expired' by retention; 'failover', without a record that was
 * acknowledged; or a 'hole', whose records, if there were any, are lost.
 */
export interface Gap {
  shard: number;
  first: number;
  next: number;
  reason: string;
}

/** Called for offsets that are not available; default: a warning. */
export type OnGap = (gap: Gap) => void;

/** Describe a gap for the log. */
export function gapText({ first, next, shard, reason }: Gap): string {
  return `offsets ${first} to ${next - 1} of shard ${shard} are not available: ${reason}`;
}
