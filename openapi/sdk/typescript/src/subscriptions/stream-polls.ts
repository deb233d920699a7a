/** Subscription to a stream by long polls. */

import type { OnGap, StreamRecord } from '../deliveries.js';
import type { ReadOptions, Start } from '../nouns/stream-reads.js';
import { Closing } from './closing.js';
import type { Channel } from './subscription.js';

export const NO_FILTER = 'A filter needs a WebSocket: see the option WebSocket of the client.';

/** Stream of a subscription. */
export interface PolledStream {
  readonly name: string;
  follow(options: ReadOptions): AsyncGenerator<StreamRecord, void, void>;
  located(options: ReadOptions): Promise<ReadOptions>;
  shards(): Promise<unknown>;
}

interface Position {
  start: Start;
  offsets?: Record<number, number>;
  shard?: number;
  filter?: Record<string, unknown>;
  messages?: number;
  onGap: OnGap;
}

/** Follows a stream, or one of its shards. */
export class StreamPolls implements Channel<StreamRecord> {
  readonly #stream: PolledStream;
  readonly #closing = new Closing();
  readonly #options: ReadOptions;
  #records: AsyncGenerator<StreamRecord, void, void> | undefined;
  #opening: Promise<void> | undefined;

  constructor(stream: PolledStream, position: Position) {
    this.#stream = stream;
    this.#options = { ...readOf(position), signal: this.#closing.signal };
  }

  open(): Promise<void> {
    this.#opening ??= this.#begin();
    return this.#opening;
  }

  async #begin(): Promise<void> {
    await this.#stream.shards(); // which throws if there is no such stream
    this.#records = this.#stream.follow(await this.#stream.located(this.#options));
  }

  async next(): Promise<StreamRecord | undefined> {
    await this.open();
    const result = await this.#records?.next();
    return result?.value ?? undefined;
  }

  commit(): Promise<void> {
    return Promise.reject(new TypeError('Records of a stream are committed by the members of a group.'));
  }

  close(): Promise<void> {
    this.#closing.close();
    return Promise.resolve();
  }
}

/** Return the read of a subscription. Throws TypeError for what only a WebSocket can do. */
function readOf({ start, offsets, shard, filter, messages, onGap }: Position): ReadOptions {
  if (filter !== undefined) throw new TypeError(NO_FILTER);
  if (offsets === undefined) return { start, shard, limit: messages, onGap };
  const [[first, offset] = ['', 0], ...others] = Object.entries(offsets);
  if (others.length > 0)
    throw new TypeError('Offsets of several shards need a WebSocket: see the option WebSocket of the client.');
  return { shard: shard ?? Number(first), offset, limit: messages, onGap };
}
