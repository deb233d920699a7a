/** Deliveries of a subscription. */

import { Body } from './bodies.js';
import type { ReceivedMessageOut, RecordOut } from './generated/types.gen.js';

export interface Verdict {
  type: 'ack' | 'nack' | 'release' | 'extend' | 'reject';
  receipt_handles: string[];
  delay_seconds?: number;
  visibility_timeout_seconds?: number;
  reason?: string;
}

/** Receiver of settlements. */
export interface Settling {
  settle(verdict: Verdict): Promise<void>;
}

/** A received message. Settle it; otherwise it is redelivered after its visibility timeout. */
export class Message extends Body {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly group: string;
  readonly receiveCount: number;
  readonly failures: number;
  readonly sentAt: Date;
  readonly receiptHandle: string;
  #settled = false;
  readonly #source: Settling;

  constructor(told: ReceivedMessageOut, source: Settling) {
    super(told.body, told.body_base64, told.content_type);
    this.id = told.id;
    this.headers = told.headers ?? {};
    this.group = told.group ?? '';
    this.receiveCount = told.receive_count;
    this.failures = told.failures;
    this.sentAt = new Date(told.sent_at);
    this.receiptHandle = told.receipt_handle;
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
    return this.#end({ type: 'ack', receipt_handles: [this.receiptHandle] });
  }

  /** Report a failed attempt: redelivered after a delay or the queue's back-off. */
  nack(delaySeconds?: number): Promise<void> {
    return this.#end({
      type: 'nack',
      receipt_handles: [this.receiptHandle],
      ...(delaySeconds === undefined ? {} : { delay_seconds: delaySeconds }),
    });
  }

  /** Return the message without counting an attempt; it is ready immediately. */
  release(): Promise<void> {
    return this.#end({ type: 'release', receipt_handles: [this.receiptHandle] });
  }

  /** Reject the message permanently; it is dead-lettered. */
  reject(reason = ''): Promise<void> {
    return this.#end({ type: 'reject', receipt_handles: [this.receiptHandle], reason });
  }

  /** Extend the visibility timeout, counted from now. */
  extend(seconds: number): Promise<void> {
    return this.#source.settle({
      type: 'extend',
      receipt_handles: [this.receiptHandle],
      visibility_timeout_seconds: seconds,
    });
  }

  async #end(verdict: Verdict): Promise<void> {
    await this.#source.settle(verdict);
    this.#settled = true;
  }
}

/** A record with its offset. */
export class StreamRecord extends Body {
  readonly shard: number;
  readonly offset: number;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly arrivalTime: Date;
  readonly eventTime: Date | undefined;

  constructor(told: RecordOut, shard: number) {
    super(told.data, told.data_base64, told.content_type);
    this.shard = shard;
    this.offset = told.offset;
    this.key = told.key ?? '';
    this.headers = told.headers ?? {};
    this.arrivalTime = new Date(told.arrival_time);
    this.eventTime = told.event_time === undefined ? undefined : new Date(told.event_time);
  }
}

/** Offsets [first, next) of a shard that are not available: 'expired' by retention, or a 'hole' that was never filled. */
export interface Gap {
  shard: number;
  first: number;
  next: number;
  reason: string;
}
