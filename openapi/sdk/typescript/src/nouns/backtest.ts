/** Back-tests that run as jobs: of matches, and of views. */

import { getBacktestJob, getViewBacktest } from '../generated/sdk.gen.js';
import type { BackTestJobOut, JobOut, ViewBackTestOut } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';
import { Job } from './job.js';
import { type WatchOptions, watch } from './watch.js';

abstract class BackTest<Status extends BackTestJobOut | ViewBackTestOut> {
  readonly id: string;
  protected readonly transport: Transport;

  constructor(transport: Transport, id: string) {
    this.transport = transport;
    this.id = id;
  }

  /** Return the state, and the result so far. */
  abstract status(): Promise<Status>;

  /** Yield the status repeatedly until the job has ended. */
  watch(options: WatchOptions = {}): AsyncGenerator<Status, void, void> {
    return watch(() => this.status(), options);
  }

  /** Cancel the job; the result so far is kept. */
  cancel(): Promise<JobOut> {
    return new Job(this.transport, this.id).cancel();
  }

  /** Retry a failed job from where it stopped. */
  retry(): Promise<JobOut> {
    return new Job(this.transport, this.id).retry();
  }
}

/** A match, evaluated on all messages of a topic, whether the job exists or not. Throws MillstreamError. */
export class BackTestJob extends BackTest<BackTestJobOut> {
  readonly topic: string;

  constructor(transport: Transport, topic: string, id: string) {
    super(transport, id);
    this.topic = topic;
  }

  override async status(): Promise<BackTestJobOut> {
    const path = { topic: this.topic, job: this.id };
    return (await getBacktestJob({ client: this.transport.client, path })).data;
  }
}

/** A configuration, evaluated over the records of a view, whether the job exists or not. Throws MillstreamError. */
export class ViewBackTest extends BackTest<ViewBackTestOut> {
  readonly view: string;

  constructor(transport: Transport, view: string, id: string) {
    super(transport, id);
    this.view = view;
  }

  override async status(): Promise<ViewBackTestOut> {
    const path = { view: this.view, backtest: this.id };
    return (await getViewBacktest({ client: this.transport.client, path })).data;
  }
}
