/** In-memory topics and streams by name, also those that are the source of routes. */

import { Catalog, type Fields } from '../definitions.js';
import { MemoryProblem, invalid, unsupported } from '../problems.js';
import type { MemoryStream, MemoryStreamConfig } from '../streams.js';
import type { Targets } from './route.js';
import type { MemoryTopicConfig, RoutedLog } from './routed-log.js';
import type { MemoryTarget } from './spreads.js';
import { OF_QUEUE, OF_STREAM, OF_TOPIC, readOnly } from './targets.js';

/** Configuration of the topic that the first route of a queue creates. */
const OF_QUEUE_CONFIG = { message_bytes_max: 10 * 1024 * 1024 };
/** Rounds of deliveries within a call: a dead-letter queue may lead back to its source. */
const ROUNDS_MAX = 100;

interface PutOptions {
  onlyNew: boolean;
  dryRun: boolean;
}

/**
 * Topics by name, and streams and queues that have routes.
 *
 * `stream:<name>` stands for that stream. `queue:<name>` is the topic that takes the messages of that queue.
 */
export class TopicCatalog extends Catalog<MemoryTopicConfig, RoutedLog> {
  readonly #makeOfStream: (stream: string) => RoutedLog;

  constructor(make: (name: string, config: MemoryTopicConfig) => RoutedLog, makeOfStream: (stream: string) => RoutedLog) {
    super('Topic', make);
    this.#makeOfStream = makeOfStream;
  }

  override get(name: string): RoutedLog {
    if (name.startsWith(OF_STREAM) && !this.objects.has(name)) this.objects.set(name, this.#ofStream(name.slice(OF_STREAM.length)));
    return super.get(name);
  }

  #ofStream(stream: string): RoutedLog {
    try {
      if (!stream.startsWith(OF_TOPIC)) return this.#makeOfStream(stream);
    } catch (error) {
      if (!(error instanceof MemoryProblem)) throw error;
    }
    throw new MemoryProblem('topic_not_found', `Stream '${stream}' does not exist.`);
  }

  /** Create or replace a route; the first one of a queue creates its topic. Throws MemoryProblem. */
  putRoute(name: string, route: string, fields: Fields, options: PutOptions): [number, Fields] {
    const existing = name.startsWith(OF_QUEUE) ? this.objects.get(name) : this.get(name);
    const topic = existing ?? this.made(name, OF_QUEUE_CONFIG);
    const answer = topic.routes.put(route, fields, options);
    if (!options.dryRun) this.objects.set(name, topic);
    return answer;
  }

  /** Return the targets of the routes of a topic; none if it does not exist. */
  targetsOf(name: string): MemoryTarget[] {
    return this.objects.get(name)?.routes.all().map(({ config }) => config.target) ?? [];
  }

  /** Delete the routes of a stream or queue with it. */
  discard(name: string): void {
    this.objects.delete(name);
  }

  override put(name: string, fields: Fields, options: PutOptions): [number, Fields] {
    checkWritable(name);
    return super.put(name, fields, options);
  }

  override patch(name: string, fields: Fields): Fields {
    checkWritable(name);
    return super.patch(name, fields);
  }

  override delete(name: string): void {
    checkWritable(name);
    super.delete(name);
  }

  /** Return the topics whose names have a prefix, and behind them streams with routes. */
  override page(prefix: string): Fields {
    const { items, next_cursor } = super.page(prefix) as { items: { name: string }[]; next_cursor: null };
    const isOfStream = ({ name }: { name: string }) => name.startsWith(OF_STREAM);
    const streams = items.filter((item) => isOfStream(item) && this.get(item.name).routes.all().length > 0);
    return { items: [...items.filter((item) => !isOfStream(item)), ...streams], next_cursor };
  }

  protected override completed(config: Fields, name: string): Fields {
    const isOfQueue = name.startsWith(OF_QUEUE);
    if (isOfQueue) checkOfQueue(config);
    const isByKey = config.dedup_scope === 'key';
    if (config.type === 'fifo') {
      if (Number(config.shards) > 1 && !isByKey)
        throw invalid('/dedup_scope', "A FIFO topic with several shards requires the deduplication scope 'key'", 'required');
    } else if (config.deduplicate_by_content === true || isByKey) {
      throw invalid('/dedup_scope', 'Deduplication requires a FIFO topic', 'not_supported');
    }
    return { ...config, unmatched: config.unmatched ?? (isOfQueue ? 'refuse' : 'drop') };
  }
}

function checkWritable(name: string): void {
  if (name.startsWith(OF_STREAM)) throw readOnly();
}

function checkOfQueue({ shards, type }: Fields): void {
  if (Number(shards) > 1) throw invalid('/shards', "The topic of a queue's routes has one shard", 'not_supported');
  if (type === 'fifo') {
    const detail = "The topic of a queue's routes is standard; it keeps the order of each group";
    throw invalid('/type', detail, 'not_supported');
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
    if (!name.startsWith(OF_TOPIC)) return super.get(name);
    const topic = this.#topics.all().find(({ log }) => log.name === name);
    if (topic === undefined) throw new MemoryProblem('stream_not_found', `Stream '${name}' does not exist.`);
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
    if (name.startsWith(OF_TOPIC)) throw new MemoryProblem('stream_read_only', 'A topic is written by publishing.');
    return stream;
  }
}

/** Deliver what the sources have and what waits, also what that brings to other topics. */
export function deliverAll(topics: TopicCatalog, targets: Targets): void {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const logs = topics.all();
    const routes = logs.flatMap((log) => log.routes.all());
    const collected = logs.map((log) => log.collect());
    const delivered = routes.map((route) => route.deliver(targets));
    if (![...collected, ...delivered].includes(true)) return;
  }
}

function refuseTopic(name: string): void {
  if (name.startsWith(OF_TOPIC)) throw unsupported("change of a topic's stream");
}
