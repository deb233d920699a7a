/** Subscription over a WebSocket, which survives lost connections. */

import type { Message, OnGap, Settling, StreamRecord } from '../deliveries.js';
import { ConnectionFailed, type ItemRefused, Lost } from '../errors.js';
import type { SettlementIn } from '../generated/types.gen.js';
import { backoffOf, limitOf } from '../transport/attempts.js';
import type { WebSocketClass, WebSocketLike } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type Arrived, type Ask, Conversation } from './conversation.js';
import { PROTOCOL, type Said } from './frames.js';
import type { Channel } from './subscription.js';

const PATH = '/v1/ws';
const NORMAL = 1000;
const FOR_GOOD = 4500; // closed with this or more: coming back makes no sense
const RECONNECTING = { firstPauseSeconds: 0.1, longestPauseSeconds: 10 };
const OPEN = 1;
const ABNORMAL = 1006;
const FIRST_WORD_S = 20; // for a connection and the welcome
const NO_CLOSE_S = 0.25;

/** Deliveries of a subscription over one WebSocket after another. */
export class SocketChannel<Item extends Message | StreamRecord> implements Channel<Item>, Settling {
  readonly #transport: Transport;
  readonly #prepare: () => Promise<Ask>;
  readonly #onGap: OnGap;
  #talk: Conversation | undefined;
  #socket: WebSocketLike | undefined;
  #failure: Error | undefined;
  #closing = false;
  #wasOn = false;
  #running: Promise<void> | undefined;
  #opening: Promise<void> | undefined;
  #wake: (() => void)[] = [];

  constructor(transport: Transport, prepare: () => Promise<Ask>, onGap: OnGap = () => undefined) {
    this.#transport = transport;
    this.#prepare = prepare;
    this.#onGap = onGap;
  }

  async open(): Promise<void> {
    this.#opening ??= this.#begin();
    await this.#opening;
    await this.#until(() => this.#closing || this.#talk?.isOn === true);
  }

  async #begin(): Promise<void> {
    const talk = new Conversation(await this.#prepare(), this);
    this.#talk = talk;
    if (!this.#closing) this.#running = this.#run(talk);
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#socket?.close(NORMAL);
    this.#end(new Lost(NORMAL, 'The subscription is closed'));
    await this.#running;
  }

  async next(): Promise<Item | undefined> {
    if (this.#closing) return undefined;
    if (this.#talk === undefined) await this.open();
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

  async settle(settlement: SettlementIn): Promise<ItemRefused | undefined> {
    const { said, taken } = this.#talking().settle(settlement);
    this.#say(said);
    return await taken;
  }

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
        talk.token = await this.#transport.socketToken();
        if (this.#closing) return;
        after = await this.#converse(talk);
      } catch (error) {
        this.#end(error as Error);
        return;
      }
      if (talk.isOn) failures = 0;
      const pause = after + backoffOf(RECONNECTING, failures, this.#transport.service.isEstablished);
      if (!talk.isOn && !this.#goesOn(failures + 1, started, pause)) return;
      talk.isOn = false;
      await this.#pause(pause);
    }
  }

  /** Log a connection that failed, or end a subscription that was never open and has no time left. */
  #goesOn(failures: number, started: number, pause: number): boolean {
    const { service, settings } = this.#transport;
    const failure = new ConnectionFailed(`Cannot reach ${settings.url}: the WebSocket closed`);
    const limit = limitOf(settings.retries, service.isEstablished);
    if (!this.#wasOn && Date.now() + pause * 1000 > started + limit * 1000) {
      this.#end(service.final(failure));
      return false;
    }
    service.warn(failure, failures, this.#wasOn ? 'until the subscription is closed' : `for up to ${limit} s`);
    return true;
  }

  /** Use one connection; return the seconds to wait before the next. Throws if it has ended permanently. */
  #converse(talk: Conversation): Promise<number> {
    const { url } = this.#transport.settings;
    const socket = new (this.#transport.WebSocket as WebSocketClass)(url.replace(/^http/, 'ws') + PATH, [PROTOCOL]);
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      let silence = setTimeout(lost, FIRST_WORD_S * 1000);
      const ended = (code: number, reason: string): void => {
        clearTimeout(silence);
        if (this.#socket === socket) this.#socket = undefined;
        const last = talk.bye?.code ?? code;
        if (last === NORMAL || last >= FOR_GOOD) reject(new Lost(last, talk.bye?.reason ?? reason));
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
          this.#say(talk.hear(String(event.data)));
          this.#transport.service.spoke();
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
        ended(event.code, event.reason);
      });
      socket.addEventListener('error', () => {
        setTimeout(ended, NO_CLOSE_S * 1000, ABNORMAL, ''); // some platforms let no close follow
      });
    });
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
    for (const resume of wake) resume();
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
