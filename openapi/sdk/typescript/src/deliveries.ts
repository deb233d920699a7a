/** What a subscription hands over. */

import { Body } from './bodies.js';
import type { ReceivedMessageOut, RecordOut } from './generated/types.gen.js';

export interface Verdict {
  type: 'ack' | 'nack' | 'release' | 'extend' | 'reject';
  receipt_handles: string[];
  delay_seconds?: number;
  visibility_timeout_seconds?: number;
  reason?: string;
}

/** Where verdicts go. */
export interface Settling {
  settle(verdict: Verdict): Promise<void>;
}

/** A message that was received. Settle it: otherwise others get it when its time is over. */
export class Message extends Body {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly group: string;
  readonly receives: number;
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
    this.receives = told.receives;
    this.failures = told.failures;
    this.sentAt = new Date(told.sent_at);
    this.receiptHandle = told.receipt_handle;
    this.#source = source;
  }

  /** Whether it was acknowledged, or given back. */
  get settled(): boolean {
    return this.#settled;
  }

  /** It is done, and gone. */
  ack(): Promise<void> {
    return this.#end({ type: 'ack', receipt_handles: [this.receiptHandle] });
  }

  /** It failed: again after a delay, or as the queue's back-off says. */
  nack(delaySeconds?: number): Promise<void> {
    return this.#end({
      type: 'nack',
      receipt_handles: [this.receiptHandle],
      ...(delaySeconds === undefined ? {} : { delay_seconds: delaySeconds }),
    });
  }

  /** It was not tried: back at once. */
  release(): Promise<void> {
    return this.#end({ type: 'release', receipt_handles: [this.receiptHandle] });
  }

  /** Never again: to the dead letters. */
  reject(reason = ''): Promise<void> {
    return this.#end({ type: 'reject', receipt_handles: [this.receiptHandle], reason });
  }

  /** Still at work: hide it for so long from now. */
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

/** A record at its place in a stream. */
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

/** Offsets [first, next) of a shard that are gone: 'expired' by retention, or a 'hole' never filled. */
export interface Gap {
  shard: number;
  first: number;
  next: number;
  reason: string;
}
