/** Routes of in-memory topics: they take copies of messages, and bring them to targets. */

import { type Clock, Defined, type Fields, isEqual } from '../definitions.js';
import { MemoryProblem } from '../problems.js';
import type { MemoryQueue } from '../queues.js';
import type { MemoryStream } from '../streams.js';
import { Copy } from './copies.js';
import { UNMATCHED } from './matches.js';
import type { PublishedMessage } from './published.js';
import type { RoutedLog } from './routed-log.js';
import { type MemoryTarget, labelOf } from './spreads.js';

const OF_REVISION = ['match', 'target', 'transform', 'format', 'key', 'mode'];
const NOT_FOUND = 404;

/** Queues, streams and topics by name, which throw MemoryProblem for a missing one. */
export interface Targets {
  queue(name: string): MemoryQueue;
  stream(name: string): MemoryStream;
  topic(name: string): RoutedLog;
}

/** Configuration of a route, with the fields of the REST API. */
export interface MemoryRouteConfig extends Fields {
  match: unknown;
  target: MemoryTarget;
  on_failure: 'wait' | 'dead_letter' | 'drop';
  dead_letter_queue: string | null;
  delay_seconds: number;
  ttl_seconds: number;
  mode: 'live' | 'shadow';
  paused: boolean;
}

/** A route of a topic, a stream or a queue. */
export class MemoryRoute extends Defined<MemoryRouteConfig> {
  readonly topic: RoutedLog;
  waiting: Copy[] = [];
  #number: number;
  #counts = { delivered: 0, dropped: 0, dead_lettered: 0, shadowed: 0 };
  /** Last failure of each target that has not succeeded since. */
  readonly #failures = new Map<string, string>();

  constructor(name: string, config: MemoryRouteConfig, now: Clock, topic: RoutedLog) {
    super(name, config, now);
    this.topic = topic;
    this.#number = topic.nextNumber();
  }

  /** Number of the present revision. */
  get number(): number {
    return this.#number;
  }

  /** Whether it delivers messages. */
  get isLive(): boolean {
    return this.config.mode === 'live';
  }

  /** Whether it takes what no other live route takes. */
  get takesUnmatched(): boolean {
    return this.config.match === UNMATCHED;
  }

  override configure(config: MemoryRouteConfig): void {
    const isOther = OF_REVISION.some((name) => !isEqual(config[name], this.config[name]));
    if (isOther) this.#number = this.topic.nextNumber();
    super.configure(config);
  }

  override shown(): Fields {
    const target = { ...this.config.target, url: null };
    return { ...super.shown(), topic: this.topic.name, target, number: this.#number, cost: 'indexed' };
  }

  /** Add a copy of a message. */
  take(message: PublishedMessage): void {
    const copy = new Copy(message, this);
    message.copies.push(copy);
    if (this.isLive) {
      this.waiting.push(copy);
    } else {
      copy.state = 'shadow';
      this.#counts.shadowed += 1;
    }
  }

  /** Return the counts. */
  stats(): Fields {
    const oldest = this.waiting[0]?.message.record.arrivedAt ?? this.now();
    return {
      state: this.#state,
      ...this.#counts,
      lag_messages: this.waiting.length,
      lag_seconds: (this.now() - oldest) / 1000,
      last_failure: this.#failure,
      ...this.#members(),
    };
  }

  /** How far each member of a spread is behind. */
  #members(): Fields {
    const { spread } = this.config.target;
    if (spread === undefined || !this.isLive) return {};
    const members = spread.map((member) => {
      const waiting = this.waiting.filter((copy) => labelOf(copy.target) === labelOf(member));
      const oldest = waiting[0]?.message.record.arrivedAt ?? this.now();
      return { member, lag_messages: waiting.length, lag_seconds: (this.now() - oldest) / 1000 };
    });
    return { members };
  }

  get #failure(): string {
    const [failure = ''] = this.#failures.values();
    return failure;
  }

  get #state(): string {
    if (this.config.paused) return 'paused';
    if (this.#failure !== '' && this.waiting.length > 0) return 'failing';
    return this.isLive ? 'active' : 'shadow';
  }

  // ── Delivery ──

  /** Deliver what waits, in order, except to targets that are missing; return whether any was. */
  deliver(targets: Targets): boolean {
    if (this.config.paused) return false;
    const before = this.waiting.length;
    const missing = new Set<string>();
    for (const copy of [...this.waiting]) {
      const label = labelOf(copy.target);
      if (!missing.has(label) && !this.#try(targets, copy, label)) missing.add(label);
    }
    this.waiting = this.waiting.filter(({ state }) => state === 'waiting');
    return this.waiting.length < before;
  }

  /** Finish a copy; return false if its target is missing. */
  #try(targets: Targets, copy: Copy, label: string): boolean {
    let failure: string;
    try {
      failure = this.#finish(targets, copy);
    } catch (error) {
      if (!(error instanceof MemoryProblem)) throw error;
      this.#failures.set(label, error.message);
      return false;
    }
    if (failure === '') this.#failures.delete(label);
    else this.#failures.set(label, failure);
    copy.state = 'finished';
    return true;
  }

  /** Bring a copy to the target or the dead-letter queue, or drop it; return why. Throws MemoryProblem. */
  #finish(targets: Targets, copy: Copy): string {
    if (copy.isExpired(this.now())) return this.#drop('The time to live of the message was over.');
    try {
      this.#send(targets, copy);
    } catch (error) {
      if (!(error instanceof MemoryProblem)) throw error;
      if (error.status === NOT_FOUND && this.config.on_failure === 'wait') throw error;
      if (this.config.dead_letter_queue === null || copy.hasNoDeadLetter) return this.#drop(error.message);
      return this.#deadLetter(targets.queue(this.config.dead_letter_queue), copy, error);
    }
    this.#counts.delivered += 1;
    return '';
  }

  #drop(failure: string): string {
    this.#counts.dropped += 1;
    return failure;
  }

  #send(targets: Targets, copy: Copy): void {
    const { queue, stream, topic } = copy.target;
    if (typeof queue === 'string') {
      const target = targets.queue(queue);
      target.send([copy.asMessage(this.now(), target.isFifo)]);
    } else if (typeof stream === 'string') {
      targets.stream(stream).append([copy.asRecord()]);
    } else {
      const target = targets.topic(topic ?? '');
      target.accept([copy.asPublication(this.now(), target.isFifo)]);
    }
  }

  #deadLetter(queue: MemoryQueue, copy: Copy, problem: MemoryProblem): string {
    queue.send([copy.asDeadLetter(problem, this.now(), queue.isFifo)]);
    this.#counts.dead_lettered += 1;
    return problem.message;
  }
}
