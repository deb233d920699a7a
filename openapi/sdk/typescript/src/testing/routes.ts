/** Operations of the in-memory service, by method and path. */

import type { Catalog, Defined, Fields } from './definitions.js';
import { MemoryProblem, unsupported } from './problems.js';
import type { MemoryService } from './service.js';

/** A request. `words` are the segments of its path below /v1. */
export interface MemoryRequest {
  method: string;
  words: string[];
  query: URLSearchParams;
  headers: Headers;
  text: string;
}

/** Body and status of a response. `waitSeconds`: how long the caller waits for one that is not empty. */
export interface MemoryResult {
  body?: Fields;
  status: number;
  waitSeconds?: number;
}

type Handler = (service: MemoryService, request: MemoryRequest, ...names: string[]) => Fields | MemoryResult | undefined;

/** Answers to calls with an idempotency key. */
export type Answers = Map<string, { text: string; result: MemoryResult }>;

const isResult = (value: Fields | MemoryResult): value is MemoryResult => typeof value.status === 'number';

/** Return the result of a request. Throws MemoryProblem. */
export function routed(service: MemoryService, request: MemoryRequest): MemoryResult {
  for (const [pattern, handler] of ROUTES) {
    const [method, path = ''] = pattern.split(' ');
    const names = method === request.method ? namesIn(path.split('/'), request.words) : undefined;
    if (names === undefined) continue;
    const result = handler(service, request, ...names);
    if (result === undefined) return { status: 204 };
    return isResult(result) ? result : { status: 200, body: result };
  }
  throw unsupported(`${request.method} /${request.words.join('/')}`);
}

function namesIn(pattern: string[], words: string[]): string[] | undefined {
  const fits = pattern.length === words.length && pattern.every((part, place) => part === '*' || part === words[place]);
  return fits ? words.filter((_, place) => pattern[place] === '*') : undefined;
}

function bodyOf({ text }: MemoryRequest): Fields {
  return text === '' ? {} : (JSON.parse(text) as Fields);
}

/** Answer a call with an idempotency key once; a repeat gets the same answer. */
function once(service: MemoryService, request: MemoryRequest, answer: () => MemoryResult): MemoryResult {
  const key = request.headers.get('idempotency-key');
  if (key === null) return answer();
  const place = `${request.words.join('/')} ${key}`;
  const earlier = service.answers.get(place);
  if (earlier === undefined) {
    const result = answer();
    if (!result.body?.failed) service.answers.set(place, { text: request.text, result });
    return result;
  }
  if (earlier.text !== request.text)
    throw new MemoryProblem('idempotency_key_reused', 'The idempotency key was already used with different content.');
  const items = (value: unknown) =>
    Array.isArray(value) ? value.map((item: Fields) => ({ ...item, duplicate: true, ...('routes' in item ? { routes: null } : {}) })) : value;
  const body = Object.fromEntries(Object.entries(earlier.result.body ?? {}).map(([name, value]) => [name, items(value)]));
  return { ...earlier.result, body };
}

/** Return the conditions of a PUT. */
function putOptions({ headers, query }: MemoryRequest) {
  return { onlyNew: headers.get('if-none-match') === '*', dryRun: query.get('dry_run') === 'true' };
}

/** Refuse a list with conditions: ignoring them would return what was not asked for. */
function refuseFilters(query: URLSearchParams, ...known: string[]): void {
  const conditions = [...query.keys()].filter((name) => !['limit', 'cursor', ...known].includes(name));
  if (conditions.length > 0) throw unsupported(`list of messages by ${conditions.join(', ')}`);
}

/** Return a page; if it is empty, the caller waits for another. */
function waiting({ query }: MemoryRequest, body: Fields): MemoryResult {
  const isEmpty = [body.records, body.gaps].every((list) => !Array.isArray(list) || list.length === 0) && !body.gap;
  return { status: 200, body, waitSeconds: isEmpty ? Number(query.get('wait_seconds') ?? 0) : 0 };
}

/** Return the replies to a request; while they are not complete, the caller waits. */
function repliesOf(service: MemoryService, token: string, waitSeconds: number): MemoryResult {
  const body = service.requests.replies(token);
  return body.complete ? { status: 200, body } : { status: 202, body, waitSeconds };
}

function catalogOf(service: MemoryService, nouns: string): Catalog<never, Defined<never>> {
  const catalogs: Record<string, unknown> = {
    queues: service.queues,
    streams: service.streams,
    groups: service.groups,
    topics: service.topics,
  };
  if (!(nouns in catalogs)) throw unsupported(nouns);
  return catalogs[nouns] as Catalog<never, Defined<never>>;
}

const ROUTES: [string, Handler][] = [
  ['GET readyz', () => ({ status: 200, body: { status: 'ok', checks: {} } })],
  ['GET *', (service, { query }, nouns = '') => catalogOf(service, nouns).page(query.get('prefix') ?? '')],
  [
    'PUT */*',
    (service, request, nouns = '', name = '') => {
      const fields = bodyOf(request);
      if (nouns === 'groups') service.stream(fields.stream as string);
      const [status, body] = catalogOf(service, nouns).put(name, fields, putOptions(request));
      return { status, body };
    },
  ],
  ['GET groups/*', (service, _, name = '') => service.group(name).details()],
  ['GET */*', (service, _, nouns = '', name = '') => catalogOf(service, nouns).get(name).shown()],
  ['PATCH */*', (service, request, nouns = '', name = '') => catalogOf(service, nouns).patch(name, bodyOf(request))],
  [
    'DELETE */*',
    (service, _, nouns = '', name = '') => {
      catalogOf(service, nouns).delete(name);
      return undefined;
    },
  ],
  ['PUT */*/pause', (service, _, nouns = '', name = '') => catalogOf(service, nouns).pause(name, true)],
  ['DELETE */*/pause', (service, _, nouns = '', name = '') => catalogOf(service, nouns).pause(name, false)],

  // ── Queues ──
  [
    'POST queues/*/messages',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const send = () => queue.send(bodyOf(request).messages as Fields[]);
      return once(service, request, () => ({ status: 201, body: { messages: send() } }));
    },
  ],
  [
    'POST queues/*/receive',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const { messages_max = 1, visibility_timeout_seconds: timeout, wait_seconds, attempt_id } = bodyOf(request);
      const attempt = attempt_id as string | undefined;
      const messages = queue.receive(messages_max as number, timeout as number | undefined, attempt);
      const wait = (wait_seconds as number | null | undefined) ?? queue.config.receive_wait_seconds;
      return { status: 200, body: { messages }, waitSeconds: messages.length > 0 ? 0 : wait };
    },
  ],
  [
    'POST queues/*/settle',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const settlements = bodyOf(request).settlements as Fields[];
      return { results: settlements.map((settlement) => service.requests.settle(queue, settlement)) };
    },
  ],
  [
    'POST queues/*/requests',
    (service, request, name = '') => {
      const queue = service.queue(name);
      const fields = bodyOf(request);
      const send = () => ({ request: service.requests.send(queue, fields) });
      const { body } = once(service, request, () => ({ status: 202, body: send() }));
      const wait = request.headers.has('idempotency-key') ? Number(fields.wait_seconds ?? 20) : 0;
      return repliesOf(service, body?.request as string, wait);
    },
  ],
  [
    'GET requests/*/reply',
    (service, { query }, token = '') => repliesOf(service, token, Number(query.get('wait_seconds') ?? 0)),
  ],
  [
    'POST requests/*/replies',
    (service, request, token = '') => {
      service.requests.reply(token, bodyOf(request), request.headers.get('idempotency-key') ?? '');
      return { status: 201, body: { request: token } };
    },
  ],
  ['GET queues/*/stats', (service, _, name = '') => service.queue(name).stats()],
  [
    'GET queues/*/messages',
    (service, { query }, name = '') => {
      refuseFilters(query, 'state');
      const state = query.get('state');
      const messages = service.queue(name).messages.filter((message) => state === null || message.state === state);
      return { items: messages.map((message) => message.browsed()), next_cursor: null };
    },
  ],
  [
    'GET queues/*/messages/*',
    (service, _, name = '', identity = '') => {
      const message = service.queue(name).find(identity);
      return message.state === 'dead_lettered' ? message.died() : message.browsed();
    },
  ],
  [
    'DELETE queues/*/messages/*',
    (service, _, name = '', identity = '') => {
      service.queue(name).deleteMessage(identity);
      return undefined;
    },
  ],
  ['POST queues/*/purges', (service, _, name = '') => ({ purged: service.queue(name).purge() })],
  [
    'GET queues/*/dead-letters',
    (service, { query }, name = '') => {
      refuseFilters(query);
      return { items: service.queue(name).deadLetters.map((message) => message.died()), next_cursor: null };
    },
  ],
  ['GET queues/*/dead-letters/reasons', (service, _, name = '') => ({ items: service.queue(name).reasons() })],
  [
    'POST queues/*/redrives',
    (service, request, name = '') => ({ redriven: service.queue(name).redrive(bodyOf(request)) }),
  ],

  // ── Streams ──
  [
    'POST streams/*/records',
    (service, request, name = '') => {
      const stream = service.streams.writable(name);
      const append = () => stream.append(bodyOf(request).records as Fields[]);
      return once(service, request, () => ({ status: 200, body: { records: append(), failed: 0 } }));
    },
  ],
  ['GET streams/*/records', (service, request, name = '') => waiting(request, service.stream(name).read(request.query))],
  ['GET streams/*/shards', (service, _, name = '') => service.stream(name).listShards()],
  [
    'GET streams/*/shards/*/records',
    (service, request, name = '', shard = '') =>
      waiting(request, service.stream(name).readShard(Number(shard), request.query)),
  ],
  [
    'POST streams/*/shards/*/records',
    (service, request, name = '', shard = '') => {
      const { records, expected_offset: expected, producer, fence } = bodyOf(request);
      if (producer || fence) throw unsupported('producer or fence');
      const stream = service.streams.writable(name);
      const appended = stream.appendToShard(Number(shard), records as Fields[], expected as number | undefined);
      return { records: appended, failed: 0 };
    },
  ],

  // ── Topics ──
  [
    'POST topics/*/messages',
    (service, request, name = '') => {
      const topic = service.topic(name);
      return once(service, request, () => {
        const messages = topic.publish(bodyOf(request).messages as Fields[]);
        return { status: 200, body: { messages, failed: messages.filter((result) => 'error' in result).length } };
      });
    },
  ],
  [
    'POST topics/*/requests',
    (service, request, name = '') => {
      const topic = service.topic(name);
      const fields = bodyOf(request);
      const send = () => ({ request: service.requests.publish(topic, fields) });
      const { body } = once(service, request, () => ({ status: 202, body: send() }));
      const wait = request.headers.has('idempotency-key') ? Number(fields.wait_seconds ?? 20) : 0;
      return repliesOf(service, body?.request as string, wait);
    },
  ],
  ['GET topics/*/stats', (service, _, name = '') => service.topic(name).stats()],
  ['GET topics/*/messages/*', (service, _, name = '', id = '') => service.topic(name).message(id).shown()],
  ['GET topics/*/messages/*/routes', (service, _, name = '', id = '') => service.topic(name).messageRoutes(id)],
  ['GET topics/*/routes', (service, { query }, name = '') => service.topic(name).routes.page(query.get('prefix') ?? '')],
  [
    'PUT topics/*/routes/*',
    (service, request, name = '', route = '') => {
      const options = putOptions(request);
      const [status, body] = service.topic(name).routes.put(route, bodyOf(request), options);
      return { status, body };
    },
  ],
  ['GET topics/*/routes/*', (service, _, name = '', route = '') => service.topic(name).routes.get(route).shown()],
  [
    'PATCH topics/*/routes/*',
    (service, request, name = '', route = '') => service.topic(name).routes.patch(route, bodyOf(request)),
  ],
  [
    'DELETE topics/*/routes/*',
    (service, _, name = '', route = '') => {
      service.topic(name).routes.delete(route);
      return undefined;
    },
  ],
  ['PUT topics/*/routes/*/pause', (service, _, name = '', route = '') => service.topic(name).routes.pause(route, true)],
  ['DELETE topics/*/routes/*/pause', (service, _, name = '', route = '') => service.topic(name).routes.pause(route, false)],
  ['GET topics/*/routes/*/stats', (service, _, name = '', route = '') => service.topic(name).routes.get(route).stats()],

  // ── Groups ──
  ['GET groups/*/records', (service, request, name = '') => waiting(request, service.group(name).fetch(request.query))],
  ['POST groups/*/commit', (service, request, name = '') => service.group(name).commit(bodyOf(request))],
  [
    'DELETE groups/*/members/*',
    (service, { query }, name = '', member = '') => {
      service.group(name).leave(member, query.get('generation'));
      return undefined;
    },
  ],
  ['GET groups/*/lag', (service, _, name = '') => service.group(name).lag()],
  ['POST groups/*/reset', (service, request, name = '') => service.group(name).reset(bodyOf(request))],
  ['GET groups/*/bookmarks', (service, _, name = '') => ({ items: service.group(name).bookmarks() })],
  [
    'PUT groups/*/bookmarks/*',
    (service, request, name = '', bookmark = '') => service.group(name).putBookmark(bookmark, bodyOf(request)),
  ],
  [
    'DELETE groups/*/bookmarks/*',
    (service, _, name = '', bookmark = '') => {
      service.group(name).deleteBookmark(bookmark);
      return undefined;
    },
  ],
];
