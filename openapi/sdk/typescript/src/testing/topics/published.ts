/** Messages of in-memory topics, as they are stored, shown, and seen by matches. */

import { contentOf, shownContent } from '../content.js';
import { type Fields, moment } from '../definitions.js';
import type { StoredRecord } from '../streams.js';
import type { Copy } from './copies.js';

/** First character of the names of headers that the service adds. */
const RESERVED = ':';

/** A message of a topic, or a record of a stream that has routes. `fields` are those of the publication in the REST API. */
export class PublishedMessage {
  readonly id: string;
  readonly record: StoredRecord;
  readonly fields: Fields;
  readonly copies: Copy[] = [];

  constructor(id: string, record: StoredRecord, fields: Fields = {}) {
    this.id = id;
    this.record = record;
    this.fields = fields;
  }

  get subject(): string {
    return this.record.subject;
  }

  /** The body as text. */
  get text(): string {
    return this.record.text;
  }

  /** The body as a JSON value. Throws SyntaxError for invalid JSON. */
  json<T = unknown>(): T {
    return this.record.content.json<T>();
  }

  /** Return the message as the API does. */
  shown(): Fields {
    const { shard, offset, subject, key, headers, content, arrivedAt } = this.record;
    const { dedup_id = '', delay_seconds = null, ttl_seconds, priority = 0 } = this.fields;
    const { body = null, body_base64 = null } = shownContent('body', content);
    return {
      id: this.id,
      ...{ shard, offset, subject, key, headers, headers_base64: {}, content_type: content.contentType },
      ...{ dedup_id, delay_seconds, ttl_seconds: ttl_seconds || 0, priority, body, body_base64 },
      published_at: moment(arrivedAt),
    };
  }
}

/** Content of a message, of which its document is made. */
export type MessageContent = Pick<StoredRecord, 'content' | 'headers' | 'key' | 'subject'>;

/** Return the content of a publication. */
export function publicationOf(fields: Fields): MessageContent {
  const { subject = '', key = '', headers = {} } = fields as Partial<MessageContent>;
  return { content: contentOf('body', fields), subject, key, headers };
}

/** Return a message as matches see it. `meta` says where it is. */
export function documentOf({ content, headers: all, key, subject }: MessageContent, meta: Fields): Fields {
  const headers = publicHeaders(all);
  const document: Fields = { subject, headers, meta };
  if (key) document.key = key;
  if (content.contentType !== '') document.content_type = content.contentType;
  const own = Object.entries(headers).map(([name, value]) => name + value);
  document.size = content.size + new TextEncoder().encode(own.join('')).length;
  try {
    document.body = content.json();
  } catch {
    // a body that is not JSON has no fields
  }
  return document;
}

/** Return the headers that a sender has set. */
export function publicHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(RESERVED)));
}
