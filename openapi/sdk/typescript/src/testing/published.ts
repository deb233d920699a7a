/** Messages of in-memory topics, and the copies that routes take. */

import { contentOf, shownContent } from './content.js';
import { type Fields, moment } from './definitions.js';
import { isObject } from './matches.js';
import { type MemoryMember, type MemoryTarget, choose } from './spreads.js';
import type { StoredRecord } from './streams.js';

/** A message of a topic. `fields` are those of the publication, in the form of the REST API. */
export class PublishedMessage {
  readonly id: string;
  readonly record: StoredRecord;
  readonly fields: Fields;
  readonly copies: Copy[] = [];

  constructor(id: string, record: StoredRecord, fields: Fields) {
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

/** Return a message, before or after it is published, as matches see it. */
export function documentOf(fields: Fields, topic: string): Fields {
  const content = contentOf('body', fields);
  const { subject = '', key, headers = {} } = fields;
  const document: Fields = { subject, headers, meta: { topic } };
  if (key) document.key = key;
  if (content.contentType !== '') document.content_type = content.contentType;
  const own = Object.entries(headers as Record<string, string>).map(([name, value]) => name + value);
  document.size = content.size + new TextEncoder().encode(own.join('')).length;
  try {
    document.body = content.json();
  } catch {
    // a body that is not JSON has no fields
  }
  return document;
}

/** A message that a route takes, with the configuration of the route at that time. */
export class Copy {
  readonly message: PublishedMessage;
  readonly config: Fields;
  readonly number: number;
  state: 'waiting' | 'finished' | 'shadow' = 'waiting';

  constructor(message: PublishedMessage, config: Fields, number: number) {
    this.message = message;
    this.config = config;
    this.number = number;
  }

  /** Return what is left of the message's own time to live, in seconds; 0 without one. */
  left(now: number): number {
    const ttl = Number(this.message.fields.ttl_seconds ?? 0);
    return ttl > 0 ? Math.max(0.001, ttl - (now - this.message.record.arrivedAt) / 1000) : 0;
  }

  /** Return whether the message's own time to live is over. */
  isExpired(now: number): boolean {
    const ttl = Number(this.message.fields.ttl_seconds ?? 0);
    return ttl > 0 && this.message.record.arrivedAt + ttl * 1000 <= now;
  }

  /** Deduplication id that no other copy has. */
  get dedupId(): string {
    const own = this.message.fields.dedup_id;
    return [this.message.id, this.number, ...(own ? [own] : [])].join('.');
  }

  /** Queue, stream or topic that gets the copy. */
  get target(): MemoryTarget {
    return this.member ?? (this.config.target as MemoryTarget);
  }

  /** The member of a spread that gets the copy; undefined for another target. */
  get member(): MemoryMember | undefined {
    const { spread, by } = this.config.target as MemoryTarget;
    if (spread === undefined) return undefined;
    const value = by === 'key' ? this.key : by === 'subject' ? this.message.subject : '';
    return choose(spread, value === '' ? this.message.id : value);
  }

  /** Key of the copy, by the route. */
  get key(): string {
    const source = this.config.key;
    if (isObject(source)) return source.constant as string;
    if (source === null || source === undefined || source === 'key') return this.message.record.key;
    if (source === 'subject') return this.message.subject;
    return textAt(documentOf(this.message.fields, ''), source as string);
  }
}

/** Return the text of the value at a JSON Pointer; empty without one. */
function textAt(document: Fields, pointer: string): string {
  let value: unknown = document;
  for (const token of pointer.split('/').slice(1)) {
    const word = token.replaceAll('~1', '/').replaceAll('~0', '~');
    value = typeof value === 'object' && value !== null ? (value as Fields)[word] : undefined;
  }
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
