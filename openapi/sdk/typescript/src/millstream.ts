/** Client of a service: create one per service, and get everything else from it. */

import type { Client } from './generated/client/index.js';
import {
  checkReady,
  listConsumerGroups,
  listJobs,
  listQueues,
  listMirrors,
  listSources,
  listStreams,
  listTopics,
  listViews,
  makeTicket,
} from './generated/sdk.gen.js';
import type {
  JobKind,
  JobOut,
  JobState,
  ListedGroup,
  ListedQueue,
  ListedStream,
  ReadyOut,
  MirrorOut,
  QueryConfig,
  QueryResultOut,
  SourceOut,
  TicketOut,
  TopicOut,
  ViewOut,
} from './generated/types.gen.js';
import type { ReplyOptions } from './deliveries.js';
import { Group } from './nouns/group.js';
import { Job } from './nouns/job.js';
import { PAGE, allPages } from './nouns/pages.js';
import { Queue } from './nouns/queue.js';
import { Replay, Replays } from './nouns/replay.js';
import { Mirror } from './nouns/mirror.js';
import { reply } from './nouns/requests.js';
import { Socket } from './nouns/socket.js';
import { Source } from './nouns/source.js';
import { Stream } from './nouns/stream.js';
import { Topic } from './nouns/topic.js';
import { Query, run } from './nouns/query.js';
import { View } from './nouns/view.js';
import { type CallOptions, type Options, settingsOf } from './transport/settings.js';
import { Transport } from './transport/transport.js';

export interface ListOptions {
  prefix?: string;
  /** Add the latest measurement of each. */
  measured?: boolean;
}

/**
 * Client of one service. It sends nothing until it is used, and need not be closed.
 *
 *     const client = new Millstream();
 *     await client.queue('orders').send({ order: 7 });
 *
 * Without options it uses the service at `MILLSTREAM_URL` and the key in `MILLSTREAM_API_KEY`; the default URL is this
 * machine, or in a browser the origin of the page.
 */
export class Millstream {
  #transport: Transport;

  constructor(options: Options = {}) {
    this.#transport = new Transport(settingsOf(options));
  }

  /** Return a client of the same service whose calls have another time limit or other retries. */
  withOptions(options: CallOptions): Millstream {
    const other = new Millstream({ url: this.url });
    other.#transport = this.#transport.withOptions(options);
    return other;
  }

  /** URL of the service. */
  get url(): string {
    return this.#transport.settings.url;
  }

  /** For the functions of `millstream-client/calls`, one per operation: `whoami({ client: millstream.client })`. */
  get client(): Client {
    return this.#transport.client;
  }

  /** Return a queue, whether it exists or not. */
  queue(name: string): Queue {
    return new Queue(this.#transport, name);
  }

  /** Return a stream, whether it exists or not. */
  stream(name: string): Stream {
    return new Stream(this.#transport, name);
  }

  /** Return a topic, whether it exists or not. */
  topic(name: string): Topic {
    return new Topic(this.#transport, name);
  }

  /**
   * Reply to a request: the `replyTo` of a received message. Acknowledge the message afterwards.
   *
   * Throws Conflict, with the code `reply_taken` or `reply_too_late`, if no reply is accepted any more.
   */
  reply(
    replyTo: string,
    body: unknown,
    options: ReplyOptions & { idempotencyKey?: string; signal?: AbortSignal } = {},
  ): Promise<void> {
    return reply(this.#transport, replyTo, body, options);
  }

  /** Return a WebSocket for publishing to topics, for requests and for replies. Close it at the end. */
  socket(): Socket {
    return new Socket(this.#transport);
  }

  /** Return a consumer group, whether it exists or not. */
  group(name: string): Group {
    return new Group(this.#transport, name);
  }

  /** Return a view of a stream, whether it exists or not. */
  view(name: string): View {
    return new View(this.#transport, name);
  }

  /**
   * Run Spark SQL once, and return the query with its rows, however long it takes.
   *
   * Throws Refused if it is not accepted, fails, or is cancelled.
   */
  runQuery(config: QueryConfig): Promise<QueryResultOut> {
    return run(this.#transport, config);
  }

  /** Return a query by its id, whether it exists or not; `runQuery` starts one. */
  query(id: string): Query {
    return new Query(this.#transport, id);
  }

  /** Return a mirror of another deployment's streams, whether it exists or not. */
  mirror(name: string): Mirror {
    return new Mirror(this.#transport, name);
  }

  /** Return a source of webhooks, whether it exists or not. */
  source(name: string): Source {
    return new Source(this.#transport, name);
  }

  /** The replays of the service; `start` begins one. */
  get replays(): Replays {
    return new Replays(this.#transport);
  }

  /** Return a replay, whether it exists or not. */
  replay(id: string): Replay {
    return new Replay(this.#transport, id);
  }

  /** Return a job, whether it exists or not. */
  job(id: string): Job {
    return new Job(this.#transport, id);
  }

  /** Return whether the service is ready, and the result of each check. Throws Unavailable if it is not ready. */
  async ready(): Promise<ReadyOut> {
    return (await checkReady({ client: this.#transport.within({ seconds: 0 }) })).data;
  }

  /** Create a ticket, with which a page can open one WebSocket within 30 seconds as this client's key. */
  async ticket(): Promise<TicketOut> {
    return (await makeTicket({ client: this.client })).data;
  }

  // ── Lists ──

  /** List queues by name, with the latest measurement of each if requested. */
  queues(options: ListOptions = {}): AsyncGenerator<ListedQueue, void, void> {
    return allPages((cursor) => listQueues({ client: this.client, query: { ...options, limit: PAGE, cursor } }));
  }

  /** List streams by name, with the latest measurement of each if requested. */
  streams(options: ListOptions = {}): AsyncGenerator<ListedStream, void, void> {
    return allPages((cursor) => listStreams({ client: this.client, query: { ...options, limit: PAGE, cursor } }));
  }

  /** List groups by name, with the latest measurement of each if requested. */
  groups(options: ListOptions = {}): AsyncGenerator<ListedGroup, void, void> {
    return allPages((cursor) =>
      listConsumerGroups({ client: this.client, query: { ...options, limit: PAGE, cursor } }),
    );
  }

  /** List topics by name. */
  topics({ prefix }: Pick<ListOptions, 'prefix'> = {}): AsyncGenerator<TopicOut, void, void> {
    return allPages((cursor) => listTopics({ client: this.client, query: { prefix, limit: PAGE, cursor } }));
  }

  /** List views by name. */
  views({ prefix }: Pick<ListOptions, 'prefix'> = {}): AsyncGenerator<ViewOut, void, void> {
    return allPages((cursor) => listViews({ client: this.client, query: { prefix, limit: PAGE, cursor } }));
  }

  /** List mirrors by name. */
  mirrors({ prefix }: Pick<ListOptions, 'prefix'> = {}): AsyncGenerator<MirrorOut, void, void> {
    return allPages((cursor) => listMirrors({ client: this.client, query: { prefix, limit: PAGE, cursor } }));
  }

  /** List sources by name. */
  sources({ prefix }: Pick<ListOptions, 'prefix'> = {}): AsyncGenerator<SourceOut, void, void> {
    return allPages((cursor) => listSources({ client: this.client, query: { prefix, limit: PAGE, cursor } }));
  }

  /** List jobs, newest first: all, or those of a kind and in a state. */
  jobs(which: { kind?: JobKind; state?: JobState } = {}): AsyncGenerator<JobOut, void, void> {
    return allPages((cursor) => listJobs({ client: this.client, query: { ...which, cursor } }));
  }
}
