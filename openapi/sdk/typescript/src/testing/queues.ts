/** In-memory queues: visibility timeouts, attempts, dead letters, FIFO groups, deduplication. */

import { randomKey } from '../transport/effects.js';
import { contentOf } from './content.js';
import { Deduplication } from './deduplication.js';
import { type Clock, type Fields, moment } from './definitions.js';
import { MessageStore, crashReason } from './message-store.js';
import { StoredMessage } from './messages.js';
import { MemoryProblem, invalid } from './problems.js';

/** Backoff policy of a queue. */
export interface BackoffPolicy {
  kind: 'fixed' | 'linear' | 'exponential' | 'list';
  initial_seconds: number;
  multiplier: number;
  max_seconds: number;
  delays_seconds: number[];
  jitter: 'none' | 'full' | 'equal';
}

/** Configuration of a queue, with the fields of the REST API. */
export interface MemoryQueueConfig extends Fields {
  type: 'standard' | 'fifo';
  visibility_timeout_seconds: number;
  delay_seconds: number;
  ttl_seconds: number | null;
  retention_seconds: number;
  dead_letter_retention_seconds: number;
  message_bytes_max: number;
  attempts_max: number | null;
  receive_wait_seconds: number;
  deduplicate_by_content: boolean;
  dedup_scope: 'queue' | 'group';
  dead_letters: { queue: string; receives_max: number } | null;
  backoff: BackoffPolicy | null;
  paused: boolean;
}

interface Settling {
  receipt_handle: string;
  action: 'ack' | 'nack' | 'release' | 'extend' | 'reject';
  delay_seconds?: number | null;
  visibility_timeout_seconds?: number | null;
  reason?: string;
  details?: string;
}

/** A queue. */
export class MemoryQueue extends MessageStore {
  readonly #queueOf: (name: string) => MemoryQueue;
  readonly #sent: Deduplication<Fields>;
  readonly #attempts = new Map<string, string[]>();
  #lastDueAt = 0;

  constructor(name: string, config: MemoryQueueConfig, now: Clock, queueOf: (name: string) => MemoryQueue) {
    super(name, config, now);
    this.#queueOf = queueOf;
    this.#sent = new Deduplication(now);
  }

  /** Whether messages of a group are delivered in order. */
  get isFifo(): boolean {
    return this.config.type === 'fifo';
  }

  // ── Sending ──

  /** Send messages, all of them or none. */
  send(messages: Fields[]): Fields[] {
    for (const message of messages) this.#check(message);
    return messages.map((message) => this.#send(message));
  }

  #check(fields: Fields): void {
    if (contentOf('body', fields).size > this.config.message_bytes_max)
      throw new MemoryProblem('message_too_large', 'The message is too large.');
    if (fields.priority && fields.group)
      throw invalid('/priority', 'A message with a group cannot have a priority', 'not_supported');
    if (this.isFifo && !fields.group) throw invalid('/group', 'A message of a FIFO queue requires a group', 'required');
    if (this.isFifo && fields.delay_seconds)
      throw invalid('/delay_seconds', 'FIFO queues do not support a delay per message', 'not_supported');
  }

  #send(fields: Fields): Fields {
    const dedupId = this.#dedupId(fields);
    const earlier = this.#sent.find(dedupId);
    if (earlier !== undefined) {
      this.count('deduplicated');
      return { ...earlier, duplicate: true };
    }
    const message = this.#made(fields, this.now());
    this.add(message);
    const { id, offset } = message;
    this.#sent.add(dedupId, { id, offset });
    return { id, offset, duplicate: false };
  }

  #dedupId(fields: Fields): string {
    const given = (fields.dedup_id as string | undefined) ?? '';
    const byContent = this.config.deduplicate_by_content ? contentOf('body', fields).text : '';
    const id = given === '' ? byContent : given;
    return id !== '' && this.config.dedup_scope === 'group' ? `${String(fields.group)} ${id}` : id;
  }

  #made(fields: Fields, now: number): StoredMessage {
    const own = fields.delay_seconds as number | null | undefined;
    let dueAt = now + 1000 * (this.isFifo ? this.config.delay_seconds : (own ?? this.config.delay_seconds));
    if (this.isFifo) dueAt = this.#lastDueAt = Math.max(dueAt, this.#lastDueAt);
    const message = new StoredMessage(randomKey(), contentOf('body', fields), fields, now, dueAt);
    const ttl = (fields.ttl_seconds as number | undefined) || this.config.ttl_seconds;
    message.expiresAt = ttl ? dueAt + ttl * 1000 : 0;
    return message;
  }

  // ── Receiving ──

  /** Receive messages that are ready; a repeated attempt on a FIFO queue returns the same. */
  receive(messagesMax: number, visibilityTimeout: number | null | undefined, attemptId = ''): Fields[] {
    this.settleTime();
    if (this.config.paused) return [];
    const earlier = this.isFifo && attemptId !== '' ? (this.#attempts.get(attemptId) ?? []) : [];
    const leased = this.all().filter(({ receiptHandle }) => earlier.includes(receiptHandle));
    if (leased.length > 0 && leased.length === earlier.length) return leased.map((message) => message.delivered());
    const received = this.#received(messagesMax, visibilityTimeout ?? this.config.visibility_timeout_seconds);
    const handles = received.map(({ receiptHandle }) => receiptHandle);
    if (this.isFifo) this.#attempts.set(attemptId, handles);
    return received.map((message) => message.delivered());
  }

  #received(messagesMax: number, timeout: number): StoredMessage[] {
    const received: StoredMessage[] = [];
    for (const message of this.#receivable()) {
      if (received.length === messagesMax) break;
      if (!this.#depart(message)) received.push(this.#take(message, timeout));
    }
    return received;
  }

  #receivable(): StoredMessage[] {
    const ready = this.all().filter(({ state }) => state === 'ready');
    if (this.isFifo) {
      const barred = new Set(this.all().filter(barsGroup).map(({ group }) => group));
      return ready.filter(({ group }) => !barred.has(group));
    }
    const rank = (message: StoredMessage) => (message.wasReceived ? 0 : 1);
    return ready.sort(
      (one, other) => other.priority - one.priority || rank(one) - rank(other) || one.offset - other.offset,
    );
  }

  #take(message: StoredMessage, timeout: number): StoredMessage {
    const now = this.now();
    message.state = 'in_flight';
    message.dueAt = now + timeout * 1000;
    message.receiveCount += 1;
    message.wasReceived = true;
    message.firstReceivedAt ||= now;
    message.receiptHandle = `${this.name}:${message.offset}:${randomKey()}`;
    this.count('receive_count');
    return message;
  }

  /** Move a message that was received too often to the dead-letter queue. */
  #depart(message: StoredMessage): boolean {
    const target = this.config.dead_letters;
    if (target === null || message.receiveCount < target.receives_max) return false;
    const counted = message.crashCount > 0 ? crashReason(message) : `received ${message.receiveCount} times`;
    message.deadLetter = {
      source: `queue:${this.name}`,
      reason: message.reason || counted,
      died_at: moment(this.now()),
      failures: message.failures,
      crash_count: message.crashCount,
      last_failure_reason: message.reason,
      details: message.details,
    };
    this.stored.delete(message.offset);
    message.reset();
    message.wasReceived = false;
    this.count('moved_out');
    this.#queueOf(target.queue).#accept(message);
    return true;
  }

  #accept(message: StoredMessage): void {
    this.count('moved_in');
    this.add(message);
  }

  // ── Settling ──

  /** Settle deliveries; return one result for each. */
  settle(settlements: Fields[]): Fields[] {
    this.settleTime();
    return settlements.map((settlement) => {
      try {
        return this.#settle(settlement as unknown as Settling);
      } catch (error) {
        if (error instanceof MemoryProblem) return { status: 'error', error: error.item };
        throw error;
      }
    });
  }

  #settle(settlement: Settling): Fields {
    const message = this.#settled(settlement);
    const visibleAt = message === undefined ? undefined : this.#apply(message, settlement);
    return visibleAt === undefined ? { status: 'ok' } : { status: 'ok', visible_at: moment(visibleAt) };
  }

  #settled({ receipt_handle: handle, action }: Settling): StoredMessage | undefined {
    const [name, offset] = handle.split(':');
    if (name !== this.name || offset === undefined)
      throw new MemoryProblem('receipt_handle_invalid', 'The receipt handle was not issued by this queue.');
    const message = this.stored.get(Number(offset));
    if (message === undefined || message.state === 'dead_lettered') {
      if (action === 'ack') return undefined;
      throw new MemoryProblem('message_not_found', 'The message is no longer in the queue.');
    }
    if (message.receiptHandle !== handle || (message.state !== 'in_flight' && action !== 'ack'))
      throw new MemoryProblem('receipt_handle_expired', 'This receipt handle belongs to an earlier delivery.');
    return message;
  }

  /** Apply a settlement; return when the message is visible. */
  #apply(message: StoredMessage, settlement: Settling): number | undefined {
    const { action, reason = '', details = '' } = settlement;
    if (action === 'ack') {
      this.stored.delete(message.offset);
      this.count('acknowledged');
      return undefined;
    }
    if (action === 'extend') {
      const timeout = settlement.visibility_timeout_seconds ?? this.config.visibility_timeout_seconds;
      message.dueAt = this.now() + timeout * 1000;
      return message.dueAt;
    }
    if (action !== 'release') Object.assign(message, { failures: message.failures + 1, reason, details });
    if (action === 'reject' || (action === 'nack' && this.isExhausted(message))) {
      this.die(message, reason);
      return undefined;
    }
    const backoff = action === 'nack' ? backoffOf(this.config.backoff, message.failures) : 0;
    const delay = action === 'nack' ? (settlement.delay_seconds ?? backoff) : 0;
    this.release(message, this.now() + delay * 1000);
    return message.dueAt;
  }

  /** Delete everything but dead letters, and the deduplication ids; return the number. */
  override purge(): number {
    this.#sent.clear();
    return super.purge();
  }

  // ── Routes ──

  /** Return the ready messages in order, for its routes; none while it is paused. */
  transferable(): StoredMessage[] {
    this.settleTime();
    return this.config.paused ? [] : this.#receivable();
  }

  /** Remove a message that the topic of its routes has. */
  clear(message: StoredMessage): void {
    this.stored.delete(message.offset);
    this.count('moved_out');
  }

  /** Make a message that no route takes a dead letter. */
  reject(message: StoredMessage, reason: string): void {
    this.die(message, reason);
  }
}

/** Whether a message keeps its group from being received. */
function barsGroup({ state, wasReceived }: StoredMessage): boolean {
  return state === 'in_flight' || (state === 'delayed' && wasReceived);
}

/** Return the delay in seconds after a failure whose consumer specifies none. */
function backoffOf(policy: BackoffPolicy | null, failures: number): number {
  if (policy === null) return 0;
  const { kind, initial_seconds: first, delays_seconds: delays } = policy;
  const growth = {
    fixed: () => first,
    linear: () => first * failures,
    exponential: () => first * policy.multiplier ** (failures - 1),
    list: () => delays[Math.min(failures, delays.length) - 1] ?? 0,
  };
  const delay = Math.min(growth[kind](), policy.max_seconds);
  const chance = Math.random();
  return { none: delay, full: delay * chance, equal: (delay / 2) * (1 + chance) }[policy.jitter];
}
