/** In-memory queues: visibility timeouts, attempts, dead letters, FIFO groups, deduplication. */

import { randomKey } from '../transport/effects.js';
import { contentOf } from './content.js';
import { type Clock, Defined, type Fields, moment } from './definitions.js';
import { StoredMessage } from './messages.js';
import { MemoryProblem, invalid, unsupported } from './problems.js';

const DEDUP_WINDOW_MS = 300_000;

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
export class MemoryQueue extends Defined<MemoryQueueConfig> {
  readonly #queueOf: (name: string) => MemoryQueue;
  readonly #stored = new Map<number, StoredMessage>();
  readonly #dedup = new Map<string, { id: string; offset: number; at: number }>();
  readonly #counts: Record<string, number> = {};
  readonly #attempts = new Map<string, string[]>();
  #nextOffset = 0;
  #lastDueAt = 0;

  constructor(name: string, config: MemoryQueueConfig, now: Clock, queueOf: (name: string) => MemoryQueue) {
    super(name, config, now);
    this.#queueOf = queueOf;
  }

  /** Messages in all states but dead letters, by offset. */
  get messages(): StoredMessage[] {
    this.#settleTime();
    return this.#all().filter(({ state }) => state !== 'dead_lettered');
  }

  /** Dead letters, oldest first. */
  get deadLetters(): StoredMessage[] {
    this.#settleTime();
    const dead = this.#all().filter(({ state }) => state === 'dead_lettered');
    return dead.sort((one, other) => one.diedAt - other.diedAt || one.offset - other.offset);
  }

  get #isFifo(): boolean {
    return this.config.type === 'fifo';
  }

  #all(): StoredMessage[] {
    return [...this.#stored.values()];
  }

  #count(name: string): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
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
    if (this.#isFifo && !fields.group) throw invalid('/group', 'A message of a FIFO queue requires a group', 'required');
    if (this.#isFifo && fields.delay_seconds)
      throw invalid('/delay_seconds', 'FIFO queues do not support a delay per message', 'not_supported');
  }

  #send(fields: Fields): Fields {
    const now = this.now();
    const dedupId = this.#dedupId(fields);
    const earlier = this.#dedup.get(dedupId);
    if (dedupId !== '' && earlier !== undefined && now - earlier.at < DEDUP_WINDOW_MS) {
      this.#count('deduplicated');
      return { id: earlier.id, offset: earlier.offset, duplicate: true };
    }
    const message = this.#made(fields, now);
    this.#add(message);
    const { id, offset } = message;
    if (dedupId !== '') this.#dedup.set(dedupId, { id, offset, at: now });
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
    let dueAt = now + 1000 * (this.#isFifo ? this.config.delay_seconds : (own ?? this.config.delay_seconds));
    if (this.#isFifo) dueAt = this.#lastDueAt = Math.max(dueAt, this.#lastDueAt);
    const message = new StoredMessage(randomKey(), contentOf('body', fields), fields, now, dueAt);
    const ttl = (fields.ttl_seconds as number | undefined) || this.config.ttl_seconds;
    message.expiresAt = ttl ? dueAt + ttl * 1000 : 0;
    return message;
  }

  #add(message: StoredMessage): void {
    message.offset = this.#nextOffset++;
    this.#stored.set(message.offset, message);
  }

  // ── Receiving ──

  /** Receive messages that are ready; a repeated attempt on a FIFO queue returns the same. */
  receive(messagesMax: number, visibilityTimeout: number | null | undefined, attemptId = ''): Fields[] {
    this.#settleTime();
    if (this.config.paused) return [];
    const earlier = this.#isFifo && attemptId !== '' ? (this.#attempts.get(attemptId) ?? []) : [];
    const leased = this.#all().filter(({ receiptHandle }) => earlier.includes(receiptHandle));
    if (leased.length > 0 && leased.length === earlier.length) return leased.map((message) => message.delivered());
    const received = this.#received(messagesMax, visibilityTimeout ?? this.config.visibility_timeout_seconds);
    const handles = received.map(({ receiptHandle }) => receiptHandle);
    if (this.#isFifo) this.#attempts.set(attemptId, handles);
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
    const ready = this.#all().filter(({ state }) => state === 'ready');
    if (this.#isFifo) {
      const barred = new Set(this.#all().filter(barsGroup).map(({ group }) => group));
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
    this.#count('receive_count');
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
    this.#stored.delete(message.offset);
    message.reset();
    message.wasReceived = false;
    this.#count('moved_out');
    this.#queueOf(target.queue).#accept(message);
    return true;
  }

  #accept(message: StoredMessage): void {
    this.#count('moved_in');
    this.#add(message);
  }

  // ── Settling ──

  /** Settle deliveries; return one result for each. */
  settle(settlements: Fields[]): Fields[] {
    this.#settleTime();
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
    const message = this.#stored.get(Number(offset));
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
      this.#stored.delete(message.offset);
      this.#count('acknowledged');
      return undefined;
    }
    if (action === 'extend') {
      const timeout = settlement.visibility_timeout_seconds ?? this.config.visibility_timeout_seconds;
      message.dueAt = this.now() + timeout * 1000;
      return message.dueAt;
    }
    if (action !== 'release') Object.assign(message, { failures: message.failures + 1, reason, details });
    if (action === 'reject' || (action === 'nack' && this.#isExhausted(message))) {
      this.#die(message, reason);
      return undefined;
    }
    const backoff = action === 'nack' ? backoffOf(this.config.backoff, message.failures) : 0;
    const delay = action === 'nack' ? (settlement.delay_seconds ?? backoff) : 0;
    this.#return(message, this.now() + delay * 1000);
    return message.dueAt;
  }

  #return(message: StoredMessage, dueAt: number): void {
    message.receiptHandle = '';
    message.dueAt = dueAt;
    message.state = dueAt > this.now() ? 'delayed' : 'ready';
  }

  #isExhausted({ failures, crashCount }: StoredMessage): boolean {
    const most = this.config.attempts_max;
    return most !== null && failures + crashCount >= most;
  }

  #die(message: StoredMessage, reason: string): void {
    Object.assign(message, { receiptHandle: '', state: 'dead_lettered', reason, diedAt: this.now() });
  }

  // ── Time ──

  /** Apply the passing of time. */
  #settleTime(): void {
    const now = this.now();
    for (const message of this.#all()) {
      if (message.state === 'in_flight' && message.dueAt <= now) this.#crashed(message, now);
      else if (message.state === 'delayed' && message.dueAt <= now) message.state = 'ready';
      if (this.#isExpired(message, now)) {
        this.#stored.delete(message.offset);
        this.#count('expired');
      }
    }
  }

  #crashed(message: StoredMessage, now: number): void {
    message.crashCount += 1;
    if (this.#isExhausted(message)) this.#die(message, crashReason(message));
    else this.#return(message, now);
  }

  #isExpired(message: StoredMessage, now: number): boolean {
    if (message.state === 'dead_lettered')
      return message.diedAt + this.config.dead_letter_retention_seconds * 1000 <= now;
    const isOutlived = message.state !== 'in_flight' && message.expiresAt > 0 && message.expiresAt <= now;
    return isOutlived || message.sentAt + this.config.retention_seconds * 1000 <= now;
  }

  // ── Operations ──

  /** Return the counts by state and of deleted messages. */
  stats(): Fields {
    const { messages, deadLetters } = this;
    const counted = ['acknowledged', 'expired', 'purged', 'deduplicated', 'receive_count', 'moved_in', 'moved_out'];
    const zeros = ['moving', 'parked', 'dropped', 'bytes_sent'].map((name) => [name, 0]);
    const ready = messages.filter(({ state }) => state === 'ready').map(({ sentAt }) => sentAt);
    const inState = (state: string) => messages.filter((message) => message.state === state).length;
    return {
      ...Object.fromEntries(zeros),
      ...Object.fromEntries(counted.map((name) => [name, this.#counts[name] ?? 0])),
      ready: ready.length,
      delayed: inState('delayed'),
      in_flight: inState('in_flight'),
      dead_lettered: deadLetters.length,
      sent: this.#nextOffset,
      bytes_held: this.#all().reduce((sum, { content }) => sum + content.size, 0),
      oldest_ready_at: ready.length > 0 ? moment(Math.min(...ready)) : null,
      fenced: false,
      durability: 'memory',
      replication_factor: 1,
      min_insync_replicas: 1,
    };
  }

  /** Return a message or dead letter by id or offset. Throws MemoryProblem. */
  find(identity: string): StoredMessage {
    this.#settleTime();
    const message = this.#all().find(({ id, offset }) => identity === id || identity === String(offset));
    if (message === undefined) throw new MemoryProblem('message_not_found', 'The message is no longer in the queue.');
    return message;
  }

  /** Delete one message in any state. Throws MemoryProblem. */
  deleteMessage(identity: string): void {
    this.#stored.delete(this.find(identity).offset);
    this.#count('purged');
  }

  /** Delete everything but dead letters; return the number. */
  purge(): number {
    const { messages } = this;
    for (const { offset } of messages) {
      this.#stored.delete(offset);
      this.#count('purged');
    }
    this.#dedup.clear();
    return messages.length;
  }

  /** Make dead letters ready again; return their number. */
  redrive(which: Fields): number {
    if (which.per_second) throw unsupported('redrive with per_second');
    const most = (which.messages_max as number | null | undefined) ?? undefined;
    const chosen = this.deadLetters.filter((message) => matches(message, which)).slice(0, most);
    for (const message of chosen) {
      message.reset();
      Object.assign(message, { state: 'ready', sentAt: this.now(), expiresAt: 0 });
    }
    return chosen.length;
  }

  /** Return the dead letters counted by reason. */
  reasons(): Fields[] {
    const times = new Map<string, number[]>();
    for (const { reason, diedAt } of this.deadLetters) times.set(reason, [...(times.get(reason) ?? []), diedAt]);
    return [...times].map(([reason, died]) => ({
      reason,
      count: died.length,
      first_died_at: moment(Math.min(...died)),
      last_died_at: moment(Math.max(...died)),
    }));
  }
}

/** Whether a message keeps its group from being received. */
function barsGroup({ state, wasReceived }: StoredMessage): boolean {
  return state === 'in_flight' || (state === 'delayed' && wasReceived);
}

function crashReason({ crashCount }: StoredMessage): string {
  return `visibility timeout passed ${crashCount} times`;
}

function matches({ id, offset, reason, group }: StoredMessage, which: Fields): boolean {
  const messages = which.messages as string[] | null | undefined;
  const isNamed = !messages || messages.includes(id) || messages.includes(String(offset));
  return isNamed && (!which.reason || which.reason === reason) && (!which.group || which.group === group);
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
