/** Mirrors: configuration, progress, promotion. */

import {
  deleteMirror,
  getMirror,
  getMirrorStats,
  pauseMirror,
  promoteMirror,
  putMirror,
  resumeMirror,
} from '../generated/sdk.gen.js';
import type {
  MirrorConfig,
  MirrorOut,
  MirrorPromotion,
  MirrorStats,
  MirrorStored,
  PromotionIn,
} from '../generated/types.gen.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';

/** A mirror of another deployment's streams and queues, whether it exists or not. Throws MillstreamError. */
export class Mirror {
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
  }

  /**
   * Return the same mirror whose calls have another time limit or other retries: `eu.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Mirror {
    return new Mirror(this.#transport.withOptions(options), this.name);
  }

  get #at() {
    return { client: this.#transport.client, path: { mirror: this.name } };
  }

  /**
   * Create the mirror. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. Throws AlreadyExists, which names the settings that differ.
   */
  create(config: MirrorConfig, options: CreateOptions = {}): Promise<MirrorStored> {
    return created(putMirror({ ...this.#at, body: config, headers: CREATE }), options);
  }

  /** Create the mirror, or replace its configuration: settings that you leave out take their defaults; the key stays. */
  async apply(config: MirrorConfig, { dryRun }: ApplyOptions = {}): Promise<MirrorStored> {
    return (await putMirror({ ...this.#at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration, without the key. */
  async config(): Promise<MirrorOut> {
    return (await getMirror(this.#at)).data;
  }

  /** Return how far the mirror is, by stream and shard, its groups and queues. */
  async stats(): Promise<MirrorStats> {
    return (await getMirrorStats(this.#at)).data;
  }

  /** Pause the mirror: it copies nothing until it is resumed. */
  async pause(): Promise<MirrorOut> {
    return (await pauseMirror(this.#at)).data;
  }

  /** Resume the mirror where it was. */
  async resume(): Promise<MirrorOut> {
    return (await resumeMirror(this.#at)).data;
  }

  /**
   * Stop the mirror permanently: its streams and queues are independent of the other deployment.
   *
   * If that can be reached, its streams and queues are made read-only first, and the last records are copied. If these take longer than
   * `wait_seconds`, the mirror is not promoted, and `promoted_at` is null: call again.
   */
  async promote(promotion: PromotionIn = {}): Promise<MirrorPromotion> {
    return (await promoteMirror({ ...this.#at, body: promotion })).data;
  }

  /** Delete the mirror; its streams and queues stay. */
  async delete(): Promise<void> {
    await deleteMirror(this.#at);
  }
}
