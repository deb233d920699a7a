/** Calls of one service: the generated functions take `client`, and everything else is shared by them. */

import { MillstreamError, NotMillstream, problemOf, refusalOf } from '../errors.js';
import { type Client, createClient } from '../generated/client/index.js';
import { pageOrigin } from './origins.js';
import { Reachability } from './reachability.js';
import { retrying } from './retries.js';
import type { CallOptions, Retries, Settings, WebSocketClass } from './settings.js';
import { VERSION } from './version.js';

const VERBS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** Connection settings of a service, and the client of its calls. */
export class Transport {
  readonly settings: Settings;
  readonly service: Reachability;
  readonly client: Client;

  constructor(settings: Settings, service = new Reachability(settings.url, settings.logger)) {
    this.settings = settings;
    this.service = service;
    this.client = this.within(settings.retries);
  }

  /** Return a client with other retries. */
  within(retries: Retries): Client {
    const { url, apiKey, fetch, timeoutSeconds, hooks, logger } = this.settings;
    const client = createClient({
      baseUrl: url,
      throwOnError: true,
      auth: async () => (await apiKey()) || undefined,
      headers: this.#headers(),
      fetch: retrying({ fetch, retries, timeoutSeconds, hooks, logger, service: this.service }),
    });
    client.interceptors.error.use(thrown);
    for (const verb of VERBS) client[verb] = recognising(url, client[verb]);
    return client;
  }

  /** Return a transport of the same service with other options. */
  withOptions({ timeoutSeconds, retries, acknowledge }: CallOptions): Transport {
    const { settings } = this;
    const other = {
      timeoutSeconds: timeoutSeconds ?? settings.timeoutSeconds,
      retries: retries ?? settings.retries,
      acknowledge: acknowledge ?? settings.acknowledge,
    };
    return new Transport({ ...settings, ...other }, this.service);
  }

  /** Class of WebSockets; undefined if there is none, or if the namespace is in a header, which browsers' sockets have not. */
  get WebSocket(): WebSocketClass | undefined {
    const { WebSocket, namespace } = this.settings;
    return namespace === '' ? WebSocket : undefined;
  }

  /** Return the credential for a new WebSocket; empty if there is none. */
  socketToken(): Promise<string> {
    const { ticket, apiKey } = this.settings;
    return (ticket ?? apiKey)();
  }

  #headers(): Record<string, string> {
    const { namespace, acknowledge } = this.settings;
    return {
      ...(acknowledge === undefined ? {} : { 'Millstream-Acknowledge': acknowledge }),
      ...(namespace === '' ? {} : { 'Millstream-Namespace': namespace }),
      ...(pageOrigin() === undefined ? { 'User-Agent': `millstream-client-js/${VERSION}` } : {}),
    };
  }
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
function thrown(
  answer: unknown,
  response: Response | undefined,
  _: Request,
  options: { throwOnError?: boolean },
): unknown {
  if (options.throwOnError !== true || response === undefined || answer instanceof MillstreamError) return answer;
  return refusalOf(problemOf(response.status, answer));
}
