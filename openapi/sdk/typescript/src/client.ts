/** Client of a service, for the generated functions and for subscriptions. */

import { type Client, createClient } from './generated/client/index.js';
import { type RetryOptions, retrying } from './retries.js';

/** A WebSocket with the browser API. Node has one from version 22; `ws` and `undici` provide others. */
export type WebSocketLike = Pick<
  WebSocket,
  'send' | 'close' | 'readyState' | 'addEventListener' | 'protocol'
>;
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

/** A key or a token, or a function that returns the current one, called before each request and connection. */
export type ApiKey = string | (() => string | Promise<string>);

export interface Options {
  /** URL of the service; default in a browser: the origin of the page. */
  url?: string;
  apiKey?: ApiKey;
  retries?: RetryOptions;
  fetch?: typeof fetch;
  WebSocket?: WebSocketClass;
}

export interface Millstream {
  readonly url: string;
  /** The current key or token; empty if there is none. */
  readonly apiKey: () => Promise<string>;
  /** For the generated functions: `sendMessages({ client: millstream.client, path: { queue }, body })`. */
  readonly client: Client;
  readonly WebSocket: WebSocketClass;
}

const URL_DEFAULT = 'http://127.0.0.1:8080';

/** Create a client of the service at `url`, without sending anything. */
export function connect(options: Options = {}): Millstream {
  const url = (options.url ?? pageOrigin() ?? URL_DEFAULT).replace(/\/+$/, '');
  const given = options.apiKey ?? '';
  const apiKey = async () => (typeof given === 'function' ? await given() : given);
  const client = createClient({
    baseUrl: url,
    auth: async () => (await apiKey()) || undefined,
    fetch: retrying(options.fetch, options.retries),
  });
  return { url, apiKey, client, WebSocket: options.WebSocket ?? platformWebSocket() };
}

function pageOrigin(): string | undefined {
  const origin = (globalThis as { location?: { origin?: string } }).location?.origin;
  return origin?.startsWith('http') ? origin : undefined;
}

function platformWebSocket(): WebSocketClass {
  return (
    (globalThis as { WebSocket?: WebSocketClass }).WebSocket ??
    class {
      constructor() {
        throw new Error('This platform has no WebSocket; pass one to connect({ WebSocket }).');
      }
    } as unknown as WebSocketClass
  );
}
