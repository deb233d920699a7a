/** In-memory service, and the `fetch` through which the client calls it. */

import { Millstream } from '../millstream.js';
import { randomKey } from '../transport/effects.js';
import { sleep } from '../transport/retries.js';
import type { Options } from '../transport/settings.js';
import { BackTestJobs } from './back-test-jobs.js';
import { dispatch } from './calls/index.js';
import type { Answers, MemoryRequest, MemoryResult } from './calls/operations.js';
import { Catalog } from './definitions.js';
import { MemoryGroup, type MemoryGroupConfig } from './groups.js';
import { MemoryProblem, injected, invalid } from './problems.js';
import { MemoryQueue, type MemoryQueueConfig } from './queues.js';
import { MemoryRequests } from './requests.js';
import { MemoryStream } from './streams.js';
import { StreamCatalog, TopicCatalog, deliverAll } from './topics/catalogs.js';
import type { RoutedLog } from './topics/routed-log.js';
import { QueueTopic, StreamTopic } from './topics/sources.js';
import { OF_QUEUE } from './topics/targets.js';
import { MemoryTopic } from './topics/topic.js';

const URL_OF_TESTS = 'http://millstream.test';
const LONG_POLL_S = 0.05;
const LOOK_S = 0.005;

/**
 * Queues with requests, streams, groups and topics in memory, for one test.
 *
 *     const service = new MemoryService();
 *     const client = service.client();
 *
 * The client is the real one. The clock of the service runs as usual, and `advance` moves it. A call that waits for messages
 * or records ends after `longPollSeconds` of real time, with those that arrived. What the service does not have answers 501.
 */
export class MemoryService {
  readonly queues: Catalog<MemoryQueueConfig, MemoryQueue>;
  readonly topics: TopicCatalog;
  readonly streams: StreamCatalog;
  readonly groups: Catalog<MemoryGroupConfig, MemoryGroup>;
  readonly requests: MemoryRequests;
  readonly backTests: BackTestJobs;
  readonly answers: Answers = new Map();
  readonly #longPollSeconds: number;
  readonly #failures: number[] = [];
  #losses = 0;
  #aheadMs = 0;

  constructor({ longPollSeconds = LONG_POLL_S }: { longPollSeconds?: number } = {}) {
    const now = (): number => this.now();
    this.#longPollSeconds = longPollSeconds;
    this.requests = new MemoryRequests(now);
    this.backTests = new BackTestJobs(now, (topic) => this.topic(topic));
    this.queues = new Catalog('Queue', (name, config) => new MemoryQueue(name, config, now, (other) => this.queue(other)));
    const topics = (): TopicCatalog => this.topics;
    this.topics = new TopicCatalog(
      (name, config) => {
        if (!name.startsWith(OF_QUEUE)) return new MemoryTopic(name, config, now, topics);
        return new QueueTopic(name, config, now, topics, this.queue(name.slice(OF_QUEUE.length)));
      },
      (stream) => new StreamTopic(this.stream(stream), now, topics),
    );
    this.streams = new StreamCatalog((name, config) => new MemoryStream(name, config, now), this.topics);
    this.groups = new Catalog(
      'Group',
      (name, config) => new MemoryGroup(name, config, now, (stream) => this.stream(stream)),
    );
  }

  /** Return a client of this service. */
  client(options: Omit<Options, 'url' | 'fetch' | 'WebSocket'> = {}): Millstream {
    return new Millstream({ ...options, url: URL_OF_TESTS, fetch: this.fetch, WebSocket: null });
  }

  // ── Time and failures ──

  /** Return the time in milliseconds since 1970. */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** Move the clock: delays, visibility timeouts and retentions pass. */
  advance(seconds: number): void {
    this.#aheadMs += seconds * 1000;
    deliverAll(this.topics, this);
  }

  /** Reject the next attempts with a status; they have no effect. */
  failNext(status = 503, { times = 1 } = {}): void {
    for (let each = 0; each < times; each++) this.#failures.push(status);
  }

  /** Lose the responses of the next attempts, which do take effect. */
  loseNext({ times = 1 } = {}): void {
    this.#losses += times;
  }

  // ── Looking ──

  /** Return a queue, with its `messages` and `deadLetters`. */
  queue(name: string): MemoryQueue {
    return this.queues.get(name);
  }

  /** Return a stream, with its `records`. */
  stream(name: string): MemoryStream {
    return this.streams.get(name);
  }

  /** Return a group, with its `positions`. */
  group(name: string): MemoryGroup {
    return this.groups.get(name);
  }

  /** Return a topic, with its `messages` and `routes`: `stream:<name>` is that stream, `queue:<name>` that of a queue's routes. */
  topic(name: string): RoutedLog {
    return this.topics.get(name);
  }

  // ── Calls ──

  /** A `fetch` that this service answers. */
  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const status = this.#failures.shift();
    if (status !== undefined) return responseOf(resultOf(injected(status)));
    const result = await this.#waited(await read(request), request.signal);
    if (this.#losses > 0) {
      this.#losses -= 1;
      throw new TypeError('fetch failed: the test lost the response');
    }
    return responseOf(result);
  };

  async #waited(request: MemoryRequest, signal: AbortSignal): Promise<MemoryResult> {
    const until = performance.now() + this.#longPollSeconds * 1000;
    for (;;) {
      const result = this.#answer(request);
      if (!result.waitSeconds || performance.now() >= until) return result;
      await sleep(LOOK_S, signal);
    }
  }

  #answer(request: MemoryRequest): MemoryResult {
    try {
      deliverAll(this.topics, this); // what became due since the last call
      const result = dispatch(this, request);
      deliverAll(this.topics, this);
      return result;
    } catch (error) {
      if (error instanceof MemoryProblem) return resultOf(error);
      return resultOf(invalid('', `The request is invalid: ${String(error)}`, 'invalid'));
    }
  }
}

function resultOf(problem: MemoryProblem): MemoryResult {
  return { status: problem.status, body: problem.fields };
}

async function read(request: Request): Promise<MemoryRequest> {
  const { pathname, searchParams: query } = new URL(request.url);
  const path = pathname.replace(/^\/v1\//, '').replace(/^\//, '');
  const words = path.split('/').map(decodeURIComponent);
  return { method: request.method, words, query, headers: request.headers, text: await request.text() };
}

function responseOf({ body, status }: MemoryResult): Response {
  const id = randomKey().slice(12);
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  const headers = { 'content-type': type, 'x-request-id': id };
  if (body === undefined) return new Response(null, { status, headers });
  return new Response(JSON.stringify(status < 400 ? body : { ...body, request_id: id }), { status, headers });
}
