/** In-memory streams: shards, appends by key, and reads from a position. */

import type { Body } from '../bodies.js';
import { randomKey } from '../transport/effects.js';
import { contentOf, given, shownContent } from './content.js';
import { decodeCursor, encodeCursor } from './cursors.js';
import { type Clock, Defined, type Fields, moment } from './definitions.js';
import { MemoryProblem } from './problems.js';

const HASH_KEYS = 2n ** 128n;
const LIMIT = 1000;

/** Configuration of a stream, with the fields of the REST API. */
export interface MemoryStreamConfig extends Fields {
  shards: number;
  retention_seconds: number | null;
  record_bytes_max: number;
  paused: boolean;
}

/** A record of a stream. `arrivedAt` is in milliseconds since 1970. */
export interface StoredRecord {
  readonly shard: number;
  readonly offset: number;
  readonly content: Body;
  readonly text: string;
  readonly headers: Record<string, string>;
  readonly key: string;
  readonly arrivedAt: number;
  readonly eventTime: string | undefined;
  readonly sequence: number;
  /** Of a message that was published to a topic. */
  readonly subject: string;
  /** Number of routes that it has passed. */
  readonly hops: number;
}

/** Position in each shard. */
export type Positions = Map<number, number>;

/** Records of a shard with dense offsets; the first ones may have expired. */
export class Shard {
  readonly index: number;
  start = 0;
  records: StoredRecord[] = [];

  constructor(index: number) {
    this.index = index;
  }

  /** Offset of the next record. */
  get next(): number {
    return this.start + this.records.length;
  }

  /** Return the records from an offset. */
  since(offset: number): StoredRecord[] {
    return this.records.slice(Math.max(0, offset - this.start));
  }

  /** Return the offset of the first record that arrived at a time or later. */
  offsetAt(at: number): number {
    return this.records.find(({ arrivedAt }) => arrivedAt >= at)?.offset ?? this.next;
  }

  /** Delete the records that arrived before a time. */
  expire(before: number): void {
    const start = this.offsetAt(before);
    this.records = this.since(start);
    this.start = start;
  }

  /** Return the expired offsets from an offset. */
  gap(offset: number): { shard: number; first: number; next: number; reason: string } | undefined {
    if (offset >= this.start) return undefined;
    return { shard: this.index, first: offset, next: this.start, reason: 'expired' };
  }
}

/** A stream. */
export class MemoryStream extends Defined<MemoryStreamConfig> {
  readonly id = randomKey().slice(16);
  readonly #shards: Shard[];
  #sequence = 0;
  #turn = 0;

  constructor(name: string, config: MemoryStreamConfig, now: Clock) {
    super(name, config, now);
    this.#shards = Array.from({ length: config.shards }, (_, index) => new Shard(index));
  }

  /** Shards, without expired records. */
  get shards(): Shard[] {
    const { retention_seconds: retention } = this.config;
    if (retention !== null) for (const shard of this.#shards) shard.expire(this.now() - retention * 1000);
    return this.#shards;
  }

  /** Records of all shards, by arrival. */
  get records(): StoredRecord[] {
    return this.shards.flatMap(({ records }) => records).sort((one, other) => one.sequence - other.sequence);
  }

  override shown(): Fields {
    const { paused, ...config } = super.shown();
    void paused;
    return { ...config, open_shards: this.#shards.length };
  }

  /** Return a shard. Throws MemoryProblem. */
  shard(index: number): Shard {
    const shard = this.shards[index];
    if (shard === undefined) throw new MemoryProblem('shard_not_found', `The stream has no shard ${index}.`);
    return shard;
  }

  // ── Appending ──

  /** Append records; those without a key go to one shard, another with each call. */
  append(records: Fields[]): Fields[] {
    this.#check(records);
    const turn = this.#turn++ % this.#shards.length;
    return records.map((fields) => this.#append(fields, this.shard(this.#place(fields, turn))));
  }

  /** Append records to one shard, all of them or none. */
  appendToShard(index: number, records: Fields[], expected: number | null | undefined): Fields[] {
    this.#check(records);
    const shard = this.shard(index);
    if (typeof expected === 'number' && expected !== shard.next)
      throw new MemoryProblem('offset_mismatch', `The shard's next offset is ${shard.next}.`, { next_offset: shard.next });
    return records.map((fields) => this.#append(fields, shard));
  }

  #check(records: Fields[]): void {
    if (records.some((fields) => contentOf('data', fields).size > this.config.record_bytes_max))
      throw new MemoryProblem('message_too_large', 'The record is too large.');
  }

  #place(fields: Fields, turn: number): number {
    if (fields.hash_key) return Number((BigInt(fields.hash_key as string) * BigInt(this.#shards.length)) / HASH_KEYS);
    return fields.key ? hashOf(fields.key as string) % this.#shards.length : turn;
  }

  #append(fields: Fields, shard: Shard): Fields {
    const content = contentOf('data', fields);
    const { index, next: offset } = shard;
    shard.records.push({
      shard: index,
      offset,
      content,
      text: content.text,
      headers: (fields.headers as Record<string, string> | undefined) ?? {},
      key: (fields.key as string | undefined) ?? '',
      subject: (fields.subject as string | undefined) ?? '',
      hops: (fields.hops as number | undefined) ?? 0,
      arrivedAt: this.now(),
      eventTime: (fields.event_time as string | null | undefined) ?? undefined,
      sequence: this.#sequence++,
    });
    return { shard: index, offset, duplicate: false };
  }

  // ── Reading ──

  /** Read all shards by arrival. */
  read(query: URLSearchParams): Fields {
    const positions = this.#positions(query);
    const { records, gaps } = this.since(positions, limitOf(query));
    const next_cursor = encodeCursor(this.id, [...positions]);
    return { records: records.map((record) => shownRecord(record)), next_cursor, behind_seconds: 0, tier: 'hot', gaps };
  }

  /** Return the next records of shards by arrival, and gaps; advance the positions. */
  since(positions: Positions, limit: number): { records: StoredRecord[]; gaps: Fields[] } {
    const places = [...positions].map(([index, offset]) => ({ shard: this.shard(index), offset }));
    const gaps = places.flatMap(({ shard, offset }) => shard.gap(offset) ?? []);
    const waiting = places.flatMap(({ shard, offset }) => shard.since(offset));
    const records = waiting.sort((one, other) => one.sequence - other.sequence).slice(0, limit);
    for (const { shard, next } of gaps) positions.set(shard, next);
    for (const { shard, offset } of records) positions.set(shard, offset + 1);
    return { records, gaps: gaps.map((gap) => ({ ...gap })) };
  }

  #positions(query: URLSearchParams): Positions {
    const cursor = query.get('cursor');
    if (cursor !== null) {
      const [streamId, positions] = decodeCursor<[string, [number, number][]]>(cursor);
      if (streamId !== this.id) throw new MemoryProblem('invalid_cursor', 'The cursor belongs to a deleted stream.');
      return new Map(positions);
    }
    const time = query.get('time');
    if (time !== null) return this.positionsAt(Date.parse(time));
    return query.get('from') === 'latest' ? this.ends() : this.starts();
  }

  /** Return the oldest offset of each shard. */
  starts(): Positions {
    return new Map(this.shards.map(({ index, start }) => [index, start]));
  }

  /** Return the next offset of each shard. */
  ends(): Positions {
    return new Map(this.shards.map(({ index, next }) => [index, next]));
  }

  /** Return the offset of the first record that arrived at a time or later, by shard. */
  positionsAt(at: number): Positions {
    return new Map(this.shards.map((shard) => [shard.index, shard.offsetAt(at)]));
  }

  /** Read one shard from an offset, a time, or its last records. */
  readShard(index: number, query: URLSearchParams): Fields {
    if ((query.get('stream_id') ?? this.id) !== this.id)
      throw new MemoryProblem('stream_recreated', 'The offset belongs to an earlier stream.');
    const shard = this.shard(index);
    const offset = offsetOf(shard, query);
    if (offset > shard.next)
      throw new MemoryProblem('offset_out_of_range', `The shard's next offset is ${shard.next}.`, {
        next_offset: shard.next,
      });
    const records = shard.since(offset).slice(0, limitOf(query));
    return {
      records: records.map((record) => shownRecord(record, false)),
      stream_id: this.id,
      next_offset: Math.max(offset, shard.start) + records.length,
      start: shard.start,
      tip: shard.next,
      behind_seconds: 0,
      tier: 'hot',
      ended: false,
      ...given('gap', shard.gap(offset)),
    };
  }

  /** Return the shards with their extents. */
  listShards(): Fields {
    return { stream_id: this.id, items: this.shards.map((shard) => this.#extent(shard)) };
  }

  #extent({ index, start, next, records }: Shard): Fields {
    const bound = (place: number) => (HASH_KEYS * BigInt(place)) / BigInt(this.#shards.length);
    return {
      index,
      open: true,
      parents: [],
      opened_at: moment(this.createdAt),
      closed_at: null,
      first_hash_key: String(bound(index)),
      last_hash_key: String(bound(index + 1) - 1n),
      start,
      next,
      bytes: records.reduce((sum, { content }) => sum + content.size, 0),
      fenced: false,
    };
  }
}

/** Return a record as a read does. */
export function shownRecord(record: StoredRecord, withShard = true): Fields {
  return {
    ...(withShard ? { shard: record.shard } : {}),
    offset: record.offset,
    ...shownContent('data', record.content),
    ...given('key', record.key),
    ...given('subject', record.subject),
    ...given('headers', record.headers),
    ...given('event_time', record.eventTime),
    arrival_time: moment(record.arrivedAt),
  };
}

/** The limit of a read. */
export function limitOf(query: URLSearchParams): number {
  return Number(query.get('limit') ?? LIMIT);
}

function offsetOf(shard: Shard, query: URLSearchParams): number {
  const [offset, time, tail] = ['offset', 'time', 'tail'].map((name) => query.get(name) ?? '');
  if (offset) return Number(offset);
  if (time) return shard.offsetAt(Date.parse(time));
  return tail ? Math.max(shard.start, shard.next - Number(tail)) : shard.start;
}

/** FNV-1a: keys stay in one shard, though not in that of the real service. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(key)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
