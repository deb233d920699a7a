/** Subscriptions over a WebSocket, which survive lost connections. */

import type { Millstream, WebSocketLike } from './client.js';
import { type Arrived, type Ask, Conversation } from './conversation.js';
import type { Gap, Message, Settling, StreamRecord, Verdict } from './deliveries.js';
import { Closed, ConnectionFailed, firstContactHint, isForeignPage } from './errors.js';
import { PROTOCOL, type Said } from './frames.js';
import { backoffOf, limitOf } from './retries.js';
import { type Start, positionOf, streamOf } from './starting.js';

const PATH = '/v1/ws';
const NORMAL = 1000;
const FOR_GOOD = 4500; // closed with this or more: coming back makes no sense
const RECONNECTING = { firstPauseSeconds: 0.1, longestPauseSeconds: 10 };
const OPEN = 1;
const ABNORMAL = 1006;
const FIRST_WORD_S = 20; // for a connection and the welcome
const NO_CLOSE_S = 0.25;

interface Credit {
  /** Prefetch limit. */
  messages?: number;
  bytes?: number;
}

export interface QueueOptions extends Credit {
  visibilityTimeoutSeconds?: number;
  /** Extend the visibility timeout while the connection is open; default: true. */
  autoExtend?: boolean;
}

export interface StreamOptions extends Credit {
  start?: Start;
  /** Next offset by shard; instead of `start`. */
  offsets?: Record<number, number>;
  shard?: number;
  filter?: Record<string, unknown>;
  onGap?: (gap: Gap) => void;
}

export interface GroupOptions extends Credit {
  onGap?: (gap: Gap) => void;
}

/** Subscribe to the messages of a queue. Settle each of them. */
export function subscribeToQueue(
  millstream: Millstream,
  queue: string,
  options: QueueOptions = {},
): Subscription<Message> {
  const extra: Record<string, unknown> = { mode: 'work', auto_extend: options.autoExtend ?? true };
  if (options.visibilityTimeoutSeconds !== undefined) {
    extra['visibility_timeout_seconds'] = options.visibilityTimeoutSeconds;
  }
  const ask = askOf(`queue:${queue}`, options, { extra });
  return new Subscription<Message>(millstream, () => Promise.resolve(ask));
}

/** Subscribe to the records of a stream, by default new records only. */
export function subscribeToStream(
  millstream: Millstream,
  stream: string,
  options: StreamOptions = {},
): Subscription<StreamRecord> {
  const { offsets, shard, filter, start = 'latest' } = options;
  const extra: Record<string, unknown> = { mode: 'read', start: { from: 'earliest' } };
  if (shard !== undefined) extra['shard'] = shard;
  if (filter !== undefined) extra['filter'] = filter;
  const prepare = async (): Promise<Ask> => {
    if (offsets === undefined) {
      const { streamId, offsets: positions } = await positionOf(millstream, stream, start, shard);
      return askOf(`stream:${stream}`, options, { extra, positions, streamId });
    }
    const positions = new Map(Object.entries(offsets).map(([index, offset]) => [Number(index), offset]));
    return askOf(`stream:${stream}`, options, { extra, positions });
  };
  return new Subscription<StreamRecord>(millstream, prepare, options.onGap);
}

/** Subscribe as a member of a group, to the records of its assigned shards; `commit` commits them. */
export function subscribeToGroup(
  millstream: Millstream,
  group: string,
  options: GroupOptions = {},
): Subscription<StreamRecord> {
  const prepare = async (): Promise<Ask> =>
    askOf(`stream:${await streamOf(millstream, group)}`, options, { group });
  return new Subscription<StreamRecord>(millstream, prepare, options.onGap);
}

function askOf(source: string, credit: Credit, more: Partial<Ask>): Ask {
  return {
    source,
    group: '',
    positions: new Map(),
    streamId: '',
    extra: {},
    messages: credit.messages ?? 100,
    bytes: credit.bytes ?? 1024 * 1024,
    ...more,
  };
}

/**
 * Deliveries as they arrive: `for await (const message of subscription)`.
 *
 * A lost connection is reopened without skipping anything. The iteration throws MillstreamError or Closed if it cannot
 * continue; it ends after `close()`, and leaving the loop closes the subscription. Use `next()` to keep it open.
 */
export class Subscription<Item extends Message | StreamRecord> implements AsyncIterable<Item>, Settling {
  readonly #millstream: Millstream;
  readonly #prepare: () => Promise<Ask>;
  readonly #onGap: (gap: Gap) => void;
  #talk: Conversation | undefined;
  #socket: WebSocketLike | undefined;
  #failure: Error | undefined;
  #closing = false;
  #wasOn = false;
  #running: Promise<void> | undefined;
  #wake: (() => void)[] = [];

  constructor(millstream: Millstream, prepare: () => Promise<Ask>, onGap?: (gap: Gap) => void) {
    this.#millstream = millstream;
    this.#prepare = prepare;
    this.#onGap = onGap ?? warnOf;
  }

  /** Connect, and return once the service delivers; iterating does the same. Throws what stands in the way. */
  async open(): Promise<this> {
    if (this.#running === undefined) {
      const ask = await this.#prepare();
      const talk = new Conversation(ask, this);
      this.#talk = talk;
      this.#running = this.#run(talk);
    }
    await this.#until(() => this.#talk?.isOn === true);
    return this;
  }

  /** Close the subscription; unsettled deliveries are released immediately. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#socket?.close(NORMAL);
    this.#end(new Closed(NORMAL, 'The subscription is closed'));
    await this.#running;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, void> {
    await this.open();
    try {
      for (;;) {
        const item = await this.next();
        if (item === undefined) return;
        yield item;
      }
    } finally {
      await this.close();
    }
  }

  /** Return the next delivery; undefined once the subscription is closed. */
  async next(): Promise<Item | undefined> {
    const talk = this.#talking();
    this.#say(talk.done());
    for (;;) {
      try {
        await this.#until(() => talk.arrived.length > 0);
      } catch (error) {
        if (this.#closing) return undefined;
        throw error;
      }
      const taken = talk.take();
      if (taken === undefined) continue;
      this.#say(taken.said);
      if (isGap(taken.arrived)) this.#onGap(taken.arrived.item);
      else return taken.arrived.item as Item;
    }
  }

  /** Settle a message. Throws MillstreamError. */
  async settle(verdict: Verdict): Promise<void> {
    const { said, taken } = this.#talking().settle(verdict);
    this.#say(said);
    await taken;
  }

  /** Commit a record of a group, and everything before it in its shard. Throws MillstreamError. */
  async commit(record: StreamRecord): Promise<void> {
    const { said, taken } = this.#talking().commit(record.shard, record.offset + 1);
    this.#say(said);
    await taken;
  }

  #talking(): Conversation {
    if (this.#talk === undefined) throw new Error('The subscription is not open.');
    if (this.#failure !== undefined && this.#talk.arrived.length === 0 && !this.#closing) throw this.#failure;
    return this.#talk;
  }

  #say(said: Said[]): void {
    if (this.#socket?.readyState === OPEN) {
      for (const frame of said) this.#socket.send(JSON.stringify(frame));
    }
  }

  // Connections

  async #run(talk: Conversation): Promise<void> {
    const started = Date.now();
    for (let failures = 0; !this.#closing; failures++) {
      let after = 0;
      try {
        talk.token = await this.#millstream.apiKey();
        if (this.#closing) return;
        after = await this.#converse(talk);
      } catch (error) {
        this.#end(error as Error);
        return;
      }
      if (talk.isOn) failures = 0;
      const pause = after + backoffOf(RECONNECTING, failures, this.#millstream.service.isEstablished);
      if (!talk.isOn && !this.#goesOn(failures + 1, started, pause)) return;
      talk.isOn = false;
      await this.#pause(pause);
    }
  }

  /** Log a connection that failed, or end a subscription that was never open and has no time left. */
  #goesOn(failures: number, started: number, pause: number): boolean {
    const { url, retries, service } = this.#millstream;
    const failure = `Cannot reach ${url}: the WebSocket closed`;
    if (this.#wasOn) {
      service.warn(failure, failures, 'until the subscription is closed');
      return true;
    }
    const limit = limitOf(retries, service.isEstablished);
    if (Date.now() + pause * 1000 <= started + limit * 1000) {
      service.warn(failure, failures, `for up to ${limit} s`);
      return true;
    }
    const hint = service.isEstablished ? '' : `. ${firstContactHint(url)}`;
    this.#end(new ConnectionFailed(failure + hint, false));
    return false;
  }

  /** Use one connection; return the seconds to wait before the next. Throws if it has ended permanently. */
  #converse(talk: Conversation): Promise<number> {
    const url = this.#millstream.url.replace(/^http/, 'ws') + PATH;
    const socket = new this.#millstream.WebSocket(url, [PROTOCOL]);
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      let silence = setTimeout(lost, FIRST_WORD_S * 1000);
      const ended = (code: number, reason: string): void => {
        clearTimeout(silence);
        if (this.#socket === socket) this.#socket = undefined;
        const last = talk.bye?.code ?? code;
        if (last === NORMAL || last >= FOR_GOOD) reject(new Closed(last, talk.bye?.reason ?? reason));
        else resolve(talk.bye?.after_seconds ?? 0);
      };
      function lost(): void {
        ended(ABNORMAL, '');
        socket.close(NORMAL);
      }

      socket.addEventListener('open', () => {
        this.#say(talk.connected());
      });
      socket.addEventListener('message', (event) => {
        try {
          this.#say(talk.hear(String((event as MessageEvent).data)));
          this.#heard();
          this.#wasOn ||= talk.isOn;
        } catch (error) {
          reject(error as Error);
          socket.close(NORMAL);
          return;
        }
        clearTimeout(silence);
        silence = setTimeout(lost, talk.silenceSeconds * 1000);
        this.#tell();
      });
      socket.addEventListener('close', (event) => {
        ended((event as CloseEvent).code, (event as CloseEvent).reason);
      });
      socket.addEventListener('error', () => {
        setTimeout(ended, NO_CLOSE_S * 1000, ABNORMAL, ''); // some platforms let no close follow
      });
    });
  }

  /** Record that the service responded; in a page of another origin that does not show that calls can reach it. */
  #heard(): void {
    const { url, service } = this.#millstream;
    if (!isForeignPage(url)) service.established();
  }

  #pause(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.#wake.push(() => {
        if (!this.#closing) return;
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #end(failure: Error): void {
    this.#failure ??= failure;
    this.#talk?.end(failure);
    this.#tell();
  }

  #tell(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const one of wake) one();
  }

  /** Wait until a condition holds. Throws the error that ended the subscription, if that is first. */
  async #until(fact: () => boolean): Promise<void> {
    while (!fact()) {
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
}

function isGap(arrived: Arrived): arrived is Extract<Arrived, { kind: 'gap' }> {
  return arrived.kind === 'gap';
}

function warnOf(gap: Gap): void {
  console.warn(`millstream: offsets ${gap.first} to ${gap.next - 1} of shard ${gap.shard} are not available: ${gap.reason}`);
}
