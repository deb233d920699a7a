/** Routes of topics: configuration and counts. */

import {
  changeRoute,
  deleteRoute,
  getRoute,
  getRouteStats,
  pauseRoute,
  putRoute,
  resumeRoute,
} from '../generated/sdk.gen.js';
import type { RouteConfig, RouteOut, RoutePatch, RouteStats, RouteStored } from '../generated/types.gen.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';

/** A route of a topic, whether it exists or not. Throws MillstreamError. */
export class Route {
  readonly topic: string;
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, topic: string, name: string) {
    this.#transport = transport;
    this.topic = topic;
    this.name = name;
  }

  /**
   * Return the same route whose calls have another time limit or other retries: `billing.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Route {
    return new Route(this.#transport.withOptions(options), this.topic, this.name);
  }

  get #at() {
    return { client: this.#transport.client, path: { topic: this.topic, route: this.name } };
  }

  /**
   * Create the route: `{ match: { subject: 'order.*' }, target: { queue: 'billing' } }`. If it exists with these settings,
   * return it, with `created` false.
   *
   * Settings that you leave out are not compared. Throws AlreadyExists, which names the settings that differ.
   */
  create(config: RouteConfig, options: CreateOptions = {}): Promise<RouteStored> {
    return created(putRoute({ ...this.#at, body: config, headers: CREATE }), options);
  }

  /** Create the route, or replace its configuration: settings that you leave out take their defaults. */
  async apply(config: RouteConfig, { dryRun }: ApplyOptions = {}): Promise<RouteStored> {
    return (await putRoute({ ...this.#at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration. */
  async config(): Promise<RouteOut> {
    return (await getRoute(this.#at)).data;
  }

  /** Change fields of the configuration; null resets a field to its default. */
  async change(patch: RoutePatch): Promise<RouteOut> {
    return (await changeRoute({ ...this.#at, body: patch })).data;
  }

  /** Pause the route: messages that it takes wait in the topic's log. */
  async pause(): Promise<RouteOut> {
    return (await pauseRoute(this.#at)).data;
  }

  /** Resume the route. */
  async resume(): Promise<RouteOut> {
    return (await resumeRoute(this.#at)).data;
  }

  /** Delete the route; messages that it has taken and not delivered are dropped. */
  async delete(): Promise<void> {
    await deleteRoute(this.#at);
  }

  /** Return the numbers of delivered and dropped messages, and how far the route is behind. */
  async stats(): Promise<RouteStats> {
    return (await getRouteStats(this.#at)).data;
  }
}
