/** Views: configuration, progress, rows. */

import {
  deleteView,
  getView,
  listViewBacktests,
  listViewBatches,
  listViewSources,
  pauseView,
  putView,
  readViewRows,
  rebuildView,
  resumeView,
  rollBackView,
  startViewBacktest,
} from '../generated/sdk.gen.js';
import type {
  ViewBackTestOut,
  ViewBatchOut,
  ViewConfig,
  ViewDetail,
  ViewOut,
  ViewRowsOut,
  ViewSourcesOut,
  ViewStored,
} from '../generated/types.gen.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { ViewBackTest } from './backtest.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';
import { PAGE } from './pages.js';

const SOURCES = 100;

/** Selection of rows. */
export interface RowOptions {
  /** Values of the first columns of the key. */
  key?: string[];
  /** Beginning of the next column of the key, a text. */
  prefix?: string;
  /** Only windows that end after this time. */
  windowFrom?: Date;
  /** Only windows that begin before this time. */
  windowTo?: Date;
  /** Only the newest window of each key. */
  latest?: boolean;
  /** In descending order of the key. */
  descending?: boolean;
  /** `shard:offset` of a record that the rows must include. */
  after?: string;
  /** How long a call waits for the record of `after`. */
  waitSeconds?: number;
  /** Rows as they were at this time, for a view with `history_seconds`. */
  at?: Date;
  /** Rows as they were after this batch. */
  atBatch?: number;
}

/** A page of rows. */
export interface RowPageOptions extends RowOptions {
  limit?: number;
  /** `next_cursor` of the previous page. */
  cursor?: string;
}

/** A page of the records that contributed to a row. */
export interface SourcePageOptions {
  /** Values of all columns of the key. */
  key?: string[];
  limit?: number;
  /** `next_cursor` of the previous page. */
  cursor?: string;
}

/** A view, whether it exists or not. Throws MillstreamError. */
export class View {
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
  }

  /** Return the same view whose calls have another time limit or other retries: `clicks.withOptions({ timeoutSeconds: 2 })`. */
  withOptions(options: CallOptions): View {
    return new View(this.#transport.withOptions(options), this.name);
  }

  get #at() {
    return { client: this.#transport.client, path: { view: this.name } };
  }

  /**
   * Create the view. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. `output` and `key` of one that exists are empty: see `details`. Throws
   * AlreadyExists, which names the settings that differ.
   */
  create(config: ViewConfig, options: CreateOptions = {}): Promise<ViewStored> {
    return created(putView({ ...this.#at, body: config, headers: CREATE }), options, { output: [], key: [] });
  }

  /** Create the view, or replace its configuration: settings that you leave out take their defaults. */
  async apply(config: ViewConfig, { dryRun }: ApplyOptions = {}): Promise<ViewStored> {
    return (await putView({ ...this.#at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration, the plan, the state, and what the rows include. */
  async details(): Promise<ViewDetail> {
    return (await getView(this.#at)).data;
  }

  /**
   * Return one page of rows in the order of their keys, with `as_of` and `next_cursor`.
   *
   * With `after`, the call waits for that record up to `waitSeconds`. Throws Unavailable if the rows still do not include it. With `at` or
   * `atBatch`, throws Gone if those rows are not kept.
   */
  async read(options: RowPageOptions = {}): Promise<ViewRowsOut> {
    const query = {
      key: options.key,
      prefix: options.prefix,
      window_from: options.windowFrom?.toISOString(),
      window_to: options.windowTo?.toISOString(),
      latest: options.latest,
      order: options.descending === true ? ('desc' as const) : undefined,
      limit: options.limit ?? PAGE,
      cursor: options.cursor,
      after: options.after,
      wait_seconds: options.waitSeconds,
      at: options.at?.toISOString(),
      at_batch: options.atBatch,
    };
    return (await readViewRows({ ...this.#at, query })).data;
  }

  /** Yield rows in the order of their keys, page by page; each page is as of its own batch, or all of that of `at`. */
  async *rows(options: RowOptions = {}): AsyncGenerator<Record<string, unknown>, void, void> {
    let cursor: string | undefined;
    do {
      const page = await this.read({ ...options, cursor });
      yield* page.rows;
      cursor = page.next_cursor ?? '';
    } while (cursor !== '');
  }

  /**
   * Return a row, the ranges of its sources, and one page of the records in them, for a view whose `sources` are `range`.
   *
   * `key` has the values of all columns of the key. Throws Unavailable while no worker finds the records.
   */
  async readSources(options: SourcePageOptions = {}): Promise<ViewSourcesOut> {
    return (await listViewSources({ ...this.#at, query: { limit: SOURCES, ...options } })).data;
  }

  /** Yield the records that contributed to a row, page by page, as reads of streams do. */
  async *sources(options: { key?: string[] } = {}): AsyncGenerator<Record<string, unknown>, void, void> {
    let cursor: string | undefined;
    do {
      const page = await this.readSources({ ...options, cursor });
      yield* page.records;
      cursor = page.next_cursor ?? '';
    } while (cursor !== '');
  }

  /** Return the last batches, newest first. */
  async batches(limit?: number): Promise<ViewBatchOut[]> {
    return (await listViewBatches({ ...this.#at, query: { limit } })).data.items;
  }

  /** Pause the view: its rows stay as they are. */
  async pause(): Promise<ViewOut> {
    return (await pauseView(this.#at)).data;
  }

  /** Resume the view where it was, also if it had stopped. */
  async resume(): Promise<ViewOut> {
    return (await resumeView(this.#at)).data;
  }

  /**
   * Return to the former revision, which a view with `keep_former_seconds` has.
   *
   * It answers as soon as both include the same records, which takes about a second. Throws NotFound without one.
   */
  async rollBack(): Promise<ViewDetail> {
    return (await rollBackView(this.#at)).data;
  }

  /**
   * Build the rows again from the view's `start`, beside the present ones.
   *
   * When the new revision replaces the present one, `report` of `details` compares their rows.
   */
  async rebuild(): Promise<ViewDetail> {
    return (await rebuildView(this.#at)).data;
  }

  /**
   * Start a job that evaluates a configuration over the records that the view includes: nothing is stored in the view, and nothing is sent.
   *
   * The result has the rows that differ, and the messages that the sinks would have got. If the same back-test runs already, return that
   * job; throws Refused if another one does.
   */
  async startBacktest(config: ViewConfig): Promise<ViewBackTest> {
    return this.backtest((await startViewBacktest({ ...this.#at, body: config })).data.id);
  }

  /** Return a back-test of the view, whether it exists or not. */
  backtest(id: string): ViewBackTest {
    return new ViewBackTest(this.#transport, this.name, id);
  }

  /** Return the last back-tests, newest first. */
  async backtests(limit?: number): Promise<ViewBackTestOut[]> {
    return (await listViewBacktests({ ...this.#at, query: { limit } })).data.items;
  }

  /** Delete the view and its rows; the stream stays. */
  async delete(): Promise<void> {
    await deleteView(this.#at);
  }
}
