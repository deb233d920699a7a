/** Sources: configuration, the URL that providers post to, counters, rejected requests. */

import {
  deleteSource,
  getSource,
  getSourceStats,
  getSourceUrl,
  listSourceFailures,
  pauseSource,
  putSource,
  resumeSource,
  rotateSourceUrl,
  testSource,
} from '../generated/sdk.gen.js';
import type {
  ReceivedEvent,
  SourceConfig,
  SourceFailureOut,
  SourceOut,
  SourceStats,
  SourceStored,
} from '../generated/types.gen.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';

const DAY_S = 86_400;

/** A source of webhooks, whether it exists or not. Throws MillstreamError. */
export class Source {
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
  }

  /**
   * Return the same source whose calls have another time limit or other retries: `github.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Source {
    return new Source(this.#transport.withOptions(options), this.name);
  }

  get #at() {
    return { client: this.#transport.client, path: { source: this.name } };
  }

  /**
   * Create the source. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. The `path` of one that exists is null: `url` returns it. Throws
   * AlreadyExists, which names the settings that differ.
   */
  create(config: SourceConfig, options: CreateOptions = {}): Promise<SourceStored> {
    return created(putSource({ ...this.#at, body: config, headers: CREATE }), options, { path: null });
  }

  /** Create the source, or replace its configuration: settings that you leave out take their defaults; secrets and URL stay. */
  async apply(config: SourceConfig, { dryRun }: ApplyOptions = {}): Promise<SourceStored> {
    return (await putSource({ ...this.#at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration, without secrets. */
  async config(): Promise<SourceOut> {
    return (await getSource(this.#at)).data;
  }

  /** Pause the source: its events are refused, and providers send them again. */
  async pause(): Promise<SourceOut> {
    return (await pauseSource(this.#at)).data;
  }

  /** Resume the source. */
  async resume(): Promise<SourceOut> {
    return (await resumeSource(this.#at)).data;
  }

  /** Delete the source, and the events that have not reached its target. */
  async delete(): Promise<void> {
    await deleteSource(this.#at);
  }

  /** Return the URL to give to the provider. It is a credential. */
  async url(): Promise<string> {
    return this.#transport.settings.url + (await getSourceUrl(this.#at)).data.path;
  }

  /** Replace the URL and return the new one; the previous one overlaps for a while. */
  async rotateUrl(overlapSeconds = DAY_S): Promise<string> {
    const { data } = await rotateSourceUrl({ ...this.#at, body: { overlap_seconds: overlapSeconds } });
    return this.#transport.settings.url + data.path;
  }

  /** Send a test event, signed as the provider does, through the source to its target. */
  async test(): Promise<ReceivedEvent> {
    return (await testSource(this.#at)).data;
  }

  /** Return the numbers of accepted, repeated, rejected and waiting events. */
  async stats(): Promise<SourceStats> {
    return (await getSourceStats(this.#at)).data;
  }

  /** Return the last rejected requests, newest first. */
  async failures(): Promise<SourceFailureOut[]> {
    return (await listSourceFailures(this.#at)).data.items;
  }
}
