/** Jobs: background work of the service. */

import { cancelJob, getJob, retryJob } from '../generated/sdk.gen.js';
import type { JobDetail, JobOut } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';

/** A job, whether it exists or not. Throws MillstreamError. */
export class Job {
  readonly id: string;
  readonly #transport: Transport;

  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.id = id;
  }

  get #at() {
    return { client: this.#transport.client, path: { job: this.id } };
  }

  /** Return the state and the parts. */
  async status(): Promise<JobDetail> {
    return (await getJob(this.#at)).data;
  }

  /** Cancel the job; completed work is kept. */
  async cancel(): Promise<JobOut> {
    return (await cancelJob(this.#at)).data;
  }

  /** Retry a failed job from where it stopped. */
  async retry(): Promise<JobOut> {
    return (await retryJob(this.#at)).data;
  }
}
