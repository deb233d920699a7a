/** Stored messages of an in-memory queue: states, expiry, counts, and redrives. */

import { Defined, type Fields, moment } from './definitions.js';
import type { StoredMessage } from './messages.js';
import { MemoryProblem, unsupported } from './problems.js';
import type { MemoryQueueConfig } from './queues.js';

/** Messages of a queue by offset, each in one state. */
export class MessageStore extends Defined<MemoryQueueConfig> {
  protected readonly stored = new Map<number, StoredMessage>();
  readonly #counts: Record<string, number> = {};
  #nextOffset = 0;

  /** Messages in all states but dead letters, by offset. */
  get messages(): StoredMessage[] {
    this.settleTime();
    return this.all().filter(({ state }) => state !== 'dead_lettered');
  }

  /** Dead letters, oldest first. */
  get deadLetters(): StoredMessage[] {
    this.settleTime();
    const dead = this.all().filter(({ state }) => state === 'dead_lettered');
    return dead.sort((one, other) => one.diedAt - other.diedAt || one.offset - other.offset);
  }

  protected all(): StoredMessage[] {
    return [...this.stored.values()];
  }

  protected count(name: string): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
  }

  protected add(message: StoredMessage): void {
    message.offset = this.#nextOffset++;
    this.stored.set(message.offset, message);
  }

  protected release(message: StoredMessage, dueAt: number): void {
    message.receiptHandle = '';
    message.dueAt = dueAt;
    message.state = dueAt > this.now() ? 'delayed' : 'ready';
  }

  protected isExhausted({ failures, crashCount }: StoredMessage): boolean {
    const most = this.config.attempts_max;
    return most !== null && failures + crashCount >= most;
  }

  protected die(message: StoredMessage, reason: string): void {
    Object.assign(message, { receiptHandle: '', state: 'dead_lettered', reason, diedAt: this.now() });
  }

  // ── Time ──

  /** Apply the passing of time. */
  protected settleTime(): void {
    const now = this.now();
    for (const message of this.all()) {
      if (message.state === 'in_flight' && message.dueAt <= now) this.#crashed(message, now);
      else if (message.state === 'delayed' && message.dueAt <= now) message.state = 'ready';
      if (this.#isExpired(message, now)) {
        this.stored.delete(message.offset);
        this.count('expired');
      }
    }
  }

  #crashed(message: StoredMessage, now: number): void {
    message.crashCount += 1;
    if (this.isExhausted(message)) this.die(message, crashReason(message));
    else this.release(message, now);
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
      bytes_held: this.all().reduce((sum, { content }) => sum + content.size, 0),
      oldest_ready_at: ready.length > 0 ? moment(Math.min(...ready)) : null,
      fenced: false,
      durability: 'memory',
      replication_factor: 1,
      min_insync_replicas: 1,
    };
  }

  /** Return a message or dead letter by id or offset. Throws MemoryProblem. */
  find(identity: string): StoredMessage {
    this.settleTime();
    const message = this.all().find(({ id, offset }) => identity === id || identity === String(offset));
    if (message === undefined) throw new MemoryProblem('message_not_found', 'The message is no longer in the queue.');
    return message;
  }

  /** Delete one message in any state. Throws MemoryProblem. */
  deleteMessage(identity: string): void {
    this.stored.delete(this.find(identity).offset);
    this.count('purged');
  }

  /** Delete everything but dead letters; return the number. */
  purge(): number {
    const { messages } = this;
    for (const { offset } of messages) {
      this.stored.delete(offset);
      this.count('purged');
    }
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

/** Return the reason of a dead letter whose consumers crashed. */
export function crashReason({ crashCount }: StoredMessage): string {
  return `visibility timeout passed ${crashCount} times`;
}

function matches({ id, offset, reason, group }: StoredMessage, which: Fields): boolean {
  const messages = which.messages as string[] | null | undefined;
  const isNamed = !messages || messages.includes(id) || messages.includes(String(offset));
  return isNamed && (!which.reason || which.reason === reason) && (!which.group || which.group === group);
}
