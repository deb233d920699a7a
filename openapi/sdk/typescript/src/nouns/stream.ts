/** Streams: configuration, records, and shards. */

import { encodedBody, encodedSize } from '../bodies.js';
import { ItemRefused, PartlyRefused } from '../errors.js';
import {
  appendRecords,
  appendRecordsToShard,
  changeStream,
  deleteStream,
  flushArchive,
  getArchive,
  getLatestRecord,
  getStream,
  getStreamLoad,
  listArchivedFiles,
  listShards,
  putFence,
  putStream,
  reshardStream,
  truncateShard,
} from '../generated/sdk.gen.js';
import type {
  AppendedOut,
  AppendedRecords,
  AppendToShard,
  ArchivedFileOut,
  ArchiveOut,
  FenceConfig,
  RecordIn,
  Reshard,
  ShardLoadOut,
  ShardOut,
  StreamConfig,
  StreamOut,
  StreamPatch,
  StreamStored,
} from '../generated/types.gen.js';
import { StreamRecord } from '../deliveries.js';
import { type StreamSubscribeOptions, Subscription } from '../subscriptions/subscription.js';
import { randomKey } from '../transport/effects.js';
import type { CallOptions } from '../transport/settings.js';
import { batches, sendBatch } from './batches.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';
import { PAGE, allPages } from './pages.js';
import { StreamReads } from './stream-reads.js';

export interface RecordOptions {
  /** Records with the same key stay in order. */
  key?: string;
  headers?: Record<string, string>;
  contentType?: string;
  eventTime?: Date;
}

export interface AppendOptions extends RecordOptions {
  /** Calls with the same key append once; default: a key for each call. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** A record to append, with options: see `appendMany`. */
export class NewRecord {
  readonly data: unknown;
  readonly options: RecordOptions;

  constructor(data: unknown, options: RecordOptions = {}) {
    this.data = data;
    this.options = options;
  }
}

/** Shard and offset of a record. `duplicate`: it had been appended before. */
export interface Appended {
  shard: number;
  offset: number;
  duplicate: boolean;
}

/** A stream, whether it exists or not. Throws MillstreamError. */
export class Stream extends StreamReads {
  /**
   * Return the same stream whose calls have another time limit or other retries: `clicks.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Stream {
    return new Stream(this.transport.withOptions(options), this.name);
  }

  // ── Configuration ──

  /**
   * Create the stream. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. Throws AlreadyExists, which names the settings that differ.
   */
  create(config: StreamConfig = {}, options: CreateOptions = {}): Promise<StreamStored> {
    return created(putStream({ ...this.at, body: config, headers: CREATE }), options);
  }

  /** Create the stream, or replace its configuration: settings that you leave out take their defaults. */
  async apply(config: StreamConfig = {}, { dryRun }: ApplyOptions = {}): Promise<StreamStored> {
    return (await putStream({ ...this.at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration. */
  async config(): Promise<StreamOut> {
    return (await getStream(this.at)).data;
  }

  /** Change fields of the configuration; null resets a field to its default. */
  async change(patch: StreamPatch): Promise<StreamOut> {
    return (await changeStream({ ...this.at, body: patch })).data;
  }

  /** Delete the stream and its records. */
  async delete(): Promise<void> {
    await deleteStream(this.at);
  }

  // ── Appending ──

  /** Append one record. `data`: text, bytes (Uint8Array), or a JSON value. Throws ItemRefused. */
  async append(data: unknown, options: AppendOptions = {}): Promise<Appended> {
    const [result] = await this.#append([outgoing(new NewRecord(data, options))], options);
    if (result instanceof ItemRefused) throw result;
    return result as Appended;
  }

  /**
   * Append data or NewRecords; return the shard and offset of each, in order. `key` applies to plain data.
   *
   * If the records do not fit into one call, they are sent in several. Throws PartlyRefused if some were rejected; calls
   * after the first one with a rejected record are not sent.
   */
  async appendMany(
    records: Iterable<unknown>,
    options: Pick<AppendOptions, 'key' | 'signal'> = {},
  ): Promise<Appended[]> {
    const { key, signal } = options;
    const all = Array.from(records, (data) => (data instanceof NewRecord ? data : new NewRecord(data, { key })));
    const done: (Appended | ItemRefused)[] = [];
    for (const batch of batches(all, ({ data }) => encodedSize(data))) {
      done.push(...(await this.#append(batch.map(outgoing), { signal })));
      if (done.some((result) => result instanceof ItemRefused)) throw new PartlyRefused(done);
    }
    return done as Appended[];
  }

  /** Append a batch; retry temporary rejections with the same key, which adds nothing twice. */
  async #append(records: RecordIn[], { idempotencyKey, signal }: AppendOptions): Promise<(Appended | ItemRefused)[]> {
    const headers = { 'Idempotency-Key': idempotencyKey ?? randomKey() };
    const send = async () => {
      const { data } = await appendRecords({ ...this.at, headers, signal, body: { records } });
      return (data as AppendedRecords).records.map(appended);
    };
    return sendBatch(send, this.transport, signal);
  }

  /**
   * Append to one shard, all records or none.
   *
   * The call is retried after an unknown outcome only with a `producer` {id, epoch, sequence} or an `expected_offset`.
   */
  async appendToShard(
    shard: number,
    records: Iterable<unknown>,
    conditions: Omit<AppendToShard, 'records'> = {},
  ): Promise<Appended[]> {
    const batch = Array.from(records, (data) => outgoing(data instanceof NewRecord ? data : new NewRecord(data)));
    const path = { stream: this.name, shard };
    const { data } = await appendRecordsToShard({ ...this.at, path, body: { ...conditions, records: batch } });
    const results = (data as AppendedRecords).records.map(appended);
    const refused = results.find((result) => result instanceof ItemRefused);
    if (refused !== undefined) throw refused;
    return results as Appended[];
  }

  // ── Reading ──

  /**
   * Subscribe to the stream's records, by default new ones, with a prefetch limit: they are pushed over a WebSocket, or
   * fetched by long polls where there is none.
   */
  subscribe(options: StreamSubscribeOptions = {}): Subscription<StreamRecord> {
    return Subscription.toStream(this.transport, this, options);
  }

  /** Return the latest record of a key, if the stream has a `key_index`. Throws NotFound. */
  async latest(key: string): Promise<StreamRecord> {
    return new StreamRecord((await getLatestRecord({ ...this.at, path: { stream: this.name, key } })).data);
  }

  // ── Shards ──

  /** List the shards, open and closed, with their extents. */
  async shards(): Promise<ShardOut[]> {
    return (await listShards(this.at)).data.items;
  }

  /** Return the load of each open shard over the last minute, with its hottest keys. */
  async load(): Promise<ShardLoadOut[]> {
    return (await getStreamLoad(this.at)).data.items;
  }

  /** Reshard to a number of equal `shards`, `split` one shard, or `merge` two adjacent ones. */
  async reshard(to: Reshard): Promise<ShardOut[]> {
    return (await reshardStream({ ...this.at, body: to })).data.items;
  }

  /** Permanently delete a shard's records before an offset; return its oldest offset. */
  async truncate(shard: number, before: number): Promise<number> {
    return (await truncateShard({ ...this.at, path: { stream: this.name, shard }, body: { before } })).data.start;
  }

  /** Set the fencing token of a shard, which appends must then carry; an empty token removes the fence. */
  async fence(shard: number, config: FenceConfig): Promise<boolean> {
    return (await putFence({ ...this.at, path: { stream: this.name, shard }, body: config })).data.fenced;
  }

  // ── Archive ──

  /** Return the archive state, by shard. */
  async archive(): Promise<ArchiveOut> {
    return (await getArchive(this.at)).data;
  }

  /** List the Parquet files of the archive. */
  archivedFiles(): AsyncGenerator<ArchivedFileOut, void, void> {
    const { client, path } = this.at;
    return allPages((cursor) => listArchivedFiles({ client, path, query: { limit: PAGE, cursor } }));
  }

  /** Archive all records now; return the id of the job. */
  async flushArchive(): Promise<string> {
    return (await flushArchive(this.at)).data.job;
  }
}

function outgoing({ data, options }: NewRecord): RecordIn {
  return {
    ...encodedBody('data', data),
    key: options.key,
    headers: options.headers,
    content_type: options.contentType,
    event_time: options.eventTime?.toISOString(),
  };
}

function appended({ shard = -1, offset = -1, duplicate = false, error }: AppendedOut): Appended | ItemRefused {
  return error === undefined ? { shard, offset, duplicate } : new ItemRefused(error);
}
