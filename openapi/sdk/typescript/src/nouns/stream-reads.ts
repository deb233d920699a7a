/** Reading a stream to its end, or indefinitely. */

import { type Gap, type OnGap, StreamRecord, gapText } from '../deliveries.js';
import { readShard, readStream } from '../generated/sdk.gen.js';
import type { GapOut, RecordOut } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';

/** Start of a read: the oldest or newest record, or a time, for records that arrived at or after it. */
export type Start = 'earliest' | 'latest' | Date;

export interface ReadOptions {
  /** Default: 'earliest', or 'latest' for `follow`. */
  start?: Start;
  /** Read one shard only. */
  shard?: number;
  /** Offset in the shard; instead of `start`. */
  offset?: number;
  /** `nextCursor` of an earlier page of all shards; instead of `start`. */
  cursor?: string;
  /** Records of one page; default: 1000. */
  limit?: number;
  onGap?: OnGap;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

/** Records of one call, by arrival, and where to continue: `nextCursor`, or `nextOffset` of one shard. */
export interface RecordPage {
  records: StreamRecord[];
  gaps: Gap[];
  nextCursor: string;
  nextOffset: number;
  behindSeconds: number;
}

type Position = { cursor?: string; from?: 'earliest' | 'latest'; time?: string };
type ShardPosition = { offset?: number; time?: string; stream_id?: string };

const WAIT_S = 20;
const LIMIT = 1000;

/** Continuous reads of a stream. */
export class StreamReads {
  readonly name: string;
  protected readonly transport: Transport;

  constructor(transport: Transport, name: string) {
    this.transport = transport;
    this.name = name;
  }

  protected get at() {
    return { client: this.transport.client, path: { stream: this.name } };
  }

  /**
   * Yield the records from the oldest one, or from elsewhere, to the current end of the stream.
   *
   * Records of one shard are in order; records of all shards are ordered by arrival, and records with the same key stay in
   * order. `onGap` is called for offsets that are no longer available.
   */
  read(options: ReadOptions = {}): AsyncGenerator<StreamRecord, void, void> {
    return this.#records(options, false);
  }

  /** Yield new records, or those from elsewhere, and wait for more, until the signal is aborted. */
  follow(options: ReadOptions = {}): AsyncGenerator<StreamRecord, void, void> {
    return this.#records({ start: 'latest', ...options }, true);
  }

  async *#records(options: ReadOptions, follow: boolean): AsyncGenerator<StreamRecord, void, void> {
    const { logger } = this.transport.settings;
    const onGap =
      options.onGap ??
      ((gap) => {
        logger.warn(gapText(gap));
      });
    for await (const page of this.pages(options, follow)) {
      for (const gap of page.gaps) onGap(gap);
      for (const record of page.records) {
        if (options.signal?.aborted) return;
        yield record;
      }
    }
  }

  /** Return the options of a read that starts at what is the newest record now, if 'latest' is requested. */
  async located(options: ReadOptions): Promise<ReadOptions> {
    const { start, shard, offset, cursor, signal } = options;
    if (start !== 'latest' || offset !== undefined || cursor !== undefined) return options;
    if (shard !== undefined) return { ...options, ...(await this.#shardPosition(shard, options)) };
    const { data } = await readStream({ ...this.at, signal, query: { from: start, limit: 1 } });
    return { ...options, cursor: data.next_cursor };
  }

  /** Yield pages, each with the position to continue at, its lag, and its gaps. Otherwise like `read` or `follow`. */
  async *pages(options: ReadOptions = {}, follow = false): AsyncGenerator<RecordPage, void, void> {
    const { shard, signal } = options;
    const pages = shard === undefined ? this.#allShards(options, follow) : this.#oneShard(shard, options, follow);
    try {
      if (!signal?.aborted) yield* pages;
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  }

  async *#allShards(options: ReadOptions, follow: boolean): AsyncGenerator<RecordPage, void, void> {
    const { limit = LIMIT, signal } = options;
    const waiting = follow ? { wait_seconds: WAIT_S } : {};
    let position = positionOf(await this.located(options)); // a repeat of a call from 'latest' would begin later
    for (;;) {
      const { data } = await readStream({ ...this.at, signal, query: { ...position, ...waiting, limit } });
      const { records, gaps, next_cursor: nextCursor, behind_seconds: behindSeconds } = data;
      if (records.length > 0 || gaps.length > 0) {
        yield { ...pageOf(records, gaps), nextCursor, nextOffset: -1, behindSeconds };
      } else if (!follow && nextCursor === position.cursor) return;
      position = { cursor: nextCursor };
    }
  }

  async *#oneShard(shard: number, options: ReadOptions, follow: boolean): AsyncGenerator<RecordPage, void, void> {
    const { limit = LIMIT, signal } = options;
    const at = { ...this.at, signal, path: { stream: this.name, shard } };
    const waiting = follow ? { wait_seconds: WAIT_S } : {};
    let position = await this.#shardPosition(shard, options);
    for (;;) {
      const { data } = await readShard({ ...at, query: { ...position, ...waiting, limit } });
      const { records, gap, next_offset: nextOffset, behind_seconds: behindSeconds } = data;
      if (records.length > 0 || gap !== undefined) {
        yield { ...pageOf(records, gap === undefined ? [] : [gap], shard), nextCursor: '', nextOffset, behindSeconds };
      }
      if (data.ended || !(follow || nextOffset < data.tip)) return;
      position = { offset: nextOffset, stream_id: data.stream_id };
    }
  }

  async #shardPosition(shard: number, { start = 'earliest', offset, signal }: ReadOptions): Promise<ShardPosition> {
    if (offset !== undefined) return { offset };
    if (start instanceof Date) return { time: start.toISOString() };
    if (start === 'earliest') return {};
    const path = { stream: this.name, shard };
    const { data } = await readShard({ ...this.at, signal, path, query: { tail: 1 } });
    return { offset: data.tip, stream_id: data.stream_id };
  }
}

function positionOf({ start = 'earliest', cursor }: ReadOptions): Position {
  if (cursor !== undefined) return { cursor };
  return start instanceof Date ? { time: start.toISOString() } : { from: start };
}

function pageOf(records: RecordOut[], gaps: GapOut[], shard?: number): Pick<RecordPage, 'records' | 'gaps'> {
  return {
    records: records.map((record) => new StreamRecord(record, shard)),
    gaps: gaps.map((gap) => ({ ...gap, shard: shard ?? gap.shard ?? -1 })),
  };
}
