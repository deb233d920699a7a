/** Logs of messages with routes, which decide what takes each message. */

import { type Clock, Defined, type Fields, moment } from '../definitions.js';
import { MemoryProblem, invalid } from '../problems.js';
import type { MemoryStream, StoredRecord } from '../streams.js';
import type { TopicCatalog } from './catalogs.js';
import type { Copy } from './copies.js';
import { matches } from './matches.js';
import { PublishedMessage, documentOf } from './published.js';
import { MemoryRoute } from './route.js';
import { RouteCatalog } from './route-catalog.js';
import type { MemoryTarget } from './spreads.js';
import { OF_QUEUE, checkCycle, readOnly } from './targets.js';

const OWN_DEAD_LETTERS = 'The queue whose messages the route takes cannot be its dead-letter queue';

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

/** Log of a topic, or a stream that has routes, with its `messages` and `routes`. */
export abstract class RoutedLog extends Defined<MemoryTopicConfig> {
  readonly isOfStream: boolean = false;
  readonly isPublishedTo: boolean = false;
  readonly log: MemoryStream;
  readonly routes: RouteCatalog;
  #messages = new Map<string, PublishedMessage>();
  #numbers = 0;

  constructor(name: string, config: MemoryTopicConfig, now: Clock, log: MemoryStream, topics: () => TopicCatalog) {
    super(name, config, now);
    this.log = log;
    this.routes = new RouteCatalog(
      (route, routeConfig) => new MemoryRoute(route, routeConfig, now, this),
      (fields) => {
        if ('target' in fields) {
          checkCycle(name, this.described, fields.target as MemoryTarget, (source) => topics().targetsOf(source));
        }
        if (`${OF_QUEUE}${String(fields.dead_letter_queue)}` === name)
          throw invalid('/dead_letter_queue', OWN_DEAD_LETTERS, 'not_allowed');
      },
    );
  }

  /** Whether messages have deduplication ids. */
  get isFifo(): boolean {
    return false;
  }

  /** The topic as the subject of a sentence. */
  get described(): string {
    return `Topic '${this.name}'`;
  }

  /** Names of its place, for matches. */
  get meta(): Fields {
    return { topic: this.name };
  }

  /** Messages that the log keeps, by acceptance. */
  get messages(): PublishedMessage[] {
    const stored = this.log.records.map((record) => [this.#idOf(record), record] as const);
    this.#messages = new Map(stored.map(([id, record]) => [id, this.#messages.get(id) ?? new PublishedMessage(id, record)]));
    return [...this.#messages.values()];
  }

  #idOf({ shard, offset }: StoredRecord): string {
    return `${this.log.id}-${shard}-${offset}`;
  }

  /** Return the number of the next revision of a route. */
  nextNumber(): number {
    return ++this.#numbers;
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
    const routes = [...copies].sort((a, b) => a.number - b.number).map((copy) => this.#shownCopy(copy));
    return { id, published_at: moment(record.arrivedAt), routes };
  }

  /** Return the state of a copy; that of a deleted route, or former revision, is removed. */
  #shownCopy({ route, number, state, member }: Copy): Fields {
    const isPresent = number === route.number || state === 'waiting';
    if (!this.routes.all().includes(route) || !isPresent) return { route: null, number, state: 'removed' };
    return { route: route.name, number, state, ...(member === undefined || state === 'shadow' ? {} : { member }) };
  }

  // ── Acceptance ──

  /** Publish messages. Throws MemoryProblem. */
  publish(messages: Fields[]): Fields[] {
    return this.accept(messages);
  }

  /** Accept messages. Throws MemoryProblem for a log whose source is a stream or a queue. */
  accept(_messages: Fields[]): Fields[] {
    throw readOnly();
  }

  /** Take what its source has; return whether that was anything. */
  collect(): boolean {
    return false;
  }

  /** Add a record of the log, which its routes take; return the number of live ones. */
  protected add(record: StoredRecord, fields: Fields): { message: PublishedMessage; routes: number } {
    const message = new PublishedMessage(this.#idOf(record), record, fields);
    this.#messages.set(message.id, message);
    const document = documentOf(record, this.meta);
    const live = this.liveRoutes(document);
    for (const route of [...live, ...this.#shadowRoutes(document, live)]) route.take(message);
    return { message, routes: live.length };
  }

  /** Return the routes that deliver a message: those that match, or else the unmatched. */
  protected liveRoutes(document: Fields): MemoryRoute[] {
    const live = this.routes.all().filter(({ isLive }) => isLive);
    const matching = live.filter((route) => takes(route, document));
    return matching.length > 0 ? matching : live.filter(({ takesUnmatched }) => takesUnmatched);
  }

  #shadowRoutes(document: Fields, live: MemoryRoute[]): MemoryRoute[] {
    const isUnmatched = live.every(({ takesUnmatched }) => takesUnmatched);
    const shadow = this.routes.all().filter(({ isLive }) => !isLive);
    return shadow.filter((route) => (route.takesUnmatched ? isUnmatched : takes(route, document)));
  }
}

function takes(route: MemoryRoute, document: Fields): boolean {
  return !route.takesUnmatched && matches(route.config.match, document);
}
