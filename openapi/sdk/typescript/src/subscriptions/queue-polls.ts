/** Subscription to a queue by long polls. */

import type { Message } from '../deliveries.js';
import type { ReceiveOptions } from '../nouns/queue.js';
import type { Transport } from '../transport/transport.js';
import { LeaseKeeper } from '../work/leases.js';
import { Closing, attempted } from './closing.js';
import type { Channel } from './subscription.js';

const WAIT_S = 20;
const LEASE_S = 30;

/** Queue of a subscription. */
export interface PolledQueue {
  readonly name: string;
  receive(options: ReceiveOptions): Promise<Message[]>;
  release(messages: Iterable<Message>): Promise<unknown>;
}

interface Prefetch {
  messagesMax: number;
  autoExtend: boolean;
  visibilityTimeoutSeconds: number | undefined;
}

/** Receives messages when those received before were taken, and extends their leases until they are settled. */
export class QueuePolls implements Channel<Message> {
  readonly #queue: PolledQueue;
  readonly #options: Prefetch;
  readonly #leases: LeaseKeeper;
  readonly #closing = new Closing();
  readonly #unsettled = new Set<Message>();
  #arrived: Message[] = [];
  #isOpen = false;

  constructor(transport: Transport, queue: PolledQueue, options: Prefetch) {
    this.#queue = queue;
    this.#options = options;
    this.#leases = new LeaseKeeper(transport, queue.name, options.visibilityTimeoutSeconds ?? LEASE_S);
  }

  async open(): Promise<void> {
    if (!this.#isOpen) await this.#receive(0);
    this.#isOpen = true;
  }

  async next(): Promise<Message | undefined> {
    this.#forgetSettled();
    while (!this.#closing.isClosed) {
      const message = this.#arrived.shift();
      if (message !== undefined) return message;
      await this.#receive(WAIT_S);
    }
    return undefined;
  }

  commit(): Promise<void> {
    return Promise.reject(new TypeError('Messages of a queue are acknowledged, not committed.'));
  }

  async close(): Promise<void> {
    if (!this.#closing.close()) return;
    this.#forgetSettled();
    this.#leases.clear();
    if (this.#unsettled.size > 0) await attempted(this.#queue.release(this.#unsettled));
  }

  async #receive(waitSeconds: number): Promise<void> {
    const { messagesMax, autoExtend, visibilityTimeoutSeconds } = this.#options;
    const lease = visibilityTimeoutSeconds ?? (autoExtend ? LEASE_S : undefined);
    const receiving = this.#queue.receive({
      messagesMax,
      waitSeconds,
      visibilityTimeoutSeconds: lease,
      signal: this.#closing.signal,
    });
    this.#arrived = (await this.#closing.unlessClosed(receiving)) ?? [];
    for (const message of this.#arrived) {
      this.#unsettled.add(message);
      if (autoExtend) this.#leases.add(message);
    }
  }

  #forgetSettled(): void {
    for (const message of this.#unsettled) {
      if (!message.settled) continue;
      this.#unsettled.delete(message);
      this.#leases.remove(message);
    }
  }
}
