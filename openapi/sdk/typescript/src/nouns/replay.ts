/** Replays of stream records to another stream or to a queue. */

import {
  cancelReplay,
  getReplay,
  listReplays,
  pauseReplay,
  resumeReplay,
  retryReplay,
  startReplay,
} from '../generated/sdk.gen.js';
import type { JobState, PlanOut, ReplayConfig, ReplayDetail, ReplayOut } from '../generated/types.gen.js';
import { randomKey } from '../transport/effects.js';
import type { Transport } from '../transport/transport.js';
import { allPages } from './pages.js';
import { type WatchOptions, watch } from './watch.js';

const ID_CHARACTERS = 16;

/** A replay, whether it exists or not. Throws MillstreamError. */
export class Replay {
  readonly id: string;
  readonly #transport: Transport;

  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.id = id;
  }

  get #at() {
    return { client: this.#transport.client, path: { replay: this.id } };
  }

  /** Return the progress, by shard. */
  async status(): Promise<ReplayDetail> {
    return (await getReplay(this.#at)).data;
  }

  /** Yield the progress repeatedly until the replay has ended. */
  watch(options: WatchOptions = {}): AsyncGenerator<ReplayDetail, void, void> {
    return watch(() => this.status(), options);
  }

  /** Pause the replay. */
  async pause(): Promise<ReplayOut> {
    return (await pauseReplay(this.#at)).data;
  }

  /** Resume the replay. */
  async resume(): Promise<ReplayOut> {
    return (await resumeReplay(this.#at)).data;
  }

  /** Cancel the replay; records already sent are kept. */
  async cancel(): Promise<ReplayOut> {
    return (await cancelReplay(this.#at)).data;
  }

  /** Retry a failed replay from its current position. */
  async retry(): Promise<ReplayOut> {
    return (await retryReplay(this.#at)).data;
  }
}

/** Access to replays. */
export class Replays {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Start a replay to `target`, {stream: …} or {queue: …}. With an `id`, repeated calls start it only once. */
  async start(config: Omit<ReplayConfig, 'dry_run'>): Promise<Replay> {
    const id = config.id ?? `replay-${randomKey().slice(0, ID_CHARACTERS)}`;
    await startReplay({ client: this.#transport.client, body: { ...config, id } });
    return new Replay(this.#transport, id);
  }

  /** Return what a replay would do, without starting it. */
  async plan(config: Omit<ReplayConfig, 'dry_run'>): Promise<PlanOut> {
    const { data } = await startReplay({ client: this.#transport.client, body: { ...config, dry_run: true } });
    return data as PlanOut;
  }

  /** List replays, newest first: all, or those in a state. */
  list(state?: JobState): AsyncGenerator<ReplayOut, void, void> {
    return allPages((cursor) => listReplays({ client: this.#transport.client, query: { state, cursor } }));
  }
}
