/** Options of a client: from arguments, then the environment, then this machine. */

import type { Hooks } from './hooks.js';
import { pageOrigin } from './origins.js';

/** A key or a token, or a function that returns the current one, called before each request and connection. */
export type Secret = string | (() => string | Promise<string>);

/** A WebSocket with the browser API. Node has one from version 22; `ws` and `undici` provide others. */
export interface WebSocketLike {
  readonly readyState: number;
  send(data: string): void;
  close(code?: number): void;
  addEventListener(type: 'open' | 'error', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void;
}
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

/** Receives warnings and errors, as `console` does. */
export interface Logger {
  warn(message: string): void;
  error(message: string, error?: unknown): void;
}

/** Time limit and speed of retries. */
export interface Retries {
  /** Time limit, from the first failure; 0: one attempt. Default: 60. */
  seconds?: number;
  firstPauseSeconds?: number;
  longestPauseSeconds?: number;
  /** Time limit of a client that has never reached the service; default: 5. */
  firstContactSeconds?: number;
}

/** Options of a single call, or of several: see `withOptions`. */
export type CallOptions = Pick<Options, 'timeoutSeconds' | 'retries' | 'acknowledge'>;

export interface Options extends Hooks {
  /** URL of the service; default: `MILLSTREAM_URL`, or this machine's port 8080; in a browser: the origin of the page. */
  url?: string;
  /** Default: `MILLSTREAM_API_KEY`; nothing in a browser. */
  apiKey?: Secret;
  /** Ticket for each WebSocket, for pages whose key must not open one; default: the API key. */
  ticket?: () => string | Promise<string>;
  /** Namespace to act in, for keys of all namespaces. Subscriptions then use long polls. */
  namespace?: string;
  retries?: Retries;
  /** Time limit of each attempt, beyond the wait that a call requests; default: 30. */
  timeoutSeconds?: number;
  /**
   * `primary`: sends and appends of a replicated deployment are acknowledged once its primary has them on disk; they are
   * answered sooner, and a fail-over may lose them.
   */
  acknowledge?: 'primary';
  fetch?: typeof fetch;
  /** Default: the platform's. Without one, or with `null`, subscriptions use long polls. */
  WebSocket?: WebSocketClass | null;
  /** Default: `console`. */
  logger?: Logger;
}

export interface Settings {
  hooks: Hooks;
  url: string;
  apiKey: () => Promise<string>;
  ticket: (() => Promise<string>) | undefined;
  namespace: string;
  retries: Retries;
  timeoutSeconds: number;
  acknowledge: 'primary' | undefined;
  fetch: typeof fetch;
  WebSocket: WebSocketClass | undefined;
  logger: Logger;
}

const URL_DEFAULT = 'http://127.0.0.1:8080';
const TIMEOUT_S = 30;

/** Complete the options of a client. Throws TypeError if the URL is not an HTTP URL. */
export function settingsOf(options: Options): Settings {
  const { apiKey = environment('MILLSTREAM_API_KEY'), ticket } = options;
  const platform = (globalThis as unknown as { WebSocket?: WebSocketClass }).WebSocket;
  return {
    hooks: { onRequest: options.onRequest, onResponse: options.onResponse },
    url: urlOf(options.url),
    apiKey: async () => (typeof apiKey === 'function' ? await apiKey() : apiKey),
    ticket: ticket && (async () => await ticket()),
    namespace: options.namespace ?? '',
    retries: options.retries ?? {},
    timeoutSeconds: options.timeoutSeconds ?? TIMEOUT_S,
    acknowledge: options.acknowledge,
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    WebSocket: options.WebSocket === undefined ? platform : (options.WebSocket ?? undefined),
    logger: options.logger ?? CONSOLE,
  };
}

function urlOf(given: string | undefined): string {
  const url = given || environment('MILLSTREAM_URL') || pageOrigin() || URL_DEFAULT;
  if (!/^https?:\/\//.test(url))
    throw new TypeError(`${url} is not the URL of a service: it must begin with http:// or https://.`);
  return url.replace(/\/+$/, '');
}

/** A variable of the environment; empty in a browser, where a bundler may have put those of the build. */
function environment(name: string): string {
  if (pageOrigin() !== undefined) return '';
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] ?? '';
}

const CONSOLE: Logger = {
  warn: (message) => {
    console.warn(`millstream: ${message}`);
  },
  error: (message, error) => {
    if (error === undefined) console.error(`millstream: ${message}`);
    else console.error(`millstream: ${message}`, error);
  },
};
