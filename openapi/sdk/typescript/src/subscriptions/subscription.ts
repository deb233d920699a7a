/** Subscriptions: deliveries as they arrive, over a WebSocket, or by long polls where there is none. */

/// <reference lib="esnext.disposable" preserve="true" />

import { type Message, type OnGap, type StreamRecord, gapText } from '../deliveries.js';
import type { Transport } from '../transport/transport.js';
import { GroupPolls, type PolledGroup } from './group-polls.js';
import { type PolledQueue, QueuePolls } from './queue-polls.js';
import { SocketChannel } from './socket.js';
import type { Start } from '../nouns/stream-reads.js';
import { positionOf, streamOf } from './starting.js';
import { NO_FILTER, type PolledStream, StreamPolls } from './stream-polls.js';

interface Prefetch {
  /** Prefetch limit; default: 100 messages and 1 MiB. */
  messages?: number;
  bytes?: number;
  /** Closes the subscription. */
  signal?: AbortSignal;
}

export interface QueueSubscribeOptions extends Prefetch {
  visibilityTimeoutSeconds?: number;
  /** Extend the visibility timeout while the subscription is open; default: true. */
  autoExtend?: boolean;
}

export interface StreamSubscribeOptions extends Prefetch {
  /** Default: 'latest'. */
  start?: Start;
  /** Next offset by shard; instead of `start`. */
  offsets?: Record<number, number>;
  shard?: number;
  /** As the filter of a replay: `keys`, `headers`, `body`, `sample`, `match`. */
  filter?: Record<string, unknown>;
  onGap?: OnGap;
}

export interface GroupSubscribeOptions extends Prefetch {
  /** As the filter of a replay; records that it does not select are passed over. */
  filter?: Record<string, unknown>;
  onGap?: OnGap;
}

/** Connection of a subscription. */
export interface Channel<Item> {
  open(): Promise<void>;
  next(): Promise<Item | undefined>;
  commit(record: StreamRecord): Promise<void>;
  /** Close the connection; never throws. */
  close(): Promise<void>;
}

const MESSAGES = 100;
const BYTES = 1024 * 1024;

/**
 * Deliveries as they arrive: `for await (const message of subscription)`.
 *
 * A lost connection is reopened without skipping anything. The iteration throws MillstreamError if it cannot continue; it
 * ends after `close()`, and leaving the loop closes the subscription. Use `next()` to keep it open.
 */
export class Subscription<Item extends Message | StreamRecord> implements AsyncIterable<Item>, AsyncDisposable {
  readonly #channel: Channel<Item>;
  readonly #signal: AbortSignal | undefined;
  readonly #abort = (): void => void this.close();

  private constructor(channel: Channel<Item>, signal: AbortSignal | undefined) {
    this.#channel = channel;
    this.#signal = signal;
    if (signal?.aborted) this.#abort();
    signal?.addEventListener('abort', this.#abort);
  }

  /** Subscribe to the messages of a queue. */
  static toQueue(transport: Transport, queue: PolledQueue, options: QueueSubscribeOptions): Subscription<Message> {
    const { autoExtend = true, visibilityTimeoutSeconds } = options;
    const extra = {
      mode: 'work',
      auto_extend: autoExtend,
      ...(visibilityTimeoutSeconds === undefined ? {} : { visibility_timeout_seconds: visibilityTimeoutSeconds }),
    };
    const ask = { ...askOf(`queue:${queue.name}`, options), extra };
    const channel = transport.WebSocket
      ? new SocketChannel<Message>(transport, () => Promise.resolve(ask))
      : new QueuePolls(transport, queue, { messagesMax: ask.messages, autoExtend, visibilityTimeoutSeconds });
    return new Subscription(channel, options.signal);
  }

  /** Subscribe to the records of a stream. */
  static toStream(
    transport: Transport,
    stream: PolledStream,
    options: StreamSubscribeOptions,
  ): Subscription<StreamRecord> {
    const { offsets, shard, filter, start = 'latest' } = options;
    const onGap = options.onGap ?? warningOf(transport);
    if (transport.WebSocket === undefined)
      return new Subscription(new StreamPolls(stream, { ...options, start, onGap }), options.signal);
    const extra: Record<string, unknown> = { mode: 'read', start: { from: 'earliest' } };
    if (shard !== undefined) extra['shard'] = shard;
    if (filter !== undefined) extra['filter'] = filter;
    const prepare = async () => {
      const position = offsets === undefined ? await positionOf(transport, stream.name, start, shard) : given(offsets);
      return { ...askOf(`stream:${stream.name}`, options), extra, ...position };
    };
    return new Subscription(new SocketChannel<StreamRecord>(transport, prepare, onGap), options.signal);
  }

  /** Subscribe to the records of a group's member. */
  static toGroup(transport: Transport, group: PolledGroup, options: GroupSubscribeOptions): Subscription<StreamRecord> {
    const onGap = options.onGap ?? warningOf(transport);
    const { filter } = options;
    if (transport.WebSocket === undefined) {
      if (filter !== undefined) throw new TypeError(NO_FILTER);
      const polls = new GroupPolls(group, { limit: options.messages ?? MESSAGES, onGap });
      return new Subscription(polls, options.signal);
    }
    const prepare = async () => {
      const stream = await streamOf(transport, group.name);
      const extra = filter === undefined ? {} : { extra: { filter } };
      return { ...askOf(`stream:${stream}`, options), group: group.name, ...extra };
    };
    return new Subscription(new SocketChannel<StreamRecord>(transport, prepare, onGap), options.signal);
  }

  /** Connect, and return once the service delivers; iterating does the same. Throws what stands in the way. */
  async open(): Promise<this> {
    await this.#channel.open();
    return this;
  }

  /** Return the next delivery; undefined once the subscription is closed. */
  async next(): Promise<Item | undefined> {
    return this.#channel.next();
  }

  /** Commit a record of a group, and everything before it in its shard. Throws MillstreamError. */
  commit(record: StreamRecord): Promise<void> {
    return this.#channel.commit(record);
  }

  /** Close the subscription; unsettled deliveries are released immediately. */
  async close(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#abort);
    await this.#channel.close();
  }

  /** Close the subscription. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, void> {
    try {
      await this.open();
      for (let item = await this.next(); item !== undefined; item = await this.next()) yield item;
    } finally {
      await this.close();
    }
  }
}

function askOf(source: string, { messages = MESSAGES, bytes = BYTES }: Prefetch) {
  return { source, group: '', positions: new Map<number, number>(), streamId: '', extra: {}, messages, bytes };
}

function given(offsets: Record<number, number>) {
  return { positions: new Map(Object.entries(offsets).map(([shard, offset]) => [Number(shard), offset])) };
}

function warningOf(transport: Transport): OnGap {
  return (gap) => {
    transport.settings.logger.warn(gapText(gap));
  };
}
