/** Routes of in-memory topics: they take copies of messages, and bring them to targets. */

import { DEFAULTS } from '../defaults.js';
import { Catalog, type Clock, Defined, type Fields, isEqual, moment } from './definitions.js';
import { UNMATCHED, checkMatch } from './matches.js';
import { MemoryProblem, invalid, unsupported } from './problems.js';
import { Copy, type PublishedMessage } from './published.js';
import type { MemoryQueue } from './queues.js';
import { KINDS, type MemoryTarget, checkSpread, completedSpread, labelOf, namedTargets } from './spreads.js';
import type { MemoryStream } from './streams.js';
import type { MemoryTopic } from './topics.js';

export const PREFIX = 'topic:';
const HOPS_MAX = 8;
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
  target: MemoryTarget;
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
  /** Last failure of each target that has not succeeded since. */
  readonly #failures = new Map<string, string>();

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
      if (this.config.dead_letter_queue === null) return this.#drop(error.message);
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
      target.send([this.#message(copy, target.config.type === 'fifo')]);
    } else if (typeof stream === 'string') {
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

  #deadLetter(queue: MemoryQueue, copy: Copy, problem: MemoryProblem): string {
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
    return problem.message;
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
    for (const [name] of given) {
      if (name === 'url') throw unsupported('route to a URL');
      if (![...KINDS, 'spread', 'by'].includes(name)) throw invalid(`/target/${name}`, 'Only a URL has it', 'not_supported');
    }
    if (given.filter(([name]) => name !== 'by').length !== 1)
      throw invalid('/target', 'Specify exactly one of queue, stream, topic, spread and url', 'exclusive');
    if (Array.isArray(target.spread)) {
      checkSpread(target);
      for (const [number, member] of (target.spread as Fields[]).entries()) this.#checkNamed(member, `/target/spread/${number}`);
    } else {
      if (given.length > 1) throw invalid('/target/by', 'Only a spread has it', 'not_supported');
      this.#checkNamed(target, '/target');
    }
  }

  #checkNamed(target: Fields, pointer: string): void {
    if (typeof target.stream === 'string' && target.stream.startsWith(PREFIX))
      throw invalid(`${pointer}/stream`, 'A topic is written by publishing', 'not_allowed');
    if (typeof target.topic === 'string') this.#checkCycle(target.topic);
  }

  protected override completed(config: Fields): Fields {
    const given = config.target as Fields;
    const target: MemoryTarget = Array.isArray(given.spread)
      ? completedSpread(given)
      : Object.fromEntries(KINDS.map((name) => [name, given[name] ?? null]));
    const hasQueue = namedTargets(target).some(({ queue }) => typeof queue === 'string');
    for (const name of ['delay_seconds', 'ttl_seconds']) {
      if (!hasQueue && config[name])
        throw invalid(`/${name}`, 'Only the messages of a queue or a URL have it', 'not_supported');
    }
    if (config.on_failure === 'dead_letter' && config.dead_letter_queue === null)
      throw invalid('/dead_letter_queue', "on_failure 'dead_letter' requires a dead-letter queue", 'required');
    return { ...config, target };
  }
}
