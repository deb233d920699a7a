/** WebSocket connection that is reopened when it is lost. */

import { ConnectionFailed, Lost } from '../errors.js';
import { backoffOf, limitOf } from '../transport/attempts.js';
import type { WebSocketClass, WebSocketLike } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type Frame, PROTOCOL, type Said } from './frames.js';

const PATH = '/v1/ws';
const NORMAL = 1000;
const FOR_GOOD = 4500; // closed with this or more: coming back makes no sense
const RECONNECTING = { firstPauseSeconds: 0.1, longestPauseSeconds: 10 };
const OPEN = 1;
const ABNORMAL = 1006;
const FIRST_WORD_S = 20; // for a connection and the welcome
const NO_CLOSE_S = 0.25;

/** The client's side of the protocol, without I/O. */
export interface Session {
  /** Whether the service answers over the current connection. */
  isOn: boolean;
  /** Credential for the next connection. */
  token: string;
  /** Time without frames after which the service counts as unreachable. */
  readonly silenceSeconds: number;
  /** Reason for the close by the service. */
  readonly bye: Extract<Frame, { type: 'bye' }> | undefined;
  /** Return the first frame for a new connection. */
  connected(): Said[];
  /** Process a message of the service and return the immediate reply. Throws if the session has ended. */
  hear(text: string): Said[];
  /** End the session: nothing more will be answered. */
  end(error: Error): void;
}

/** One WebSocket after another, for a session. */
export class Connection<S extends Session> {
  readonly #transport: Transport;
  readonly #prepare: () => Promise<S>;
  readonly #noun: string;
  readonly #reconnectsForever: boolean;
  #session: S | undefined;
  #socket: WebSocketLike | undefined;
  #failure: Error | undefined;
  #closing = false;
  #wasOn = false;
  #offSince = 0;
  #running: Promise<void> | undefined;
  #opening: Promise<void> | undefined;
  #wake: (() => void)[] = [];

  /** `reconnectsForever`: a connection that was open once is reopened without a time limit. */
  constructor(transport: Transport, prepare: () => Promise<S>, noun: string, reconnectsForever: boolean) {
    this.#transport = transport;
    this.#prepare = prepare;
    this.#noun = noun;
    this.#reconnectsForever = reconnectsForever;
  }

  get isClosing(): boolean {
    return this.#closing;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  get session(): S | undefined {
    return this.#session;
  }

  async open(): Promise<void> {
    this.#opening ??= this.#begin();
    await this.#opening;
    await this.until(() => this.#closing || this.#session?.isOn === true);
  }

  async #begin(): Promise<void> {
    const session = await this.#prepare();
    this.#session = session;
    if (!this.#closing) this.#running = this.#run(session);
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#socket?.close(NORMAL);
    this.#end(new Lost(NORMAL, `The ${this.#noun} is closed`));
    await this.#running;
  }

  say(said: Said[]): void {
    if (this.#socket?.readyState === OPEN) {
      for (const frame of said) this.#socket.send(JSON.stringify(frame));
    }
  }

  async #run(session: S): Promise<void> {
    this.#offSince = Date.now();
    for (let failures = 0; !this.#closing; failures++) {
      let after = 0;
      try {
        session.token = await this.#transport.socketToken();
        if (this.#closing) return;
        after = await this.#converse(session);
      } catch (error) {
        this.#end(error as Error);
        return;
      }
      if (session.isOn) failures = 0;
      const pause = after + backoffOf(RECONNECTING, failures, this.#transport.service.isEstablished);
      if (session.isOn) this.#offSince = Date.now();
      else if (!this.#goesOn(failures + 1, pause)) return;
      session.isOn = false;
      await this.#pause(pause);
    }
  }

  /** Log a connection that failed, or end a session that has no time left. */
  #goesOn(failures: number, pause: number): boolean {
    const { service, settings } = this.#transport;
    const failure = new ConnectionFailed(`Cannot reach ${settings.url}: the WebSocket closed`);
    const limit = limitOf(settings.retries, service.isEstablished);
    const isPatient = this.#reconnectsForever && this.#wasOn;
    if (!isPatient && Date.now() + pause * 1000 > this.#offSince + limit * 1000) {
      this.#end(service.final(failure));
      return false;
    }
    service.warn(failure, failures, isPatient ? `until the ${this.#noun} is closed` : `for up to ${limit} s`);
    return true;
  }

  /** Use one connection; return the seconds to wait before the next. Throws if it has ended permanently. */
  #converse(session: S): Promise<number> {
    const { url } = this.#transport.settings;
    const socket = new (this.#transport.WebSocket as WebSocketClass)(url.replace(/^http/, 'ws') + PATH, [PROTOCOL]);
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      let silence = setTimeout(lost, FIRST_WORD_S * 1000);
      const ended = (code: number, reason: string): void => {
        clearTimeout(silence);
        if (this.#socket === socket) this.#socket = undefined;
        const last = session.bye?.code ?? code;
        if (last === NORMAL || last >= FOR_GOOD) reject(new Lost(last, session.bye?.reason ?? reason));
        else resolve(session.bye?.after_seconds ?? 0);
      };
      function lost(): void {
        ended(ABNORMAL, '');
        socket.close(NORMAL);
      }

      socket.addEventListener('open', () => {
        this.say(session.connected());
      });
      socket.addEventListener('message', (event) => {
        try {
          this.say(session.hear(String(event.data)));
          this.#transport.service.spoke();
          this.#wasOn ||= session.isOn;
        } catch (error) {
          reject(error as Error);
          socket.close(NORMAL);
          return;
        }
        clearTimeout(silence);
        silence = setTimeout(lost, session.silenceSeconds * 1000);
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
    this.#session?.end(failure);
    this.#tell();
  }

  #tell(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resume of wake) resume();
  }

  /** Wait until a condition holds. Throws the error that ended the connection, if that is first. */
  async until(fact: () => boolean): Promise<void> {
    while (!fact()) {
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
}
