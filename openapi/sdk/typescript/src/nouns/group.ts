/** Consumer groups: configuration, offsets and bookmarks. */

import type { StreamRecord } from '../deliveries.js';
import { ItemRefused, PartlyRefused } from '../errors.js';
import {
  commitOffsets,
  deleteBookmark,
  deleteConsumerGroup,
  getConsumerGroup,
  getGroupLag,
  listBookmarks,
  pauseConsumerGroup,
  putBookmark,
  putConsumerGroup,
  resetGroup,
  resumeConsumerGroup,
} from '../generated/sdk.gen.js';
import type {
  BookmarkOut,
  CommitIn,
  GroupConfig,
  GroupDetail,
  GroupLag,
  GroupOut,
  GroupStored,
  ResetIn,
  ResetOut,
} from '../generated/types.gen.js';
import { type GroupSubscribeOptions, Subscription } from '../subscriptions/subscription.js';
import { randomKey } from '../transport/effects.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';
import { Member } from './member.js';

const NAME_CHARACTERS = 12;

/** Next offset to read by shard. */
export type Offsets = Record<number, number>;

/** A consumer group, whether it exists or not. Throws MillstreamError. */
export class Group {
  readonly name: string;
  readonly transport: Transport;

  constructor(transport: Transport, name: string) {
    this.transport = transport;
    this.name = name;
  }

  /**
   * Return the same group whose calls have another time limit or other retries: `billing.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Group {
    return new Group(this.transport.withOptions(options), this.name);
  }

  get #at() {
    return { client: this.transport.client, path: { group: this.name } };
  }

  // ── Configuration ──

  /**
   * Create the group of a stream's readers. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. Throws AlreadyExists, which names the settings that differ.
   */
  create(stream: string, config: Omit<GroupConfig, 'stream'> = {}, options: CreateOptions = {}): Promise<GroupStored> {
    return created(putConsumerGroup({ ...this.#at, body: { ...config, stream }, headers: CREATE }), options);
  }

  /** Create the group, or change its timeouts: settings that you leave out take their defaults. */
  async apply(
    stream: string,
    config: Omit<GroupConfig, 'stream'> = {},
    { dryRun }: ApplyOptions = {},
  ): Promise<GroupStored> {
    const query = { dry_run: dryRun };
    return (await putConsumerGroup({ ...this.#at, body: { ...config, stream }, query })).data;
  }

  /** Pause the group: its members receive no records until it is resumed. */
  async pause(): Promise<GroupOut> {
    return (await pauseConsumerGroup(this.#at)).data;
  }

  /** Resume the group. */
  async resume(): Promise<GroupOut> {
    return (await resumeConsumerGroup(this.#at)).data;
  }

  /** Return the configuration, the members, and the shards of each member. */
  async details(): Promise<GroupDetail> {
    return (await getConsumerGroup(this.#at)).data;
  }

  /** Delete the group, its offsets and its bookmarks. */
  async delete(): Promise<void> {
    await deleteConsumerGroup(this.#at);
  }

  /** Return the lag in records and in time. */
  async lag(): Promise<GroupLag> {
    return (await getGroupLag(this.#at)).data;
  }

  // ── Reading as a member ──

  /** Return a member of the group. Members with the same name are one member; the default is a unique name. */
  member(name = `member-${randomKey().slice(0, NAME_CHARACTERS)}`): Member {
    return new Member(this, name);
  }

  /**
   * Subscribe as a member, to the records of the member's shards; `commit` commits them.
   *
   * They are pushed over a WebSocket, or fetched by long polls where there is none.
   */
  subscribe(options: GroupSubscribeOptions = {}): Subscription<StreamRecord> {
    return Subscription.toGroup(this.transport, this, options);
  }

  /** Commit the next offset to read of each shard, for a group of kind `simple`. */
  commitOffsets(offsets: Offsets): Promise<void> {
    const entries = Object.entries(offsets).map(([shard, offset]) => ({ shard: Number(shard), offset }));
    return this.commit({ offsets: entries });
  }

  /** Commit a token, or offsets with their member and generation. Throws PartlyRefused. */
  async commit(body: CommitIn): Promise<void> {
    const { data } = await commitOffsets({ ...this.#at, body });
    if (data.failed === 0) return;
    throw new PartlyRefused(
      data.offsets.map((result) => (result.error === undefined ? result : new ItemRefused(result.error))),
    );
  }

  // ── Offsets ──

  /** Reset the offsets `to` 'earliest', 'latest', a 'time', 'offsets' or a 'bookmark'; with `dry_run`, return what it would do. */
  async reset(to: ResetIn): Promise<ResetOut> {
    return (await resetGroup({ ...this.#at, body: to })).data;
  }

  /** Save the current offsets, or others, as a bookmark. */
  async bookmark(name: string, offsets?: Offsets): Promise<BookmarkOut> {
    const path = { group: this.name, bookmark: name };
    return (await putBookmark({ ...this.#at, path, body: { positions: offsets } })).data;
  }

  /** List the bookmarks by name. */
  async bookmarks(): Promise<BookmarkOut[]> {
    return (await listBookmarks(this.#at)).data.items;
  }

  /** Delete a bookmark. */
  async deleteBookmark(name: string): Promise<void> {
    await deleteBookmark({ ...this.#at, path: { group: this.name, bookmark: name } });
  }
}
