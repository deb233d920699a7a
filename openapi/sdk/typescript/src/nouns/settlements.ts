/** Settlements of a queue's deliveries: those that are submitted during a call leave together in the next. */

import { ItemRefused } from '../errors.js';
import { settleMessages } from '../generated/sdk.gen.js';
import type { SettledOut, SettlementIn } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';
import { ITEMS_MAX, batches } from './batches.js';

interface Submitted {
  settlement: SettlementIn;
  done: (replyError?: ItemRefused) => void;
  failed: (error: unknown) => void;
}

/** Settle deliveries; return one result for each, in order. */
export async function settleAll(
  client: Transport['client'],
  queue: string,
  settlements: Iterable<SettlementIn>,
): Promise<(SettledOut | ItemRefused)[]> {
  const results: (SettledOut | ItemRefused)[] = [];
  for (const batch of batches(settlements, ({ receipt_handle: handle }) => handle.length)) {
    const { data } = await settleMessages({ client, path: { queue }, body: { settlements: batch } });
    results.push(
      ...data.results.map((result) => (result.error === undefined ? result : new ItemRefused(result.error))),
    );
  }
  return results;
}

/** Batcher of the settlements of one queue. */
export class SettlementBatcher {
  readonly #transport: Transport;
  readonly #queue: string;
  readonly #waiting: Submitted[] = [];
  #isSending = false;

  constructor(transport: Transport, queue: string) {
    this.#transport = transport;
    this.#queue = queue;
  }

  /** Settle one delivery; return why its reply was refused, if it was. Throws ItemRefused. */
  settle(settlement: SettlementIn): Promise<ItemRefused | undefined> {
    return new Promise((done, failed) => {
      this.#waiting.push({ settlement, done, failed });
      if (!this.#isSending) void this.#send();
    });
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    await Promise.resolve(); // what is submitted in the same turn leaves together
    while (this.#waiting.length > 0) {
      await this.#settle(this.#waiting.splice(0, ITEMS_MAX));
    }
    this.#isSending = false;
  }

  async #settle(batch: Submitted[]): Promise<void> {
    try {
      const settlements = batch.map(({ settlement }) => settlement);
      const results = await settleAll(this.#transport.client, this.#queue, settlements);
      for (const [place, { done, failed }] of batch.entries()) {
        const result = results[place];
        if (result instanceof ItemRefused) failed(result);
        else done(result?.reply_error && new ItemRefused(result.reply_error));
      }
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
  }
}
