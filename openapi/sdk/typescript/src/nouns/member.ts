/** Members of a consumer group, which read by long polls. */

/// <reference lib="esnext.disposable" preserve="true" />

import { type Gap, type OnGap, StreamRecord, gapText } from '../deliveries.js';
import { ItemRefused, PartlyRefused, Refused } from '../errors.js';
import { fetchRecords, leaveGroup } from '../generated/sdk.gen.js';
import type { CommitIn } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';

const WAIT_S = 20;
const LIMIT = 1000;
const FENCED = new Set(['stale_generation', 'member_unknown']);

export interface FetchOptions {
  /** Default: 1000. */
  limit?: number;
  /** Default: 20. */
  waitSeconds?: number;
  /** A token to continue after, before it is committed. */
  after?: string;
  /** Records that it does not take are passed over: a match or a list of matches, as a route of a topic has it. */
  match?: Record<string, unknown> | Record<string, unknown>[];
  signal?: AbortSignal;
}

export interface BatchesOptions extends Omit<FetchOptions, 'after'> {
  /** End when nothing arrives within `waitSeconds`. */
  untilEmpty?: boolean;
  onGap?: OnGap;
}

/** Records of a member's shards; `token` commits them. */
export interface GroupRead {
  records: StreamRecord[];
  gaps: Gap[];
  shards: number[];
  generation: number;
  token: string;
  behindSeconds: number;
}

interface OwnGroup {
  readonly name: string;
  readonly transport: Transport;
  commit(body: CommitIn): Promise<void>;
}

/**
 * One member of a group, from its first fetch for as long as it keeps fetching.
 *
 * Its records are of shards that no other member reads at the same time. Records that it does not commit are delivered
 * again, to it or to the next member that reads their shards.
 */
export class Member implements AsyncDisposable {
  readonly group: OwnGroup;
  readonly name: string;
  #token = ''; // of the last read, by which the service knows this instance
  #generation: number | undefined;

  constructor(group: OwnGroup, name: string) {
    this.group = group;
    this.name = name;
  }

  /** Fetch the next records of the member's shards; a repeated call returns the same. Throws Conflict. */
  async fetch(options: FetchOptions = {}): Promise<GroupRead> {
    const { limit = LIMIT, waitSeconds = WAIT_S, after = '', match, signal } = options;
    const { name, transport } = this.group;
    const position = after === '' ? { token: this.#token || undefined } : { after };
    const filter = match === undefined ? {} : { match: JSON.stringify(match) };
    const query = { member: this.name, limit, wait_seconds: waitSeconds, ...position, ...filter };
    const { data } = await fetchRecords({ client: transport.client, path: { group: name }, query, signal });
    this.#token = data.token;
    this.#generation = data.generation;
    const { shards, generation, token, behind_seconds: behindSeconds } = data;
    const records = data.records.map((record) => new StreamRecord(record));
    const gaps = data.gaps.map((gap) => ({ ...gap, shard: gap.shard ?? -1 }));
    return { records, gaps, shards, generation, token, behindSeconds };
  }

  /** Commit the records that were read. Throws PartlyRefused, with `stale_generation` for shards that were reassigned. */
  commit({ token }: GroupRead): Promise<void> {
    return this.group.commit({ token });
  }

  /** Commit a record, and everything before it in its shard. Throws PartlyRefused. */
  commitRecord({ shard, offset }: StreamRecord): Promise<void> {
    const offsets = [{ shard, offset: offset + 1 }];
    return this.group.commit({ member: this.name, generation: this.#generation, offsets });
  }

  /**
   * Yield records in batches, and commit each batch when the next one is requested.
   *
   * A commit that is rejected because its shards were reassigned throws no error here: the new owner receives the records
   * again. Aborting the signal ends the iteration.
   */
  async *batches(options: BatchesOptions = {}): AsyncGenerator<GroupRead, void, void> {
    const { untilEmpty = false, signal } = options;
    const { logger } = this.group.transport.settings;
    const onGap =
      options.onGap ??
      ((gap) => {
        logger.warn(gapText(gap));
      });
    while (!signal?.aborted) {
      const read = await this.#fetchUnlessAborted(options);
      if (read === undefined) return;
      for (const gap of read.gaps) onGap(gap);
      if (read.records.length > 0) yield read;
      else if (untilEmpty && read.gaps.length === 0) return;
      if (read.records.length > 0 || read.gaps.length > 0) await ifOurs(this.commit(read));
    }
  }

  async #fetchUnlessAborted(options: BatchesOptions): Promise<GroupRead | undefined> {
    try {
      return await this.fetch(options);
    } catch (error) {
      if (options.signal?.aborted) return undefined;
      throw error;
    }
  }

  /** Leave the group. The member's shards are reassigned immediately. */
  async leave(): Promise<void> {
    const { name, transport } = this.group;
    const query = { generation: this.#generation };
    this.restart();
    await ifOurs(leaveGroup({ client: transport.client, path: { group: name, member: this.name }, query }));
  }

  /** Begin as a new instance of the member with the next fetch, after what was committed. */
  restart(): void {
    this.#token = '';
    this.#generation = undefined;
  }

  /** Leave the group. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }
}

/** Ignore a rejection that says that another member has the shards now. */
export async function ifOurs(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isFenced(error)) throw error;
  }
}

/** Return whether a call was rejected because the member's shards were reassigned, or the member was replaced. */
export function isFenced(error: unknown): boolean {
  if (error instanceof PartlyRefused) {
    return error.results.every((result) => !(result instanceof ItemRefused) || FENCED.has(result.code));
  }
  return error instanceof Refused && FENCED.has(error.code);
}
