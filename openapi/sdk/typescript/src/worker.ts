/** Queue workers: concurrent handlers whose messages stay hidden until they are settled. */

import type { Millstream } from './client.js';
import type { Message } from './deliveries.js';
import { type QueueOptions, type Subscription, subscribeToQueue } from './subscription.js';

/** Thrown by a handler to retry the message after a delay, or after the queue's back-off. */
export class Retry extends Error {
  readonly delaySeconds: number | undefined;

  constructor(delaySeconds?: number) {
    super('to be tried again');
    this.delaySeconds = delaySeconds;
  }
}

/** Thrown by a handler for a permanent failure. The message is dead-lettered with the reason. */
export class Reject extends Error {}

export interface WorkOptions extends Pick<QueueOptions, 'visibilityTimeoutSeconds'> {
  /** Maximum messages in progress; default: 1. */
  concurrency?: number;
  /** Time for messages in progress once the worker is stopped; then they are released. Default: 25. */
  graceSeconds?: number;
  /** Called for errors that a handler threw, and for rejected settlements. */
  onError?: (error: unknown, message: Message) => void;
}

export type Handler = (message: Message) => unknown;

/** Passes messages to a handler, acknowledging each when it returns and negatively when it throws. Runs once. */
export class Worker {
  readonly #subscription: Subscription<Message>;
  readonly #handler: Handler;
  readonly #concurrency: number;
  readonly #graceSeconds: number;
  readonly #onError: (error: unknown, message: Message) => void;
  readonly #hands = new Set<Promise<void>>();
  #stopping = false;
  #stopped: () => void = () => undefined;
  readonly #whenStopped: Promise<undefined>;

  constructor(millstream: Millstream, queue: string, handler: Handler, options: WorkOptions = {}) {
    this.#concurrency = options.concurrency ?? 1;
    this.#graceSeconds = options.graceSeconds ?? 25;
    this.#onError = options.onError ?? ((error, message) => {
      console.error(`millstream: message ${message.id} failed:`, error);
    });
    this.#handler = handler;
    this.#whenStopped = new Promise((resolve) => {
      this.#stopped = () => {
        resolve(undefined);
      };
    });
    this.#subscription = subscribeToQueue(millstream, queue, {
      messages: this.#concurrency,
      ...(options.visibilityTimeoutSeconds === undefined
        ? {}
        : { visibilityTimeoutSeconds: options.visibilityTimeoutSeconds }),
    });
  }

  /** Work until stopped. Throws if the queue was deleted or cannot be read. */
  async run(): Promise<void> {
    await this.#subscription.open();
    try {
      while (!this.#stopping) {
        if (this.#hands.size >= this.#concurrency) await Promise.race([...this.#hands, this.#whenStopped]);
        if (this.#stopping) break;
        const message = await Promise.race([this.#subscription.next(), this.#whenStopped]);
        if (message === undefined) break;
        this.#begin(message);
      }
    } finally {
      await Promise.race([Promise.all(this.#hands), pause(this.#graceSeconds)]);
      await this.#subscription.close(); // what is still in hand is released
    }
  }

  /** Stop receiving, finish the messages in progress, and end. */
  stop(): void {
    this.#stopping = true;
    this.#stopped();
  }

  #begin(message: Message): void {
    const hand = this.#workOn(message).finally(() => this.#hands.delete(hand));
    this.#hands.add(hand);
  }

  async #workOn(message: Message): Promise<void> {
    try {
      await this.#settle(message, await this.#outcomeOf(message));
    } catch (error) {
      this.#onError(error, message);
    }
  }

  async #outcomeOf(message: Message): Promise<unknown> {
    try {
      await this.#handler(message);
      return undefined;
    } catch (error) {
      return error ?? new Error('the handler threw no error');
    }
  }

  async #settle(message: Message, error: unknown): Promise<void> {
    if (message.settled) return;
    if (error === undefined) await message.ack();
    else if (error instanceof Reject) await message.reject(error.message.slice(0, 1024));
    else {
      if (!(error instanceof Retry)) this.#onError(error, message);
      await message.nack(error instanceof Retry ? error.delaySeconds : undefined);
    }
  }
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer: unknown = setTimeout(resolve, seconds * 1000);
    (timer as { unref?: () => void }).unref?.(); // it keeps no Node process alive
  });
}
