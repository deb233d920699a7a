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
import { sleep } from '../transport/retries.js';
import type { Transport } from '../transport/transport.js';
import { allPages } from './pages.js';

const ENDED = new Set(['done', 'failed', 'cancelled']);
const WATCH_S = 0.5;
const ID_CHARACTERS = 16;

export interface WatchOptions {
  /** Default: 0.5. */
  everySeconds?: number;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

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
  async *watch({ everySeconds = WATCH_S, signal }: WatchOptions = {}): AsyncGenerator<ReplayDetail, void, void> {
    while (!signal?.aborted) {
      const status = await this.status();
      yield status;
      if (ENDED.has(status.state)) return;
      await sleep(everySeconds, signal).catch(() => undefined);
    }
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
