/**
 * One subscription's side of `millstream.v1`, without a socket: frames go in, frames and deliveries come out.
 *
 *   connected() ──▶ hello ─▶ welcome ──resumed──▶ goes on: verdicts and credit that may be lost are said again
 *                                   └──new─────▶ subscribe, from where the last record was
 */

import { type Gap, Message, type Settling, StreamRecord, type Verdict } from './deliveries.js';
import { MillstreamError } from './errors.js';
import { type Frame, type Result, type Said, framesOf } from './frames.js';

const SUB = 's';
const SUBSCRIBE = 'subscribe';
const EXPIRED = 'receipt_handle_expired';

export interface Ask {
  source: string;
  group: string;
  /** By shard, the next offset wanted; empty for the oldest of all. */
  positions: Map<number, number>;
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
  done: () => void;
  failed: (error: Error) => void;
}

export class Conversation {
  /** Deliveries that nobody has taken yet. */
  readonly arrived: Arrived[] = [];
  /** Whether the service delivers over the socket that is there now. */
  isOn = false;
  /** What says who we are, over the next socket. */
  token = '';
  /** A service that is silent for so long is not there. */
  silenceSeconds = 60;
  /** Why the service closes. */
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

  /** The first frame over a new socket. */
  connected(): Said[] {
    this.bye = undefined;
    this.isOn = false;
    const hello: Said = { type: 'hello', client: 'typescript' };
    if (this.token) hello['token'] = this.token;
    if (this.#session) hello['resume'] = { session: this.#session, seq: this.#seq };
    return [hello];
  }

  /** What a message of the service is answered with at once. Throws where the subscription is over. */
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
        for (const told of frame.messages) {
          const item = new Message(told, this.#settling);
          this.arrived.push({ kind: 'message', item, size: item.size });
        }
        return [];
      case 'records':
        this.#came(frame.seq);
        this.#ask.positions.set(frame.shard, frame.next_offset);
        for (const told of frame.records) {
          const item = new StreamRecord(told, frame.shard);
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
      // its shards may be another's now: what was not looked at comes again
      this.arrived.length = 0;
      this.#revoking.clear();
    }
    return [this.#subscribe(), ...unanswered];
  }

  #subscribe(): Said {
    const { source, group, positions, extra } = this.#ask;
    const said: Said = { type: 'subscribe', id: SUBSCRIBE, sub: SUB, source, ...extra };
    said['credit'] = { messages: Math.max(1, this.#room()), bytes: Math.max(1, this.#byteRoom()) };
    if (group) {
      said['mode'] = 'group';
      said['group'] = group;
    } else if (positions.size > 0) {
      said['start'] = { offsets: Object.fromEntries(positions) };
    }
    return said;
  }

  // Deliveries

  /** The owner is done with what was taken last: what to say then. */
  done(): Said[] {
    this.#inHand = -1;
    return this.#givenUp();
  }

  /** The next delivery, and what to say for it: new credit once half of it is used. */
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
    // a JSON value may have had more bytes where it lay: where there is room, there is credit
    const room = this.arrived.length === 0 ? Math.floor(bytes / 2) : 0;
    return this.#credit(this.#takenMessages, Math.max(this.#takenBytes, room));
  }

  /** Credit, and a question whose answer says that it has arrived. */
  #credit(messages: number, bytes: number): Said[] {
    this.#takenMessages = this.#takenBytes = 0;
    this.#granted.push({ messages, bytes });
    return [{ type: 'credit', sub: SUB, messages, bytes, seq: this.#seq }, { type: 'ping' }];
  }

  /** What a broken socket may have swallowed; no more than there is room for beside what waits here. */
  #grantedAgain(): Said[] {
    const granted = this.#granted;
    this.#granted = [];
    const messages = Math.min(sum(granted.map((one) => one.messages)), Math.max(0, this.#room()));
    const bytes = Math.min(sum(granted.map((one) => one.bytes)), Math.max(0, this.#byteRoom()));
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
    return this.#ask.bytes - sum(this.arrived.map((one) => one.size));
  }

  // Verdicts and commits

  /** What to say for a verdict, and when it was taken. It is said again over the next socket when no answer came. */
  settle(verdict: Verdict): { said: Said[]; taken: Promise<void> } {
    return this.#asked({ ...verdict });
  }

  /** The same for a commit: everything of a shard before `upTo` is done. */
  commit(shard: number, upTo: number): { said: Said[]; taken: Promise<void> } {
    return this.#asked({ type: 'ack', shard, up_to: upTo });
  }

  #asked(fields: Said): { said: Said[]; taken: Promise<void> } {
    const id = `c${++this.#ids}`;
    const said: Said = { ...fields, id, sub: SUB };
    const taken = new Promise<void>((done, failed) => {
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
    if (refused === undefined || (waiting.again && refused.code === EXPIRED)) waiting.done();
    else waiting.failed(new MillstreamError(refused));
  }

  #failed(frame: Extract<Frame, { type: 'error' }>): void {
    const error = new MillstreamError(frame.problem);
    const waiting = frame.id === undefined ? undefined : this.#waiting.get(frame.id);
    if (frame.id !== undefined && frame.id !== SUBSCRIBE) {
      this.#waiting.delete(frame.id);
      waiting?.failed(error);
    } else if (frame.receipt_handles === undefined) {
      throw error; // with handles it is of deliveries that have ended by themselves
    }
  }

  /** It is over: nothing more will be answered. */
  end(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.failed(error);
    this.#waiting.clear();
  }

  // Groups

  /** Shards that are to be given up, and of which nothing is here any more. */
  #givenUp(): Said[] {
    if (this.#revoking.size === 0) return [];
    const here = new Set([this.#inHand]);
    for (const one of this.arrived) if (one.kind !== 'message') here.add(one.item.shard);
    const done = [...this.#revoking].filter((shard) => !here.has(shard));
    for (const shard of done) this.#revoking.delete(shard);
    return done.length > 0 ? [{ type: 'give_up', sub: SUB, shards: done }] : [];
  }

  #revoked(gone: Set<number>): void {
    for (const shard of gone) this.#revoking.delete(shard);
    const kept = this.arrived.filter((one) => one.kind === 'message' || !gone.has(one.item.shard));
    for (const one of this.arrived) {
      if (!kept.includes(one) && one.kind !== 'gap') {
        this.#takenMessages += 1;
        this.#takenBytes += one.size;
      }
    }
    this.arrived.splice(0, this.arrived.length, ...kept);
  }
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
