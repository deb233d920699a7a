/** Routes of in-memory topics: they take copies of messages, and bring them to targets. */

import { DEFAULTS } from '../defaults.js';
import { Catalog, type Clock, Defined, type Fields, isEqual, moment } from './definitions.js';
import { UNMATCHED, checkMatch } from './matches.js';
import { MemoryProblem, invalid, unsupported } from './problems.js';
import { Copy, type PublishedMessage } from './published.js';
import type { MemoryQueue } from './queues.js';
import type { MemoryStream } from './streams.js';
import type { MemoryTopic } from './topics.js';

export const PREFIX = 'topic:';
const HOPS_MAX = 8;
const TARGETS = ['queue', 'stream', 'topic'] as const;
const OF_REVISION = ['match', 'target', 'transform', 'format', 'key', 'mode'];
/** Settings of routes that the in-memory service has only with this value. */
const SIMPLE: Fields = { transform: null, format: 'body', start: 'latest', start_time: null };
const NOT_FOUND = 404;

/** Queues, streams and topics by name, which throw MemoryProblem for a missing one. */
export interface Targets {
  queue(name: string): MemoryQueue;
  stream(name: string): MemoryStream;
  topic(name: string): MemoryTopic;
}

/** Configuration of a route, with the fields of the REST API. */
export interface MemoryRouteConfig extends Fields {
  match: unknown;
  target: Record<(typeof TARGETS)[number], string | null>;
  on_failure: 'wait' | 'dead_letter' | 'drop';
  dead_letter_queue: string | null;
  delay_seconds: number;
  ttl_seconds: number;
  mode: 'live' | 'shadow';
  paused: boolean;
}

/** A route of a topic. */
export class MemoryRoute extends Defined<MemoryRouteConfig> {
  readonly #topic: MemoryTopic;
  waiting: Copy[] = [];
  #number: number;
  #counts = { delivered: 0, dropped: 0, dead_lettered: 0, shadowed: 0 };
  #failure = '';

  constructor(name: string, config: MemoryRouteConfig, now: Clock, topic: MemoryTopic) {
    super(name, config, now);
    this.#topic = topic;
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
    if (isOther) this.#number = this.#topic.nextNumber();
    super.configure(config);
  }

  override shown(): Fields {
    const target = { ...this.config.target, url: null };
    return { ...super.shown(), topic: this.#topic.name, target, number: this.#number, cost: 'indexed' };
  }

  /** Add a copy of a message. */
  take(message: PublishedMessage): void {
    const copy = new Copy(message, this.config, this.#number);
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
    };
  }

  get #state(): string {
    if (this.config.paused) return 'paused';
    if (this.#failure !== '' && this.waiting.length > 0) return 'failing';
    return this.isLive ? 'active' : 'shadow';
  }

  // ── Delivery ──

  /** Deliver what waits, in order, up to a target that is missing; return whether any was. */
  deliver(targets: Targets): boolean {
    const before = this.waiting.length;
    for (let copy = this.waiting[0]; copy !== undefined && !this.config.paused; copy = this.waiting[0]) {
      try {
        this.#finish(targets, copy);
      } catch (error) {
        if (!(error instanceof MemoryProblem)) throw error;
        this.#failure = error.message;
        break;
      }
      copy.state = 'finished';
      this.waiting.shift();
    }
    return this.waiting.length < before;
  }

  /** Bring a copy to the target or the dead-letter queue, or drop it. Throws MemoryProblem. */
  #finish(targets: Targets, copy: Copy): void {
    if (copy.isExpired(this.now())) {
      this.#drop('The time to live of the message was over.');
      return;
    }
    try {
      this.#send(targets, copy);
    } catch (error) {
      if (!(error instanceof MemoryProblem)) throw error;
      if (error.status === NOT_FOUND && this.config.on_failure === 'wait') throw error;
      if (this.config.dead_letter_queue === null) this.#drop(error.message);
      else this.#deadLetter(targets.queue(this.config.dead_letter_queue), copy, error);
      return;
    }
    this.#counts.delivered += 1;
    this.#failure = '';
  }

  #drop(failure: string): void {
    this.#counts.dropped += 1;
    this.#failure = failure;
  }

  #send(targets: Targets, copy: Copy): void {
    const { queue, stream, topic } = copy.config.target as MemoryRouteConfig['target'];
    if (queue !== null) {
      const target = targets.queue(queue);
      target.send([this.#message(copy, target.config.type === 'fifo')]);
    } else if (stream !== null) {
      const { body, body_base64, ...record } = this.#origin(copy);
      const data = body_base64 === undefined ? { data: body } : { data_base64: body_base64 };
      targets.stream(stream).append([{ ...record, ...data, key: copy.key }]);
    } else {
      const target = targets.topic(topic ?? '');
      target.accept([this.#publication(copy, target.isFifo)]);
    }
  }

  #message(copy: Copy, isFifo: boolean): Fields {
    const { delay_seconds: delay, priority, reply_to } = copy.message.fields;
    const message = {
      ...this.#origin(copy),
      delay_seconds: delay ?? (this.config.delay_seconds || null),
      ttl_seconds: copy.left(this.now()) || this.config.ttl_seconds,
      reply_to,
    };
    return isFifo ? { ...message, group: copy.key, dedup_id: copy.dedupId } : { ...message, key: copy.key, priority };
  }

  #publication(copy: Copy, isFifo: boolean): Fields {
    const { delay_seconds, priority, reply_to, hops = 0 } = copy.message.fields;
    const passed = Number(hops) + 1;
    if (passed > HOPS_MAX)
      throw new MemoryProblem('too_many_hops', `The message has passed ${HOPS_MAX} topics.`, {}, 422);
    return {
      ...this.#origin(copy),
      ...{ delay_seconds, reply_to, hops: passed, key: copy.key, ttl_seconds: copy.left(this.now()) },
      ...(isFifo ? { dedup_id: copy.dedupId } : { priority }),
    };
  }

  #origin(copy: Copy): Fields {
    const { body, body_base64, content_type, headers, subject } = copy.message.fields;
    return { body, body_base64, content_type, headers, subject, topic: this.#topic.name, route: this.name };
  }

  #deadLetter(queue: MemoryQueue, copy: Copy, problem: MemoryProblem): void {
    const { key, shard } = copy.message.record;
    const dead_letter = {
      source: `route:${this.#topic.name}/${this.name}`,
      reason: problem.code,
      died_at: moment(this.now()),
      ...{ failures: 1, crash_count: 0, last_failure_reason: '', details: problem.message },
    };
    const isFifo = queue.config.type === 'fifo';
    const place = isFifo ? { group: key || `shard ${shard}`, dedup_id: copy.dedupId } : {};
    queue.send([{ ...this.#origin(copy), key, dead_letter, ...place }]);
    this.#counts.dead_lettered += 1;
    this.#failure = problem.message;
  }
}

/** Routes of a topic by name. */
export class RouteCatalog extends Catalog<MemoryRouteConfig, MemoryRoute> {
  readonly #checkCycle: (target: string) => void;

  constructor(make: (name: string, config: MemoryRouteConfig) => MemoryRoute, checkCycle: (target: string) => void) {
    super('Route', make);
    this.#checkCycle = checkCycle;
  }

  override put(name: string, fields: Fields, options: { onlyNew: boolean; dryRun: boolean }): [number, Fields] {
    if (!('target' in fields)) throw invalid('/target', 'Field required', 'required');
    const [status, stored] = super.put(name, fields, options);
    return [status, { ...stored, secret: null, in_force: !options.dryRun }];
  }

  protected override check(fields: Fields): void {
    for (const [field, value] of Object.entries(fields)) {
      if (!(field in (DEFAULTS.RouteConfig ?? {}))) throw invalid(`/${field}`, `Unknown field '${field}'`, 'unknown_field');
      if (field in SIMPLE && !isEqual(value, SIMPLE[field])) throw unsupported(`${field} of this kind`);
    }
    if ('target' in fields) this.#checkTarget(fields.target as Fields);
    checkMatch(fields.match);
  }

  #checkTarget(target: Fields): void {
    const given = Object.entries(target).filter(([, value]) => value !== null && value !== undefined);
    for (const [name, value] of given) {
      if (name === 'url') throw unsupported('route to a URL');
      if (!TARGETS.some((one) => one === name)) throw invalid(`/target/${name}`, 'Only a URL has it', 'not_supported');
      if (name === 'stream' && String(value).startsWith(PREFIX))
        throw invalid('/target/stream', 'A topic is written by publishing', 'not_allowed');
    }
    if (given.length !== 1) throw invalid('/target', 'Specify exactly one of queue, stream, topic and url', 'exclusive');
    if (typeof target.topic === 'string') this.#checkCycle(target.topic);
  }

  protected override completed(config: Fields): Fields {
    const given = config.target as Fields;
    const target = Object.fromEntries(TARGETS.map((name) => [name, given[name] ?? null]));
    for (const name of ['delay_seconds', 'ttl_seconds']) {
      if (target.queue === null && config[name])
        throw invalid(`/${name}`, 'Only the messages of a queue or a URL have it', 'not_supported');
    }
    if (config.on_failure === 'dead_letter' && config.dead_letter_queue === null)
      throw invalid('/dead_letter_queue', "on_failure 'dead_letter' requires a dead-letter queue", 'required');
    return { ...config, target };
  }
}
