/** Subscription as a member of a group by long polls. */

import type { OnGap, StreamRecord } from '../deliveries.js';
import { type Member, isFenced } from '../nouns/member.js';
import { Closing, attempted } from './closing.js';
import type { Channel } from './subscription.js';

/** Group of a subscription. */
export interface PolledGroup {
  readonly name: string;
  member(): Member;
}

/** Fetches the records of a member's shards when those fetched before were taken. */
export class GroupPolls implements Channel<StreamRecord> {
  readonly #member: Member;
  readonly #limit: number;
  readonly #onGap: OnGap;
  readonly #closing = new Closing();
  #arrived: StreamRecord[] = [];
  #after = '';
  #isOpen = false;

  constructor(group: PolledGroup, { limit, onGap }: { limit: number; onGap: OnGap }) {
    this.#member = group.member();
    this.#limit = limit;
    this.#onGap = onGap;
  }

  async open(): Promise<void> {
    if (!this.#isOpen) await this.#fetch(0);
    this.#isOpen = true;
  }

  async next(): Promise<StreamRecord | undefined> {
    while (!this.#closing.isClosed) {
      const record = this.#arrived.shift();
      if (record !== undefined) return record;
      await this.#fetch(undefined);
    }
    return undefined;
  }

  commit(record: StreamRecord): Promise<void> {
    return this.#member.commitRecord(record);
  }

  async close(): Promise<void> {
    if (this.#closing.close() && this.#isOpen) await attempted(this.#member.leave());
  }

  /** Fetch what follows; after a reassignment, what follows the commits. */
  async #fetch(waitSeconds: number | undefined): Promise<void> {
    const { signal } = this.#closing;
    try {
      const call = this.#member.fetch({ limit: this.#limit, waitSeconds, after: this.#after, signal });
      const read = await this.#closing.unlessClosed(call);
      if (read === undefined) return;
      this.#arrived = read.records;
      this.#after = read.token;
      for (const gap of read.gaps) this.#onGap(gap);
    } catch (error) {
      if (this.#after === '' || !isFenced(error)) throw error;
      this.#after = '';
      this.#member.restart();
    }
  }
}
