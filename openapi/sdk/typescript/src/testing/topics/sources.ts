/** Streams and queues that are the source of routes. */

import { DEFAULTS } from '../../defaults.js';
import { shownContent } from '../content.js';
import type { Clock, Fields } from '../definitions.js';
import type { StoredMessage } from '../messages.js';
import type { MemoryQueue } from '../queues.js';
import type { MemoryStream, Positions } from '../streams.js';
import type { TopicCatalog } from './catalogs.js';
import { publicHeaders } from './published.js';
import { type MemoryTopicConfig, RoutedLog } from './routed-log.js';
import { OF_STREAM } from './targets.js';
import { TopicLog } from './topic.js';

/** Reason of a dead letter that no route took. */
const UNROUTABLE = 'unroutable';
const OF_STREAM_SHOWN = ['open_shards', 'version', 'created_at', 'changed_at'];

/** A stream under the name of its routes, which take the records that are appended. */
export class StreamTopic extends RoutedLog {
  override readonly isOfStream = true;
  readonly #positions: Positions;

  constructor(stream: MemoryStream, now: Clock, topics: () => TopicCatalog) {
    super(`${OF_STREAM}${stream.name}`, { ...DEFAULTS.TopicConfig } as MemoryTopicConfig, now, stream, topics);
    this.#positions = stream.ends();
  }

  override get described(): string {
    return `Stream '${this.log.name}'`;
  }

  override get meta(): Fields {
    return {};
  }

  override shown(): Fields {
    const stream = this.log.shown();
    const names = [...Object.keys(DEFAULTS.TopicConfig ?? {}), ...OF_STREAM_SHOWN].filter((name) => name in stream);
    return {
      ...DEFAULTS.TopicConfig,
      ...Object.fromEntries(names.map((name) => [name, stream[name]])),
      ...{ name: this.name, stream: this.log.name, unmatched: 'drop', message_bytes_max: stream.record_bytes_max },
    };
  }

  /** Let the routes take the records since the last call; return whether there are any. */
  override collect(): boolean {
    const { records } = this.log.since(this.#positions, Infinity);
    for (const record of records) this.add(record, {});
    return records.length > 0;
  }
}

/** A topic that takes the ready messages of a queue. */
export class QueueTopic extends TopicLog {
  readonly #queue: MemoryQueue;

  constructor(name: string, config: MemoryTopicConfig, now: Clock, topics: () => TopicCatalog, queue: MemoryQueue) {
    super(name, config, now, topics);
    this.#queue = queue;
  }

  /** Take the ready messages, while there is a live route; what no route takes is a dead letter, or dropped. */
  override collect(): boolean {
    if (!this.routes.all().some(({ isLive }) => isLive)) return false;
    const messages = this.#queue.transferable();
    for (const message of messages) this.#take(message);
    return messages.length > 0;
  }

  #take(message: StoredMessage): void {
    const fields = this.#publication(message);
    if (this.refusesUnmatched && !this.isTaken(fields)) {
      this.#queue.reject(message, UNROUTABLE);
      return;
    }
    this.#queue.clear(message);
    this.append(fields);
  }

  /** Return a message as the routes take it. An empty body becomes a line feed. */
  #publication({ content, headers, expiresAt, ...message }: StoredMessage): Fields {
    const { subject, group: key, dedupId: dedup_id, priority, replyTo: reply_to, hops } = message;
    return {
      ...(content.size === 0 ? { body: '\n', content_type: content.contentType } : shownContent('body', content)),
      headers: publicHeaders(headers),
      ttl_seconds: expiresAt > 0 ? (expiresAt - this.now()) / 1000 : 0,
      ...{ subject, key, dedup_id, priority, reply_to, hops },
    };
  }
}
