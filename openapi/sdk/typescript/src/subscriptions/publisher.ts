/**
 * The client's side of `millstream.v1` for publishes, requests and replies, without I/O.
 *
 * Frames carry idempotency keys: those without an answer are sent again over the next connection, and take effect once.
 */

import { type Refused, OutcomeUnknown, problemOf, refusalOf } from '../errors.js';
import type { Session } from './connection.js';
import { type Frame, type Said, framesOf } from './frames.js';

/** Answer to a frame; a rejection is one, too. */
export type Answer = Extract<Frame, { type: 'ok' | 'reply' }> | Refused;

interface Waiting {
  said: Said;
  done: (answer: Answer) => void;
  failed: (error: Error) => void;
}

export class Publisher implements Session {
  isOn = false;
  token = '';
  silenceSeconds = 60;
  bye: Extract<Frame, { type: 'bye' }> | undefined;

  #ids = 0;
  #frameBytesMax = Infinity;
  readonly #waiting = new Map<string, Waiting>();

  connected(): Said[] {
    this.bye = undefined;
    this.isOn = false;
    return [{ type: 'hello', client: 'typescript', ...(this.token ? { token: this.token } : {}) }];
  }

  hear(text: string): Said[] {
    return framesOf(text).flatMap((frame) => this.#hear(frame));
  }

  #hear(frame: Frame): Said[] {
    switch (frame.type) {
      case 'welcome':
        this.silenceSeconds = 2 * (frame.heartbeat_seconds + frame.pong_timeout_seconds);
        this.#frameBytesMax = frame.limits.frame_bytes_max;
        this.isOn = true;
        return [...this.#waiting.values()].map(({ said }) => said);
      case 'ping':
        return [{ type: 'pong' }];
      case 'ok':
      case 'reply':
        this.#answered(frame.id, frame);
        return [];
      case 'error': {
        const error = refusalOf(problemOf(frame.problem.status ?? 0, frame.problem));
        if (frame.id === undefined) throw error;
        this.#answered(frame.id, error);
        return [];
      }
      case 'bye':
        this.bye = frame;
        return [];
      default: // nothing is subscribed
        return [];
    }
  }

  /**
   * Return the frames to send for a frame, and its answer; `drop` ends the wait for it. Throws RangeError for a frame that is
   * too large, with which the service would close the connection.
   */
  send(frame: Said): { said: Said[]; answer: Promise<Answer>; drop: () => void } {
    const id = `p${++this.#ids}`;
    const said: Said = { ...frame, id };
    if (new TextEncoder().encode(JSON.stringify(said)).length > this.#frameBytesMax) {
      const size = `${this.#frameBytesMax / 2 ** 20} MiB`;
      throw new RangeError(`A WebSocket frame has at most ${size}: send larger messages over HTTP.`);
    }
    const answer = new Promise<Answer>((done, failed) => {
      this.#waiting.set(id, { said, done, failed });
    });
    return { said: this.isOn ? [said] : [], answer, drop: () => void this.#waiting.delete(id) };
  }

  #answered(id: string, answer: Answer): void {
    this.#waiting.get(id)?.done(answer);
    this.#waiting.delete(id);
  }

  end(error: Error): void {
    const unknown = new OutcomeUnknown(`No answer came before the connection ended: ${error.message}`, { cause: error });
    for (const { failed } of this.#waiting.values()) failed(unknown);
    this.#waiting.clear();
  }
}
