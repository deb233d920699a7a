/** Queries that run once: their states and rows. */

import { refusalOf } from '../errors.js';
import { cancelQuery, getQuery, runQuery } from '../generated/sdk.gen.js';
import type { QueryConfig, QueryOut, QueryResultOut } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';
import { type WatchOptions, watch } from './watch.js';

const INVALID = 422;

/** A query by its id, whether it exists or not. Throws MillstreamError. */
export class Query {
  readonly id: string;
  readonly #transport: Transport;

  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.id = id;
  }

  get #at() {
    return { client: this.#transport.client, path: { query: this.id } };
  }

  /** Return the state, with the rows once it is `done`. */
  async status(): Promise<QueryResultOut> {
    return (await getQuery(this.#at)).data;
  }

  /** Yield the status repeatedly until the query has ended. */
  watch(options: WatchOptions = {}): AsyncGenerator<QueryResultOut, void, void> {
    return watch(() => this.status(), options);
  }

  /** Cancel the query; one that has ended stays as it is. */
  async cancel(): Promise<QueryOut> {
    return (await cancelQuery(this.#at)).data;
  }
}

/** Run a query, and wait for its rows. Throws Refused if it is refused, fails or is cancelled. */
export async function run(transport: Transport, config: QueryConfig): Promise<QueryResultOut> {
  let query = (await runQuery({ client: transport.client, body: config })).data;
  if (query.state === 'queued' || query.state === 'running') {
    for await (const status of new Query(transport, query.id).watch()) query = status;
  }
  if (query.state !== 'done') {
    const detail = query.failure || 'The query was cancelled.';
    throw refusalOf({ status: INVALID, code: 'query_failed', detail });
  }
  return query;
}
