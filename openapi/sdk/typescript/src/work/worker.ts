/**
 * Queue workers: concurrent handlers whose messages stay hidden until they are settled.
 *
 *   receive as many as there is capacity for ─▶ handler ─┬─ returns ──────▶ ack, with its value as reply to a request
 *             ▲                                          ├─ throws Retry ─▶ nack, after its delay
 *             │ capacity                                 ├─ throws Reject ▶ reject: dead-lettered
 *             └──────────────────────────────────────────┴─ throws ───────▶ nack, with the queue's back-off
 *
 * Messages in progress when the worker dies are redelivered after their lease. A handler can see a message twice, as any
 * consumer of a queue can.
 */

import { encodedBody } from '../bodies.js';
import type { Message, Settling } from '../deliveries.js';
import { MillstreamError } from '../errors.js';
import type { ReceiveOptions } from '../nouns/queue.js';
import { attempted } from '../subscriptions/closing.js';
import { sleep } from '../transport/retries.js';
import type { Transport } from '../transport/transport.js';
import { LeaseKeeper } from './leases.js';
import { onSignals } from './signals.js';

const WAIT_S = 20;
const PAUSE_S = 1; // after a receive that failed for good reasons, however often it was tried
const LAST_RECEIVE_S = 0.5; // a receive that is to end may still bring what it has taken
const TOGETHER_MAX = 1_000; // messages in one call
const REASON_CHARACTERS_MAX = 1_024;
const DETAILS_CHARACTERS_MAX = 4_096;

/** Thrown by a handler to retry the message after a delay, or after the queue's back-off. The stack of its `cause` is kept. */
export class Retry extends Error {
  readonly delaySeconds: number | undefined;

  constructor(delaySeconds?: number, reason = '', options?: ErrorOptions) {
    super(reason, options);
    this.name = 'Retry';
    this.delaySeconds = delaySeconds;
  }
}

/** Thrown by a handler for a permanent failure. The message is dead-lettered with the reason, and the stack of a `cause`. */
export class Reject extends Error {
  constructor(reason = '', options?: ErrorOptions) {
    super(reason, options);
    this.name = 'Reject';
  }
}

export interface WorkOptions {
  /** Maximum messages in progress; default: 1. */
  concurrency?: number;
  /** How long a message stays hidden without an extension; default: 30. */
  leaseSeconds?: number;
  /** Time for messages in progress once the worker is stopped; then they are released. Default: 25. */
  graceSeconds?: number;
  /** Delay in seconds after an error that a handler threw; undefined: the queue's back-off. */
  retry?: (error: unknown, message: Message) => number | undefined;
  /** Stops the worker gracefully. */
  signal?: AbortSignal;
  /** Stop on SIGTERM and SIGINT, in Node; default: unless there is a `signal`. */
  signals?: boolean;
  /** Called for errors that a handler threw, and for rejected settlements; default: the logger. */
  onError?: (error: unknown, message: Message) => void;
}

/** Processes a message. The signal is aborted when the worker releases the message before the handler is done. */
export type Handler = (message: Message, signal: AbortSignal) => unknown;

/** Queue of a worker. */
export interface WorkQueue extends Settling {
  readonly name: string;
  receive(options: ReceiveOptions): Promise<Message[]>;
  release(messages: Iterable<Message>): Promise<unknown>;
}

interface Outcome {
  error?: unknown;
  reply?: unknown;
}

/** Passes messages to a handler, and settles each by its outcome. It can run once. */
export class Worker {
  readonly #transport: Transport;
  readonly #queue: WorkQueue;
  readonly #handler: Handler;
  readonly #options: WorkOptions;
  readonly #leaseSeconds: number;
  readonly #leases: LeaseKeeper;
  readonly #inProgress = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #whenStopped: Promise<undefined>;

  constructor(transport: Transport, queue: WorkQueue, handler: Handler, options: WorkOptions = {}) {
    this.#transport = transport;
    this.#queue = queue;
    this.#handler = handler;
    this.#options = options;
    this.#leaseSeconds = options.leaseSeconds ?? 30;
    this.#leases = new LeaseKeeper(transport, queue.name, this.#leaseSeconds);
    this.#whenStopped = new Promise((resolve) => {
      this.#stop.signal.addEventListener('abort', () => {
        resolve(undefined);
      });
    });
  }

  /** Stop receiving, finish the messages in progress, and end. */
  stop(): void {
    this.#stop.abort();
  }

  /** Work until stopped. Throws MillstreamError if the queue was deleted or cannot be read. */
  async run(): Promise<void> {
    const { signal, signals = signal === undefined } = this.#options;
    const stop = (): void => {
      this.stop();
    };
    const forget = signals ? onSignals(stop) : undefined;
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      await this.#receiveUntilStopped();
    } finally {
      await this.#finish();
      signal?.removeEventListener('abort', stop);
      forget?.();
    }
  }

  async #receiveUntilStopped(): Promise<void> {
    const { concurrency = 1 } = this.#options;
    while (!this.#stop.signal.aborted) {
      const room = concurrency - this.#inProgress.size;
      if (room > 0) for (const message of await this.#receive(room)) this.#begin(message);
      else await Promise.race([...this.#inProgress, this.#whenStopped]);
    }
  }

  /** Receive messages; none if the worker is stopped and they do not follow soon. */
  async #receive(room: number): Promise<Message[]> {
    const last = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = (): void => {
      timer = setTimeout(() => {
        last.abort();
      }, LAST_RECEIVE_S * 1000);
    };
    this.#stop.signal.addEventListener('abort', end);
    try {
      return await this.#queue.receive({
        messagesMax: Math.min(room, TOGETHER_MAX),
        waitSeconds: WAIT_S,
        visibilityTimeoutSeconds: this.#leaseSeconds,
        signal: last.signal,
      });
    } catch (error) {
      if (last.signal.aborted) return [];
      await this.#pauseAfter(error);
      return [];
    } finally {
      clearTimeout(timer);
      this.#stop.signal.removeEventListener('abort', end);
    }
  }

  /** Wait after a receive that failed for now. Throws other errors. */
  async #pauseAfter(error: unknown): Promise<void> {
    if (!(error instanceof MillstreamError) || !error.retryable) throw error;
    this.#transport.settings.logger.warn(`receiving from ${this.#queue.name} failed: ${error.message}`);
    await Promise.race([sleep(PAUSE_S), this.#whenStopped]);
  }

  #begin(message: Message): void {
    this.#leases.add(message);
    const work = this.#workOn(message).finally(() => {
      this.#leases.remove(message);
      this.#inProgress.delete(work);
    });
    this.#inProgress.add(work);
  }

  async #workOn(message: Message): Promise<void> {
    const outcome = await this.#outcomeOf(message);
    if (this.#giveUp.signal.aborted) return; // it was released
    try {
      await this.#settle(message, outcome);
    } catch (failure) {
      this.#report(failure, message);
    }
  }

  async #outcomeOf(message: Message): Promise<Outcome> {
    try {
      const value = await this.#handler(message, this.#giveUp.signal);
      const hasReply = message.replyTo !== '' && value !== undefined && value !== null;
      if (hasReply) encodedBody('body', value); // a value without a JSON form is a failure of the handler
      return { reply: hasReply ? value : undefined };
    } catch (error) {
      return { error: error ?? new Error('the handler threw no error') };
    }
  }

  async #settle(message: Message, { error, reply }: Outcome): Promise<void> {
    if (message.settled) {
      if (error !== undefined) this.#report(error, message);
    } else if (reply !== undefined) await message.reply(reply);
    else if (error === undefined) await message.ack();
    else if (error instanceof Reject) await message.reject(reasonOf(error.message), causeOf(error));
    else if (error instanceof Retry) await message.nack(error.delaySeconds, reasonOf(error.message), causeOf(error));
    else {
      this.#report(error, message);
      await message.nack(this.#options.retry?.(error, message), reasonOf(String(error)), stackOf(error));
    }
  }

  #report(error: unknown, message: Message): void {
    const { onError } = this.#options;
    if (onError !== undefined) onError(error, message);
    else this.#transport.settings.logger.error(`message ${message.id} of ${this.#queue.name} failed:`, error);
  }

  /** Wait for the messages in progress, and release those that take too long. */
  async #finish(): Promise<void> {
    const patience = new AbortController();
    const graceSeconds = this.#options.graceSeconds ?? 25;
    await Promise.race([Promise.all(this.#inProgress), sleep(graceSeconds, patience.signal).catch(() => undefined)]);
    patience.abort();
    const unfinished = this.#leases.messages.filter((message) => !message.settled);
    this.#leases.clear();
    this.#giveUp.abort();
    if (unfinished.length > 0) await attempted(this.#queue.release(unfinished));
  }
}

function reasonOf(text: string): string {
  return text.slice(0, REASON_CHARACTERS_MAX);
}

/** Return the stack of the error that led to a verdict, its `cause`; nothing without one. */
function causeOf(verdict: Error): string | undefined {
  return verdict.cause === undefined ? undefined : stackOf(verdict.cause);
}

/** Return the beginning of a stack, which tells most. */
function stackOf(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return text.slice(0, DETAILS_CHARACTERS_MAX);
}
