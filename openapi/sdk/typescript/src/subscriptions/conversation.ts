/**
 * The client's side of `millstream.v1` for one subscription, without I/O.
 *
 *   connected() ──▶ hello ─▶ welcome ──resumed──▶ continue: send verdicts and credit again that may be lost
 *                                   └──new─────▶ subscribe, after the last record
 */

import { type Gap, Message, type Settling, StreamRecord } from '../deliveries.js';
import { ItemRefused, problemOf, refusalOf } from '../errors.js';
import type { SettlementIn } from '../generated/types.gen.js';
import { type Frame, type Result, type Said, framesOf } from './frames.js';

const SUB = 's';
const SUBSCRIBE = 'subscribe';
const EXPIRED = 'receipt_handle_expired';

export interface Ask {
  source: string;
  group: string;
  /** Next offset by shard; empty for the oldest records. */
  positions: Map<number, number>;
  /** Stream that the positions belong to; empty until it is known. */
  streamId: string;
  messages: number;
  bytes: number;
  extra: Record<string, unknown>;
}

export type Arrived =
  | { kind: 'message'; item: Message; size: number }
  | { kind: 'record'; item: StreamRecord; size: number }
  | { kind: 'gap'; item: Gap; size: number };

interface Waiting {
  said: Said;
  again: boolean;
  done: (replyError?: ItemRefused) => void;
  failed: (error: Error) => void;
}

interface Asked {
  said: Said[];
  taken: Promise<ItemRefused | undefined>;
}

export class Conversation {
  /** Deliveries that were not taken yet. */
  readonly arrived: Arrived[] = [];
  /** Whether the service delivers over the current connection. */
  isOn = false;
  /** Credential for the next connection. */
  token = '';
  /** Time without frames after which the service counts as unreachable. */
  silenceSeconds = 60;
  /** Reason for the close by the service. */
  bye: Extract<Frame, { type: 'bye' }> | undefined;

  readonly #ask: Ask;
  readonly #settling: Settling;
  #session = '';
  #seq = 0;
  #ids = 0;
  #takenMessages = 0;
  #takenBytes = 0;
  #inHand = -1;
  #granted: { messages: number; bytes: number }[] = []; // of which no pong has come yet
  readonly #revoking = new Set<number>();
  readonly #waiting = new Map<string, Waiting>();

  constructor(ask: Ask, settling: Settling) {
    this.#ask = ask;
    this.#settling = settling;
  }

  /** Return the first frame for a new connection. */
  connected(): Said[] {
    this.bye = undefined;
    this.isOn = false;
    const hello: Said = { type: 'hello', client: 'typescript' };
    if (this.token) hello['token'] = this.token;
    if (this.#session) hello['resume'] = { session: this.#session, seq: this.#seq };
    return [hello];
  }

  /** Process a message of the service and return the immediate reply. Throws if the subscription has ended. */
  hear(text: string): Said[] {
    return framesOf(text).flatMap((frame) => this.#hear(frame));
  }

  #hear(frame: Frame): Said[] {
    switch (frame.type) {
      case 'welcome':
        this.silenceSeconds = 2 * (frame.heartbeat_seconds + frame.pong_timeout_seconds);
        return this.#welcomed(frame.session, frame.resumed);
      case 'messages':
        this.#came(frame.seq);
        for (const fields of frame.messages) {
          const item = new Message(fields, this.#settling);
          this.arrived.push({ kind: 'message', item, size: item.size });
        }
        return [];
      case 'records':
        this.#came(frame.seq);
        this.#ask.positions.set(frame.shard, frame.next_offset);
        for (const fields of frame.records) {
          const item = new StreamRecord(fields, frame.shard);
          this.arrived.push({ kind: 'record', item, size: item.size });
        }
        return [];
      case 'gap': {
        this.#came(frame.seq);
        this.#ask.positions.set(frame.shard, frame.next);
        const { shard, first, next, reason } = frame;
        this.arrived.push({ kind: 'gap', item: { shard, first, next, reason }, size: 0 });
        return [];
      }
      case 'shard_ended': // its position stays: from there the service goes on with its children
        this.#came(frame.seq);
        return [];
      case 'ping':
        return [{ type: 'pong', seq: this.#seq }];
      case 'pong':
        this.#granted.shift();
        return [];
      case 'ok':
        this.#ask.streamId = frame.stream_id ?? this.#ask.streamId;
        this.#answered(frame.id, frame.results ?? []);
        return [];
      case 'error':
        this.#failed(frame);
        return [];
      case 'assigned':
        for (const place of frame.shards) this.#revoking.delete(place.shard);
        return [];
      case 'revoking':
        for (const shard of frame.shards) this.#revoking.add(shard);
        return this.#givenUp();
      case 'revoked':
        this.#revoked(new Set(frame.shards));
        return [];
      case 'bye':
        this.bye = frame;
        return [];
      default: // paused and resumed; and what is newer than this client
        return [];
    }
  }

  #came(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
  }

  #welcomed(session: string, resumed: boolean): Said[] {
    const goesOn = resumed && session === this.#session;
    this.#session = session;
    for (const waiting of this.#waiting.values()) waiting.again = true;
    const unanswered = [...this.#waiting.values()].map((waiting) => waiting.said);
    if (goesOn) {
      this.isOn = true;
      return [...this.#grantedAgain(), ...unanswered];
    }
    this.#seq = 0;
    this.#granted = [];
    this.#takenMessages = this.#takenBytes = 0;
    if (this.#ask.group) {
      // its shards may be reassigned: deliveries that were not taken are delivered again
      this.arrived.length = 0;
      this.#revoking.clear();
    }
    return [this.#subscribe(), ...unanswered];
  }

  #subscribe(): Said {
    const { source, group, positions, streamId, extra } = this.#ask;
    const said: Said = { type: 'subscribe', id: SUBSCRIBE, sub: SUB, source, ...extra };
    said['credit'] = { messages: Math.max(1, this.#room()), bytes: Math.max(1, this.#byteRoom()) };
    if (group) {
      said['mode'] = 'group';
      said['group'] = group;
    } else if (positions.size > 0) {
      const offsets = Object.fromEntries(positions);
      said['start'] = streamId ? { offsets, stream_id: streamId } : { offsets };
    }
    return said;
  }

  // Deliveries

  /** Mark the last taken delivery as processed; return the frames to send. */
  done(): Said[] {
    this.#inHand = -1;
    return this.#givenUp();
  }

  /** Take the next delivery; return it with the frames to send. New credit is given once half of it is used. */
  take(): { arrived: Arrived; said: Said[] } | undefined {
    const arrived = this.arrived.shift();
    if (arrived === undefined) return undefined;
    if (arrived.kind !== 'gap') {
      this.#takenMessages += 1;
      this.#takenBytes += arrived.size;
    }
    if (arrived.kind !== 'message') this.#inHand = arrived.item.shard;
    return { arrived, said: this.#grant() };
  }

  #grant(): Said[] {
    const { messages, bytes } = this.#ask;
    const enough = 2 * this.#takenMessages >= messages || 2 * this.#takenBytes >= bytes;
    if (!enough || !this.isOn) return [];
    // a stored JSON value may have had more bytes: free space is given as credit
    const room = this.arrived.length === 0 ? Math.floor(bytes / 2) : 0;
    return this.#credit(this.#takenMessages, Math.max(this.#takenBytes, room));
  }

  /** A credit frame with an id, whose answer confirms its arrival. */
  #credit(messages: number, bytes: number): Said[] {
    this.#takenMessages = this.#takenBytes = 0;
    this.#granted.push({ messages, bytes });
    return [{ type: 'credit', sub: SUB, messages, bytes, seq: this.#seq }, { type: 'ping' }];
  }

  /** Credit that a lost connection may have swallowed, within the space that remains beside waiting deliveries. */
  #grantedAgain(): Said[] {
    const granted = this.#granted;
    this.#granted = [];
    const messages = Math.min(sum(granted.map(({ messages }) => messages)), Math.max(0, this.#room()));
    const bytes = Math.min(sum(granted.map(({ bytes }) => bytes)), Math.max(0, this.#byteRoom()));
    if (messages === 0 && bytes === 0) return [];
    const [takenMessages, takenBytes] = [this.#takenMessages, this.#takenBytes];
    const said = this.#credit(messages, bytes);
    [this.#takenMessages, this.#takenBytes] = [takenMessages, takenBytes];
    return said;
  }

  #room(): number {
    return this.#ask.messages - this.arrived.length;
  }

  #byteRoom(): number {
    return this.#ask.bytes - sum(this.arrived.map(({ size }) => size));
  }

  // Verdicts and commits

  /** Send a settlement, which resolves once it is accepted, to the refusal of its reply if there was one. Without an answer, it is sent again over the next connection. */
  settle({ receipt_handle: handle, action, ...fields }: SettlementIn): Asked {
    return this.#asked({ type: action, receipt_handles: [handle], ...fields });
  }

  /** Commit everything in a shard before `upTo`. */
  commit(shard: number, upTo: number): Asked {
    return this.#asked({ type: 'ack', shard, up_to: upTo });
  }

  #asked(fields: Said): Asked {
    const id = `c${++this.#ids}`;
    const said: Said = { ...fields, id, sub: SUB };
    const taken = new Promise<ItemRefused | undefined>((done, failed) => {
      this.#waiting.set(id, { said, again: false, done, failed });
    });
    return { said: this.isOn ? [said] : [], taken };
  }

  #answered(id: string, results: Result[]): void {
    if (id === SUBSCRIBE) {
      this.isOn = true;
      return;
    }
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    const refused = results.find((result) => result.error !== undefined)?.error;
    if (refused === undefined || (waiting.again && refused.code === EXPIRED)) waiting.done(replyErrorOf(results));
    else waiting.failed(new ItemRefused(refused));
  }

  #failed(frame: Extract<Frame, { type: 'error' }>): void {
    const error = refusalOf(problemOf(frame.problem.status ?? 0, frame.problem));
    const waiting = frame.id === undefined ? undefined : this.#waiting.get(frame.id);
    if (frame.id !== undefined && frame.id !== SUBSCRIBE) {
      this.#waiting.delete(frame.id);
      waiting?.failed(error);
    } else if (frame.receipt_handles === undefined) {
      throw error; // with handles it is of deliveries that have ended by themselves
    }
  }

  /** End the conversation: nothing more will be answered. */
  end(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.failed(error);
    this.#waiting.clear();
  }

  // Groups

  /** Revoked shards that have no more deliveries here. */
  #givenUp(): Said[] {
    if (this.#revoking.size === 0) return [];
    const here = new Set([this.#inHand]);
    for (const delivery of this.arrived) if (delivery.kind !== 'message') here.add(delivery.item.shard);
    const done = [...this.#revoking].filter((shard) => !here.has(shard));
    for (const shard of done) this.#revoking.delete(shard);
    return done.length > 0 ? [{ type: 'give_up', sub: SUB, shards: done }] : [];
  }

  #revoked(gone: Set<number>): void {
    for (const shard of gone) this.#revoking.delete(shard);
    const isRevoked = (delivery: Arrived): boolean => delivery.kind !== 'message' && gone.has(delivery.item.shard);
    for (const delivery of this.arrived) {
      if (!isRevoked(delivery) || delivery.kind === 'gap') continue;
      this.#takenMessages += 1;
      this.#takenBytes += delivery.size;
    }
    const others = this.arrived.filter((delivery) => !isRevoked(delivery));
    this.arrived.splice(0, this.arrived.length, ...others);
  }
}

/** Return why a reply was refused, if it was. */
function replyErrorOf(results: Result[]): ItemRefused | undefined {
  const refused = results.find((result) => result.reply_error !== undefined)?.reply_error;
  return refused && new ItemRefused(refused);
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
