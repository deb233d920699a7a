/** In-memory topics: configuration, publishing, and which routes take a message. */

import { DEFAULTS } from '../defaults.js';
import { contentOf } from './content.js';
import { Catalog, type Clock, Defined, type Fields, moment } from './definitions.js';
import { matches } from './matches.js';
import { MemoryProblem, invalid, unsupported } from './problems.js';
import { PublishedMessage, documentOf } from './published.js';
import { namedTargets } from './spreads.js';
import { MemoryStream, type MemoryStreamConfig } from './streams.js';
import { checkSubject } from './subjects.js';
import { MemoryRoute, PREFIX, RouteCatalog, type Targets } from './topic-routes.js';

const DEDUP_WINDOW_MS = 300_000;
/** Prefix of the name under which a stream is the source of routes. */
const OF_STREAM = 'stream:';
const OF_QUEUE = 'queue:';

/** Configuration of a topic, with the fields of the REST API. */
export interface MemoryTopicConfig extends Fields {
  type: 'standard' | 'fifo';
  shards: number;
  unmatched: 'drop' | 'refuse';
  deduplicate_by_content: boolean;
  dedup_scope: 'topic' | 'key';
  message_bytes_max: number;
  retention_seconds: number | null;
  paused: boolean;
}

/** A topic, with its `messages` and `routes`. */
export class MemoryTopic extends Defined<MemoryTopicConfig> {
  readonly routes: RouteCatalog;
  readonly log: MemoryStream;
  readonly #targets: Targets;
  readonly #dedup = new Map<string, { message: PublishedMessage; at: number }>();
  #published: PublishedMessage[] = [];
  #numbers = 0;

  constructor(name: string, config: MemoryTopicConfig, now: Clock, targets: Targets) {
    super(name, config, now);
    this.#targets = targets;
    this.log = new MemoryStream(`${PREFIX}${name}`, logConfig(config), now);
    const make = (route: string, routeConfig: MemoryRoute['config']) => new MemoryRoute(route, routeConfig, now, this);
    this.routes = new RouteCatalog(make, (target) => {
      this.#checkCycle(target);
    });
  }

  /** Whether messages have deduplication ids. */
  get isFifo(): boolean {
    return this.config.type === 'fifo';
  }

  /** Messages that the topic keeps, by acceptance. */
  get messages(): PublishedMessage[] {
    const starts = this.log.shards.map(({ start }) => start);
    this.#published = this.#published.filter(({ record }) => record.offset >= (starts[record.shard] ?? 0));
    return this.#published;
  }

  /** Return the number of the next revision of a route. */
  nextNumber(): number {
    return ++this.#numbers;
  }

  override configure(config: MemoryTopicConfig): void {
    super.configure(config);
    this.log.configure(logConfig(config));
  }

  override shown(): Fields {
    const { paused, ...config } = super.shown();
    void paused;
    return { ...config, stream: this.log.name, open_shards: this.log.shards.length };
  }

  /** Return the counts. */
  stats(): Fields {
    const waiting = this.routes.all().flatMap((route) => route.waiting.map(({ message }) => message));
    const oldest = Math.min(this.now(), ...waiting.map(({ record }) => record.arrivedAt));
    return {
      messages: this.messages.length,
      bytes_held: this.messages.reduce((total, { record }) => total + record.content.size, 0),
      routes: this.routes.all().length,
      lag_messages: new Set(waiting).size,
      lag_seconds: (this.now() - oldest) / 1000,
    };
  }

  /** Return a message by its id. Throws MemoryProblem. */
  message(id: string): PublishedMessage {
    const message = this.messages.find((one) => one.id === id);
    if (message === undefined) throw new MemoryProblem('message_not_found', 'The topic has no message of this id.');
    return message;
  }

  /** Return the routes that take a message, and the state of each. */
  messageRoutes(id: string): Fields {
    const { copies, record } = this.message(id);
    const names = new Map(this.routes.all().map(({ number, name }) => [number, name]));
    const routes = copies.map(({ number, state, member }) => ({
      ...{ route: names.get(number) ?? null, number, state },
      ...(member === undefined || state === 'shadow' ? {} : { member }),
    }));
    return { id, published_at: moment(record.arrivedAt), routes: routes.sort((a, b) => a.number - b.number) };
  }

  // ── Publishing ──

  /** Publish messages: all of them, or none if one is refused; return a result for each. */
  publish(messages: Fields[]): Fields[] {
    try {
      return this.accept(messages);
    } catch (error) {
      if (!(error instanceof MemoryProblem) || error.code !== 'unroutable') throw error;
      return messages.map(() => ({ error: error.item }));
    }
  }

  /** Accept messages, and decide which routes take them. Throws MemoryProblem. */
  accept(messages: Fields[]): Fields[] {
    messages.forEach((fields, nth) => {
      this.#check(fields, messages.length > 1 ? `/messages/${nth}` : '');
    });
    messages.forEach((fields, nth) => {
      if (this.config.unmatched === 'refuse' && this.#liveRoutes(fields).length === 0)
        throw new MemoryProblem('unroutable', `Message ${nth}: no route takes it, and the topic refuses it.`);
    });
    return messages.map((fields) => this.#accept(fields));
  }

  #check(fields: Fields, pointer: string): void {
    const { size } = contentOf('body', fields);
    if (size === 0) throw invalid('/body', 'A message must have at least one byte', 'too_short');
    if (size > this.config.message_bytes_max)
      throw new MemoryProblem('message_too_large', 'The message is too large.');
    checkSubject((fields.subject as string | undefined) ?? '');
    if (this.isFifo) this.#checkFifo(fields, pointer);
    else if (fields.dedup_id)
      throw invalid(`${pointer}/dedup_id`, 'A deduplication id requires a FIFO topic', 'not_supported');
  }

  #checkFifo(fields: Fields, pointer: string): void {
    if (!fields.key) throw invalid(`${pointer}/key`, 'A message of a FIFO topic requires a key', 'required');
    if (!fields.dedup_id && !this.config.deduplicate_by_content)
      throw invalid(`${pointer}/dedup_id`, 'A message of a FIFO topic requires a deduplication id', 'required');
    for (const name of ['delay_seconds', 'priority']) {
      if (fields[name]) throw invalid(`${pointer}/${name}`, `Messages of a FIFO topic have no ${name}`, 'not_supported');
    }
  }

  #accept(fields: Fields): Fields {
    const dedupKey = this.#dedupKey(fields);
    const earlier = this.#dedup.get(dedupKey);
    if (dedupKey !== '' && earlier !== undefined && this.now() - earlier.at < DEDUP_WINDOW_MS)
      return { ...resultOf(earlier.message), duplicate: true, routes: null };
    const live = this.#liveRoutes(fields);
    const shadow = this.#shadowRoutes(fields, live);
    const { body, body_base64, ...others } = fields;
    const data = body_base64 === undefined ? { data: body } : { data_base64: body_base64 };
    const [place] = this.log.append([{ ...others, ...data }]);
    const record = this.log.shard(place?.shard as number).records.at(-1) as PublishedMessage['record'];
    const message = new PublishedMessage(`${this.log.id}-${record.shard}-${record.offset}`, record, fields);
    this.#published.push(message);
    if (dedupKey !== '') this.#dedup.set(dedupKey, { message, at: this.now() });
    for (const route of [...live, ...shadow]) route.take(message);
    return { ...resultOf(message), routes: live.length };
  }

  #dedupKey(fields: Fields): string {
    if (!this.isFifo) return '';
    const id = (fields.dedup_id as string | undefined) || contentOf('body', fields).text;
    return this.config.dedup_scope === 'key' ? `${String(fields.key)} ${id}` : id;
  }

  /** Return the routes that deliver a message: those that match, or else the unmatched. */
  #liveRoutes(fields: Fields): MemoryRoute[] {
    const live = this.routes.all().filter(({ isLive }) => isLive);
    const matching = live.filter((route) => this.#matches(route, fields));
    return matching.length > 0 ? matching : live.filter(({ takesUnmatched }) => takesUnmatched);
  }

  #shadowRoutes(fields: Fields, live: MemoryRoute[]): MemoryRoute[] {
    const isUnmatched = live.every(({ takesUnmatched }) => takesUnmatched);
    const shadow = this.routes.all().filter(({ isLive }) => !isLive);
    return shadow.filter((route) => (route.takesUnmatched ? isUnmatched : this.#matches(route, fields)));
  }

  #matches(route: MemoryRoute, fields: Fields): boolean {
    return !route.takesUnmatched && matches(route.config.match, documentOf(fields, this.name));
  }

  /** Throw MemoryProblem if a topic leads back to this one. */
  #checkCycle(target: string): void {
    const reached = new Set<string>();
    const pending = [target];
    for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
      if (current === this.name) throw new MemoryProblem('route_cycle', `Messages would return to topic '${this.name}'.`);
      if (!reached.has(current)) pending.push(...topicTargets(this.#targets, current));
      reached.add(current);
    }
  }
}

/** Topics by name. */
export class TopicCatalog extends Catalog<MemoryTopicConfig, MemoryTopic> {
  constructor(make: (name: string, config: MemoryTopicConfig) => MemoryTopic) {
    super('Topic', make);
  }

  override get(name: string): MemoryTopic {
    if (name.startsWith(OF_STREAM)) throw unsupported('route of a stream');
    if (name.startsWith(OF_QUEUE)) throw unsupported('route of a queue');
    return super.get(name);
  }

  protected override completed(config: Fields): Fields {
    const isByKey = config.dedup_scope === 'key';
    if (config.type === 'fifo') {
      if (Number(config.shards) > 1 && !isByKey)
        throw invalid('/dedup_scope', "A FIFO topic with several shards requires the deduplication scope 'key'", 'required');
    } else if (config.deduplicate_by_content === true || isByKey) {
      throw invalid('/dedup_scope', 'Deduplication requires a FIFO topic', 'not_supported');
    }
    return { ...config, unmatched: config.unmatched ?? 'drop' };
  }
}

/** Streams by name, also those of topics, which are read alone. */
export class StreamCatalog extends Catalog<MemoryStreamConfig, MemoryStream> {
  readonly #topics: TopicCatalog;

  constructor(make: (name: string, config: MemoryStreamConfig) => MemoryStream, topics: TopicCatalog) {
    super('Stream', make);
    this.#topics = topics;
  }

  override get(name: string): MemoryStream {
    if (!name.startsWith(PREFIX)) return super.get(name);
    const topic = this.#topics.all().find((one) => `${PREFIX}${one.name}` === name);
    if (topic === undefined) throw new MemoryProblem('stream_not_found', `The stream '${name}' does not exist.`);
    return topic.log;
  }

  override put(name: string, fields: Fields, options: { onlyNew: boolean; dryRun: boolean }): [number, Fields] {
    refuseTopic(name);
    return super.put(name, fields, options);
  }

  override patch(name: string, fields: Fields): Fields {
    refuseTopic(name);
    return super.patch(name, fields);
  }

  override delete(name: string): void {
    this.writable(name);
    super.delete(name);
  }

  /** Return a stream that records are appended to. Throws MemoryProblem. */
  writable(name: string): MemoryStream {
    const stream = this.get(name);
    if (name.startsWith(PREFIX)) throw new MemoryProblem('stream_read_only', 'A topic is written by publishing.');
    return stream;
  }
}

/** Deliver what waits in all topics, also what their routes bring to other topics. */
export function deliverAll(topics: TopicCatalog, targets: Targets): void {
  for (let isMoving = true; isMoving; ) {
    const routes = topics.all().flatMap((topic) => topic.routes.all());
    isMoving = routes.map((route) => route.deliver(targets)).includes(true);
  }
}

function refuseTopic(name: string): void {
  if (name.startsWith(PREFIX)) throw unsupported("change of a topic's stream");
}

function topicTargets(targets: Targets, name: string): string[] {
  try {
    const routes = targets.topic(name).routes.all();
    const named = routes.flatMap(({ config }) => namedTargets(config.target));
    return named.flatMap(({ topic: next }) => (typeof next === 'string' ? [next] : []));
  } catch {
    return [];
  }
}

function resultOf({ id, record }: PublishedMessage): Fields {
  return { id, shard: record.shard, offset: record.offset, duplicate: false };
}

function logConfig({ shards, retention_seconds, message_bytes_max }: MemoryTopicConfig): MemoryStreamConfig {
  return { ...DEFAULTS.StreamConfig, shards, retention_seconds, record_bytes_max: message_bytes_max, paused: false };
}
