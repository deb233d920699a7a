/** Back-tests that run as jobs. */

import { getBacktestJob } from '../generated/sdk.gen.js';
import type { BackTestJobOut, JobOut } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';
import { Job } from './job.js';
import { type WatchOptions, watch } from './watch.js';

/** A back-test that runs as a job, whether it exists or not. Throws MillstreamError. */
export class BackTestJob {
  readonly id: string;
  readonly topic: string;
  readonly #transport: Transport;

  constructor(transport: Transport, topic: string, id: string) {
    this.#transport = transport;
    this.topic = topic;
    this.id = id;
  }

  /** Return the state, and the result so far. */
  async status(): Promise<BackTestJobOut> {
    const path = { topic: this.topic, job: this.id };
    return (await getBacktestJob({ client: this.#transport.client, path })).data;
  }

  /** Yield the status repeatedly until the job has ended. */
  watch(options: WatchOptions = {}): AsyncGenerator<BackTestJobOut, void, void> {
    return watch(() => this.status(), options);
  }

  /** Cancel the job; the result so far is kept. */
  cancel(): Promise<JobOut> {
    return new Job(this.#transport, this.id).cancel();
  }

  /** Retry a failed job from where it stopped. */
  retry(): Promise<JobOut> {
    return new Job(this.#transport, this.id).retry();
  }
}
