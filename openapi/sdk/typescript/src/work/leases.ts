/** Leases of messages in progress, which are extended until they are settled. */

import type { Message } from '../deliveries.js';
import { settleAll } from '../nouns/settlements.js';
import type { Transport } from '../transport/transport.js';

/** Extends all messages in progress, in one call every third of a lease. */
export class LeaseKeeper {
  readonly #transport: Transport;
  readonly #queue: string;
  readonly #leaseSeconds: number;
  readonly #messages = new Set<Message>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isExtending = false;

  constructor(transport: Transport, queue: string, leaseSeconds: number) {
    this.#transport = transport;
    this.#queue = queue;
    this.#leaseSeconds = leaseSeconds;
  }

  /** Messages whose leases are extended. */
  get messages(): Message[] {
    return [...this.#messages];
  }

  /** Extend the lease of a message until it is settled or removed. */
  add(message: Message): void {
    this.#messages.add(message);
    this.#schedule();
  }

  /** Stop extending a message. */
  remove(message: Message): void {
    this.#messages.delete(message);
    if (this.#messages.size === 0) this.clear();
  }

  /** Stop extending all messages. */
  clear(): void {
    this.#messages.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    if (this.#isExtending) return;
    this.#timer ??= setTimeout(() => void this.#extend(), (this.#leaseSeconds * 1000) / 3);
  }

  async #extend(): Promise<void> {
    this.#timer = undefined;
    for (const message of this.#messages) if (message.settled) this.#messages.delete(message);
    if (this.#messages.size === 0) return;
    this.#isExtending = true;
    const settlements = this.messages.map(({ receiptHandle }) => ({
      receipt_handle: receiptHandle,
      action: 'extend' as const,
      visibility_timeout_seconds: this.#leaseSeconds,
    }));
    try {
      // only the handler ends a delivery that is over, so results are of no interest
      await settleAll(this.#transport.within({ seconds: this.#leaseSeconds / 3 }), this.#queue, settlements);
    } catch (error) {
      this.#transport.settings.logger.warn(`extending leases of ${this.#queue} failed: ${String(error)}`);
    }
    this.#isExtending = false;
    if (this.#messages.size > 0) this.#schedule();
  }
}
