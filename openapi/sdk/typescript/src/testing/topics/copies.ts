/** Copies of messages for the targets of in-memory routes, and their dead letters. */

import { shownContent } from '../content.js';
import { type Fields, moment } from '../definitions.js';
import { MemoryProblem } from '../problems.js';
import { isObject } from './matches.js';
import { type PublishedMessage, documentOf, publicHeaders } from './published.js';
import type { MemoryRoute, MemoryRouteConfig } from './route.js';
import { type MemoryMember, type MemoryTarget, choose } from './spreads.js';

const HOPS_MAX = 8;

/** A message that a route takes, with the configuration of the route at that time. */
export class Copy {
  readonly message: PublishedMessage;
  readonly number: number;
  readonly route: MemoryRoute;
  readonly #config: MemoryRouteConfig;
  state: 'waiting' | 'finished' | 'shadow' = 'waiting';

  constructor(message: PublishedMessage, route: MemoryRoute) {
    this.message = message;
    this.number = route.number;
    this.route = route;
    this.#config = route.config;
  }

  /** Return whether the message's own time to live is over. */
  isExpired(now: number): boolean {
    const ttl = Number(this.message.fields.ttl_seconds ?? 0);
    return ttl > 0 && this.message.record.arrivedAt + ttl * 1000 <= now;
  }

  /** Queue, stream or topic that gets the copy. */
  get target(): MemoryTarget {
    return this.member ?? this.#config.target;
  }

  /** The member of a spread that gets the copy; undefined for another target. */
  get member(): MemoryMember | undefined {
    const { spread, by } = this.#config.target;
    if (spread === undefined) return undefined;
    const value = by === 'key' ? this.#key : by === 'subject' ? this.message.subject : '';
    return choose(spread, value === '' ? this.message.id : value);
  }

  /** Key of the copy, by the route. */
  get #key(): string {
    const { key: source } = this.#config;
    const { record } = this.message;
    if (isObject(source)) return source.constant as string;
    if (source === null || source === undefined || source === 'key') return record.key;
    if (source === 'subject') return record.subject;
    return textAt(documentOf(record, this.route.topic.meta), source as string);
  }

  // ── For targets ──

  /** Return the copy for a queue. Throws MemoryProblem. */
  asMessage(now: number, isFifo: boolean): Fields {
    const { delay_seconds: delay, priority, reply_to } = this.message.fields;
    const { config } = this.route;
    const message = {
      ...this.#content(),
      delay_seconds: delay ?? (config.delay_seconds || null),
      ttl_seconds: this.#left(now) || config.ttl_seconds,
      ...{ reply_to, hops: this.#hops() },
    };
    return isFifo ? { ...message, group: this.#key, dedup_id: this.#dedupId } : { ...message, key: this.#key, priority };
  }

  /** Return the copy for a stream. Throws MemoryProblem. */
  asRecord(): Fields {
    const { content, eventTime: event_time } = this.message.record;
    const { body: _, body_base64: __, ...others } = this.#content();
    return { ...others, ...shownContent('data', content), key: this.#key, event_time, hops: this.#hops() };
  }

  /** Return the copy for another topic. Throws MemoryProblem. */
  asPublication(now: number, isFifo: boolean): Fields {
    const { delay_seconds, priority, reply_to } = this.message.fields;
    return {
      ...this.#content(),
      ...{ delay_seconds, reply_to, hops: oneMore(this.message.record.hops), key: this.#key },
      ttl_seconds: this.#left(now),
      ...(isFifo ? { dedup_id: this.#dedupId } : { priority }),
    };
  }

  /** Whether the message is itself a dead letter of one that had passed too many topics. */
  get hasNoDeadLetter(): boolean {
    return this.message.record.hops > HOPS_MAX;
  }

  /** Return the message as it was published, for a dead-letter queue. */
  asDeadLetter(problem: MemoryProblem, now: number, isFifo: boolean): Fields {
    const { headers, hops, key, shard } = this.message.record;
    const dead_letter = {
      source: `route:${this.route.topic.name}/${this.route.name}`,
      reason: problem.code,
      died_at: moment(now),
      ...{ failures: 1, crash_count: 0, last_failure_reason: '', details: problem.message },
    };
    const place = isFifo ? { group: key || `shard ${shard}`, dedup_id: this.#dedupId } : {};
    const own = { headers: { ...publicHeaders(headers), ...this.#sourceHeaders }, key, hops: hops + 1, dead_letter };
    return { ...this.#content(), ...own, ...place };
  }

  /** Deduplication id that no other copy has. */
  get #dedupId(): string {
    const own = this.message.fields.dedup_id;
    return [this.message.id, this.number, ...(own ? [own] : [])].join('.');
  }

  /** Return what is left of the message's own time to live, in seconds; 0 without one. */
  #left(now: number): number {
    const ttl = Number(this.message.fields.ttl_seconds ?? 0);
    return ttl > 0 ? Math.max(0.001, ttl - (now - this.message.record.arrivedAt) / 1000) : 0;
  }

  /** Return the number of routes that the copy has passed; what was published to this topic itself has none. */
  #hops(): number {
    const { hops } = this.message.record;
    return hops > 0 || !this.route.topic.isPublishedTo ? oneMore(hops) : 0;
  }

  /** Return the content with its origin: the topic, or the place in a stream, and the route. */
  #content(): Fields {
    const { content, headers, subject } = this.message.record;
    const { name, isOfStream } = this.route.topic;
    return {
      ...shownContent('body', content),
      headers: { ...publicHeaders(headers), ...(isOfStream ? this.#sourceHeaders : {}) },
      ...{ subject, topic: isOfStream ? '' : name, route: this.route.name },
    };
  }

  get #sourceHeaders(): Record<string, string> {
    const { shard, offset, arrivedAt } = this.message.record;
    return {
      ':source_stream': this.route.topic.log.name,
      ':source_shard': String(shard),
      ':source_offset': String(offset),
      ':source_time': String(Math.trunc(arrivedAt)),
    };
  }
}

function oneMore(hops: number): number {
  if (hops >= HOPS_MAX) throw new MemoryProblem('too_many_hops', `The message has passed ${HOPS_MAX} topics.`, {}, 422);
  return hops + 1;
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
