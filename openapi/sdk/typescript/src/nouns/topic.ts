/** Topics: configuration, publishing, routes, and results of their matches. */

import { encodedBody, encodedSize } from '../bodies.js';
import { ItemRefused, PartlyRefused } from '../errors.js';
import {
  backtestMatch,
  changeTopic,
  deleteTopic,
  explainMessage,
  getMessageRoutes,
  getPublishedMessage,
  getTopic,
  getTopicStats,
  listRoutes,
  publishMessages,
  publishRequest,
  putTopic,
  startBacktestJob,
} from '../generated/sdk.gen.js';
import type {
  BackTestConfig,
  BackTestJobConfig,
  BackTestOut,
  ExplainRequest,
  Explanation,
  MessageRoutes,
  PublicationIn,
  PublicationResult,
  PublishedMessages,
  RouteOut,
  TopicConfig,
  TopicMessageOut,
  TopicOut,
  TopicPatch,
  TopicStats,
  TopicStored,
} from '../generated/types.gen.js';
import { randomKey } from '../transport/effects.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { BackTestJob } from './backtest.js';
import { batches, sendBatch } from './batches.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';
import { PAGE, allPages } from './pages.js';
import { type Reply, type RequestTerms, allReplies, requestFields } from './requests.js';
import { Route } from './route.js';

export interface PublicationOptions {
  /** Words with dots between, such as `order.created`. */
  subject?: string;
  /** Messages with the same key stay in order. */
  key?: string;
  headers?: Record<string, string>;
  contentType?: string;
  /** FIFO topics: an id that was accepted within five minutes adds nothing. */
  dedupId?: string;
  /** Delay of copies in queues; default: that of the route. */
  delaySeconds?: number;
  /** Time to live of copies in queues, from the publication; default: that of the route. */
  ttlSeconds?: number;
  /** Priority of copies in standard queues, 0 to 9. */
  priority?: number;
}

export interface PublishOptions extends PublicationOptions {
  /** Calls with the same key publish once; default: a key for each call. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface TopicRequestOptions extends RequestTerms {
  subject?: string;
  key?: string;
  /** Number of replies to wait for; default: 1. */
  repliesMax?: number;
}

/** A message to publish, with options: see `publishMany`. */
export class NewPublication {
  readonly body: unknown;
  readonly options: PublicationOptions;

  constructor(body: unknown, options: PublicationOptions = {}) {
    this.body = body;
    this.options = options;
  }
}

/** Id of an accepted message, and the number of routes that take it; null for a duplicate. */
export interface Published {
  id: string;
  shard: number;
  offset: number;
  duplicate: boolean;
  routes: number | null;
}

/** A topic, whether it exists or not. Its messages are read as the stream `topic:<name>`. Throws MillstreamError. */
export class Topic {
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
  }

  /**
   * Return the same topic whose calls have another time limit or other retries: `orders.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Topic {
    return new Topic(this.#transport.withOptions(options), this.name);
  }

  get #at() {
    return { client: this.#transport.client, path: { topic: this.name } };
  }

  // ── Configuration ──

  /**
   * Create the topic. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. Throws AlreadyExists, which names the settings that differ.
   */
  create(config: TopicConfig = {}, options: CreateOptions = {}): Promise<TopicStored> {
    return created(putTopic({ ...this.#at, body: config, headers: CREATE }), options);
  }

  /** Create the topic, or replace its configuration: settings that you leave out take their defaults. */
  async apply(config: TopicConfig = {}, { dryRun }: ApplyOptions = {}): Promise<TopicStored> {
    return (await putTopic({ ...this.#at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration. */
  async config(): Promise<TopicOut> {
    return (await getTopic(this.#at)).data;
  }

  /** Change fields of the configuration; null resets a field to its default. */
  async change(patch: TopicPatch): Promise<TopicOut> {
    return (await changeTopic({ ...this.#at, body: patch })).data;
  }

  /** Delete the topic with its messages and routes. */
  async delete(): Promise<void> {
    await deleteTopic(this.#at);
  }

  /** Return the number of messages, and of those that are not yet examined for the routes. */
  async stats(): Promise<TopicStats> {
    return (await getTopicStats(this.#at)).data;
  }

  // ── Publishing ──

  /** Publish one message. `body`: text, bytes (Uint8Array), or a JSON value. Throws ItemRefused. */
  async publish(body: unknown, options: PublishOptions = {}): Promise<Published> {
    const [result] = await this.#publish([publicationOf(new NewPublication(body, options))], options);
    if (result instanceof ItemRefused) throw result;
    return result as Published;
  }

  /**
   * Publish bodies or NewPublications; return the result of each, in order. `subject` applies to plain bodies.
   *
   * If the messages do not fit into one call, they are sent in several. Throws PartlyRefused if some were rejected; calls
   * after the first one with a rejected message are not sent.
   */
  async publishMany(
    messages: Iterable<unknown>,
    options: Pick<PublishOptions, 'subject' | 'signal'> = {},
  ): Promise<Published[]> {
    const { subject, signal } = options;
    const all = Array.from(messages, (body) =>
      body instanceof NewPublication ? body : new NewPublication(body, { subject }),
    );
    const done: (Published | ItemRefused)[] = [];
    for (const batch of batches(all, ({ body }) => encodedSize(body))) {
      done.push(...(await this.#publish(batch.map(publicationOf), { signal })));
      if (done.some((result) => result instanceof ItemRefused)) throw new PartlyRefused(done);
    }
    return done as Published[];
  }

  /** Publish a batch; retry temporary rejections with the same key, which adds nothing twice. */
  #publish(messages: PublicationIn[], { idempotencyKey, signal }: PublishOptions): Promise<(Published | ItemRefused)[]> {
    const headers = { 'Idempotency-Key': idempotencyKey ?? randomKey() };
    const send = async () => {
      const { data } = await publishMessages({ ...this.#at, headers, signal, body: { messages } });
      return (data as PublishedMessages).messages.map(published);
    };
    return sendBatch(send, this.#transport, signal);
  }

  /**
   * Publish a message, and wait until there are `repliesMax` replies, or until the deadline; return those that arrived.
   *
   * A repeat with the same key publishes nothing, and waits for the same replies.
   */
  async request(body: unknown, options: TopicRequestOptions = {}): Promise<Reply[]> {
    const { subject, key, repliesMax, signal } = options;
    const fields = requestFields(body, options);
    const content = { ...fields.body, subject, key, replies_max: repliesMax };
    const { data } = await publishRequest({ ...this.#at, ...fields, body: content, signal });
    return allReplies(this.#transport, data, signal);
  }

  // ── Messages ──

  /** Return a published message. */
  async message(id: string): Promise<TopicMessageOut> {
    return (await getPublishedMessage({ ...this.#at, path: { topic: this.name, message: id } })).data;
  }

  /** Return the routes that take a published message, and the state of each. */
  async messageRoutes(id: string): Promise<MessageRoutes> {
    return (await getMessageRoutes({ ...this.#at, path: { topic: this.name, message: id } })).data;
  }

  /** Return which routes take a message, and for the others the conditions that fail. It is not published. */
  async explain(request: ExplainRequest): Promise<Explanation> {
    return (await explainMessage({ ...this.#at, body: request })).data;
  }

  // ── Back-tests ──

  /**
   * Evaluate a match on the messages that the topic has, beside that of a route. Nothing is delivered.
   *
   * If there are more than 200,000 messages, `complete` is false: see `startBacktest`.
   */
  async backtest(config: BackTestConfig = {}): Promise<BackTestOut> {
    return (await backtestMatch({ ...this.#at, body: config })).data;
  }

  /**
   * Start a job that evaluates a match on all messages of the topic, also archived ones.
   *
   * If the same back-test runs already, return that job.
   */
  async startBacktest(config: BackTestJobConfig = {}): Promise<BackTestJob> {
    const { data } = await startBacktestJob({ ...this.#at, body: config });
    return this.backtestJob(data.id);
  }

  /** Return a back-test that runs as a job, whether it exists or not. */
  backtestJob(id: string): BackTestJob {
    return new BackTestJob(this.#transport, this.name, id);
  }

  // ── Routes ──

  /** Return a route, whether it exists or not. */
  route(name: string): Route {
    return new Route(this.#transport, this.name, name);
  }

  /** List the routes by name. */
  routes(prefix?: string): AsyncGenerator<RouteOut, void, void> {
    return allPages((cursor) => listRoutes({ ...this.#at, query: { prefix, limit: PAGE, cursor } }));
  }
}

/** Return a message to publish as the API takes it. */
export function publicationOf({ body, options }: NewPublication): PublicationIn {
  return {
    ...encodedBody('body', body),
    subject: options.subject,
    key: options.key,
    headers: options.headers,
    content_type: options.contentType,
    dedup_id: options.dedupId,
    delay_seconds: options.delaySeconds,
    ttl_seconds: options.ttlSeconds,
    priority: options.priority,
  };
}

/** Return the result of one message. */
export function published({ id = '', shard = -1, offset = -1, duplicate = false, routes = null, error }: PublicationResult) {
  return error === undefined ? { id, shard, offset, duplicate, routes } : new ItemRefused(error);
}
