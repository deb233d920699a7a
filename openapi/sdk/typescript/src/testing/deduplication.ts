/** Deduplication ids of in-memory queues and topics. */

import type { Clock } from './definitions.js';

const WINDOW_MS = 300_000;

/** Items that were added under a deduplication id within the window. */
export class Deduplication<T> {
  readonly #now: Clock;
  readonly #items = new Map<string, { item: T; at: number }>();

  constructor(now: Clock) {
    this.#now = now;
  }

  /** Return the item that was added under an id; undefined without an id. */
  find(id: string): T | undefined {
    const added = id === '' ? undefined : this.#items.get(id);
    return added !== undefined && this.#now() - added.at < WINDOW_MS ? added.item : undefined;
  }

  /** Add an item under an id, unless that is empty. */
  add(id: string, item: T): void {
    if (id !== '') this.#items.set(id, { item, at: this.#now() });
  }

  /** Remove all items. */
  clear(): void {
    this.#items.clear();
  }
}
