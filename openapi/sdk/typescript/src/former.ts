/** Former names, for one release. */

import type { Message, StreamRecord } from './deliveries.js';
import { Millstream } from './millstream.js';
import type { Options } from './transport/settings.js';
import type {
  GroupSubscribeOptions,
  QueueSubscribeOptions,
  StreamSubscribeOptions,
  Subscription,
} from './subscriptions/subscription.js';
import { type Handler, type Worker as QueueWorker, type WorkOptions } from './work/worker.js';

/** @deprecated Use `new Millstream(options)`, with `logger` for `log`. */
export function connect({ log, ...options }: Options & { log?: (line: string) => void } = {}): Millstream {
  return new Millstream(log === undefined ? options : { ...options, logger: { warn: log, error: log } });
}

/** @deprecated Use `client.queue(name).subscribe(options)`. */
export function subscribeToQueue(
  client: Millstream,
  queue: string,
  options?: QueueSubscribeOptions,
): Subscription<Message> {
  return client.queue(queue).subscribe(options);
}

/** @deprecated Use `client.stream(name).subscribe(options)`. */
export function subscribeToStream(
  client: Millstream,
  stream: string,
  options?: StreamSubscribeOptions,
): Subscription<StreamRecord> {
  return client.stream(stream).subscribe(options);
}

/** @deprecated Use `client.group(name).subscribe(options)`. */
export function subscribeToGroup(
  client: Millstream,
  group: string,
  options?: GroupSubscribeOptions,
): Subscription<StreamRecord> {
  return client.group(group).subscribe(options);
}

/** @deprecated Use `client.queue(name).work(handler, options)`, or `worker`. */
export class Worker {
  readonly #worker: QueueWorker;

  constructor(client: Millstream, queue: string, handler: Handler, options?: WorkOptions) {
    this.#worker = client.queue(queue).worker(handler, { signals: false, ...options });
  }

  run(): Promise<void> {
    return this.#worker.run();
  }

  stop(): void {
    this.#worker.stop();
  }
}
