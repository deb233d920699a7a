/** Client of a service, for the generated functions and for subscriptions. */

import { type Client, createClient } from './generated/client/index.js';
import { NotMillstream, errorOf, pageOrigin } from './errors.js';
import { type Log, Reachability } from './reachability.js';
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
  /** Receives warnings; default: `console.warn`. */
  log?: Log;
}

export interface Millstream {
  readonly url: string;
  /** The current key or token; empty if there is none. */
  readonly apiKey: () => Promise<string>;
  /** For the generated functions: `sendMessages({ client: millstream.client, path: { queue }, body })`. */
  readonly client: Client;
  readonly WebSocket: WebSocketClass;
  readonly retries: RetryOptions;
  readonly service: Reachability;
}

const URL_DEFAULT = 'http://127.0.0.1:8080';
const VERBS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** Create a client of the service at `url`, without sending anything. */
export function connect(options: Options = {}): Millstream {
  const url = (options.url ?? pageOrigin() ?? URL_DEFAULT).replace(/\/+$/, '');
  const given = options.apiKey ?? '';
  const apiKey = async () => (typeof given === 'function' ? await given() : given);
  const service = new Reachability(options.log);
  const retries = options.retries ?? {};
  const client = createClient({
    baseUrl: url,
    throwOnError: true,
    auth: async () => (await apiKey()) || undefined,
    fetch: retrying(options.fetch, retries, service),
  });
  client.interceptors.error.use(thrown);
  for (const verb of VERBS) client[verb] = recognising(url, client[verb]);
  return { url, apiKey, client, WebSocket: options.WebSocket ?? platformWebSocket(), retries, service };
}

/** A call that reports JSON which no operation returns: all of Millstream's responses are objects. */
function recognising<Call extends Client[(typeof VERBS)[number]]>(url: string, call: Call): Call {
  const checked = async (options: Parameters<Call>[0]): Promise<unknown> => {
    if (options.responseStyle === 'data' || options.parseAs !== undefined) return call(options);
    try {
      const result = (await call(options)) as { data?: unknown };
      const { data } = result;
      if (data === undefined || (typeof data === 'object' && data !== null && !Array.isArray(data))) return result;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    throw new NotMillstream(url, 200, 'application/json');
  };
  return checked as Call;
}

/** Convert a problem to the error to throw; with `throwOnError: false` the caller gets the problem. */
function thrown(answer: unknown, response: Response | undefined, _: Request, options: { throwOnError?: boolean }): unknown {
  return options.throwOnError === true ? errorOf(answer, response?.status) : answer;
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
