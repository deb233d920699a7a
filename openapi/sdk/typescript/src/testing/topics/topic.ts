/** In-memory topics: configuration, and publishing. */

import { DEFAULTS } from '../../defaults.js';
import { contentOf } from '../content.js';
import { Deduplication } from '../deduplication.js';
import type { Clock, Fields } from '../definitions.js';
import { MemoryProblem, invalid } from '../problems.js';
import { MemoryStream, type MemoryStreamConfig } from '../streams.js';
import type { TopicCatalog } from './catalogs.js';
import { type PublishedMessage, documentOf, publicationOf } from './published.js';
import { type MemoryTopicConfig, RoutedLog } from './routed-log.js';
import { checkSubject } from './subjects.js';
import { OF_TOPIC } from './targets.js';

/** A topic that has a log of its own. */
export class TopicLog extends RoutedLog {
  constructor(name: string, config: MemoryTopicConfig, now: Clock, topics: () => TopicCatalog) {
    super(name, config, now, new MemoryStream(`${OF_TOPIC}${name}`, logConfig(config), now), topics);
  }

  /** Whether it refuses what no route takes. */
  protected get refusesUnmatched(): boolean {
    return this.config.unmatched === 'refuse';
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

  /** Return whether a live route takes a message. */
  protected isTaken(fields: Fields): boolean {
    return this.liveRoutes(documentOf(publicationOf(fields), this.meta)).length > 0;
  }

  /** Append a message for the routes that take it; return the number of live ones. */
  protected append(fields: Fields): { message: PublishedMessage; routes: number } {
    const { body, body_base64, ...others } = fields;
    const data = body_base64 === undefined ? { data: body } : { data_base64: body_base64 };
    const [place] = this.log.append([{ ...others, ...data }]);
    const record = this.log.shard(place?.shard as number).records.at(-1) as PublishedMessage['record'];
    return this.add(record, fields);
  }
}

/** A topic that is published to. */
export class MemoryTopic extends TopicLog {
  override readonly isPublishedTo = true;
  readonly #accepted: Deduplication<PublishedMessage>;

  constructor(name: string, config: MemoryTopicConfig, now: Clock, topics: () => TopicCatalog) {
    super(name, config, now, topics);
    this.#accepted = new Deduplication(now);
  }

  override get isFifo(): boolean {
    return this.config.type === 'fifo';
  }

  /** Publish messages: all of them, or none if one is refused; return a result for each. */
  override publish(messages: Fields[]): Fields[] {
    try {
      return this.accept(messages);
    } catch (error) {
      if (!(error instanceof MemoryProblem) || error.code !== 'unroutable') throw error;
      return messages.map(() => ({ error: error.item }));
    }
  }

  /** Accept messages, and decide which routes take them. Throws MemoryProblem. */
  override accept(messages: Fields[]): Fields[] {
    messages.forEach((fields, nth) => {
      this.#check(fields, messages.length > 1 ? `/messages/${nth}` : '');
    });
    messages.forEach((fields, nth) => {
      if (this.refusesUnmatched && !this.isTaken(fields))
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
    const earlier = this.#accepted.find(dedupKey);
    if (earlier !== undefined) return { ...resultOf(earlier), duplicate: true, routes: null };
    const { message, routes } = this.append(fields);
    this.#accepted.add(dedupKey, message);
    return { ...resultOf(message), routes };
  }

  #dedupKey(fields: Fields): string {
    if (!this.isFifo) return '';
    const id = (fields.dedup_id as string | undefined) || contentOf('body', fields).text;
    return this.config.dedup_scope === 'key' ? `${String(fields.key)} ${id}` : id;
  }
}

function resultOf({ id, record }: PublishedMessage): Fields {
  return { id, shard: record.shard, offset: record.offset, duplicate: false };
}

function logConfig({ shards, retention_seconds, message_bytes_max }: MemoryTopicConfig): MemoryStreamConfig {
  return { ...DEFAULTS.StreamConfig, shards, retention_seconds, record_bytes_max: message_bytes_max, paused: false };
}
