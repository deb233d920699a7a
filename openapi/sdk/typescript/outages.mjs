// Drives the compiled SDK against ports that are closed, open late, or another service's. Each step prints a line of JSON,
// which tests/contract/sdk/test_typescript_outages.py looks at.

import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';

import { Millstream, MillstreamError } from './dist/index.js';
import { listQueues } from './dist/generated/index.js';

const quick = { firstPauseSeconds: 0.01, longestPauseSeconds: 0.05, firstContactSeconds: 0.3 };
const quiet = { warn: () => undefined, error: () => undefined };
const all = async (items) => {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
};
const tell = (step, fields) => console.log(JSON.stringify({ step, ...fields }));
const shape = (error) => ({
  name: error?.name,
  isMillstreamError: error instanceof MillstreamError,
  hasStack: error?.stack?.includes('outages.mjs') ?? false,
  message: error?.message,
});

/** A server's port, which closes with it. */
const listening = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server.address().port)));
const closed = (server) => new Promise((resolve) => server.close(resolve));

async function closedPort() {
  const server = createTcpServer();
  const port = await listening(server);
  await closed(server);
  return port;
}

/** An HTTP server that gives one answer to everything. */
const answering = (status, type, body) =>
  createServer((_, response) => {
    response.writeHead(status, { ...(type ? { 'content-type': type } : {}), connection: 'close' });
    response.end(body);
  });

/** An HTTP server that gives one answer after another, and the requests that it got. */
async function scripted(...answers) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    if (answer === 'cut') return request.socket.destroy();
    if (answer === 'silence') return undefined;
    const [status, body, headers = {}] = answer;
    const type = status < 400 ? 'application/json' : 'application/problem+json';
    response.writeHead(status, { 'content-type': type, connection: 'close', ...headers });
    const text = JSON.stringify(body);
    if (headers['content-length'] === undefined) return response.end(text);
    response.write(text);
    return setTimeout(() => request.socket.destroy(), 50);
  });
  const url = `http://127.0.0.1:${await listening(server)}`;
  const end = () => {
    server.closeAllConnections();
    return closed(server);
  };
  return { url, requests, end };
}

const client = (url, more = {}) => new Millstream({ url, retries: quick, logger: quiet, ...more });
const problem = (status, code, more) => [status, { status, code, detail: code, request_id: 'r1', ...more }];

// ── A closed port ──

{
  const url = `http://127.0.0.1:${await closedPort()}`;
  const lines = [];
  const logger = { ...quiet, warn: (line) => lines.push(line) };
  const millstream = new Millstream({ url, retries: quick, logger });
  const error = await all(millstream.queues()).catch((reason) => reason);
  const work = await millstream
    .queue('orders')
    .work(() => undefined)
    .catch((reason) => reason);
  const subscription = await millstream
    .queue('orders')
    .subscribe()
    .open()
    .catch((reason) => reason);
  tell('closed', { url, ...shape(error), work: shape(work), subscription: shape(subscription), lines });
}

// ── The limit of a client without options ──

{
  const started = Date.now();
  const millstream = new Millstream({ url: `http://127.0.0.1:${await closedPort()}`, logger: quiet });
  const error = await all(millstream.queues()).catch((reason) => reason);
  tell('default', { ...shape(error), seconds: (Date.now() - started) / 1000 });
}

// ── A port that opens late ──

{
  const port = await closedPort();
  const server = answering(200, 'application/json', '{"items":[],"next_cursor":null}');
  setTimeout(() => server.listen(port, '127.0.0.1'), 400);
  const lines = [];
  const retries = { firstPauseSeconds: 0.05, longestPauseSeconds: 0.1 };
  const logger = { ...quiet, warn: (line) => lines.push(line) };
  const items = await all(new Millstream({ url: `http://127.0.0.1:${port}`, retries, logger }).queues());
  await closed(server);
  tell('late', { items, lines: lines.length });
}

// ── Another service ──

const FOREIGN = [
  [200, 'text/html', '<html>It works!</html>'],
  [200, '', ''],
  [200, 'text/plain', 'pong'],
  [404, 'text/html; charset=utf-8', '<html>Not Found</html>'],
  [403, 'text/html', '<html>Forbidden</html>'],
  [404, 'application/json', '{"detail":"Not Found"}'],
  [500, 'text/plain', ''],
  [200, 'application/json', '[]'],
  [200, 'application/json', '7'],
  [200, 'application/json', '<html>'],
];
const answers = [];
for (const answer of FOREIGN) {
  const server = answering(...answer);
  const millstream = client(`http://127.0.0.1:${await listening(server)}`, { retries: { seconds: 0 } });
  const thrown = await all(millstream.queues()).catch((error) => error);
  const call = listQueues({ client: millstream.client, throwOnError: false });
  const { error } = await call.catch((reason) => ({ error: reason }));
  if (error === undefined) throw new Error(`no error for ${answer}`);
  await closed(server);
  answers.push({ name: thrown.name, message: thrown.message.replace(/127\.0\.0\.1:\d+/, 'here') });
}
tell('foreign', { answers });

// ── Responses that get lost, or come too late ──

const outcomes = {};
const attempt = async (name, answers, call, more) => {
  const server = await scripted(...answers);
  const result = await call(client(server.url, more)).catch((error) => error);
  await server.end();
  const keys = new Set(server.requests.map(({ headers }) => headers['idempotency-key']));
  const kind = result instanceof Error ? result.name : 'done';
  outcomes[name] = [kind, server.requests.length, keys.size, result?.outcomeUnknown ?? false];
  return result;
};
const SENT = [201, { messages: [{ id: 'm1', offset: 0, duplicate: false }] }];
const send = (millstream) => millstream.queue('orders').send('hello');
const purge = (millstream) => millstream.queue('orders').purge();
const remove = (millstream) => millstream.queue('orders').delete();
const busy = problem(503, 'storage_unavailable', { retryable: true });
await attempt('send is repeated with its key', ['cut', busy, SENT], send);
await attempt('half a body is no response', [[201, {}, { 'content-length': '999' }], SENT], send);
await attempt('silence ends', ['silence', SENT], send, { timeoutSeconds: 0.2 });
await attempt('move is not repeated', ['cut'], (millstream) => millstream.queue('orders').move());
await attempt('delete that happened', ['cut', problem(404, 'queue_not_found')], remove);
await attempt('rejection after a loss', ['cut', problem(409, 'queue_full')], send);
await attempt('rejection', [problem(404, 'queue_not_found')], purge);
await attempt('no time left', [busy], purge, { retries: { seconds: 0 } });
const invalid = await attempt('no retries of what is wrong', [problem(422, 'validation_failed')], send);
tell('lost', { outcomes, requestId: invalid.requestId });

// ── A certificate of a CA that Node does not know ──

{
  const failing = (code) => async () => {
    throw Object.assign(new TypeError('fetch failed'), { cause: { code } });
  };
  const messages = [];
  for (const code of ['SELF_SIGNED_CERT_IN_CHAIN', 'CERT_HAS_EXPIRED']) {
    const error = await client('https://mill.example', { fetch: failing(code) })
      .ready()
      .catch((reason) => reason);
    messages.push(`${error.name}: ${error.message}`);
  }
  tell('certificate', { messages });
}

// ── A call that is aborted ──

{
  const server = await scripted('silence');
  const millstream = client(server.url);
  const signal = AbortSignal.timeout(100);
  const error = await millstream
    .queue('orders')
    .send('hello', { signal })
    .catch((reason) => reason);
  await server.end();
  tell('aborted', { name: error.name, requests: server.requests.length });
}

// ── A batch of which one record is rejected for now ──

{
  const busyRecord = { error: { code: 'backlog_full', detail: 'busy', retryable: true } };
  const first = [200, { records: [{ shard: 0, offset: 0 }, busyRecord], failed: 1 }];
  const second = [
    200,
    {
      records: [
        { shard: 0, offset: 0, duplicate: true },
        { shard: 0, offset: 1 },
      ],
      failed: 0,
    },
  ];
  const server = await scripted(first, second);
  const appended = await client(server.url).stream('clicks').appendMany(['a', 'b']);
  await server.end();
  const keys = new Set(server.requests.map(({ headers }) => headers['idempotency-key']));
  tell('batch', { offsets: appended.map(({ offset }) => offset), requests: server.requests.length, keys: keys.size });
}

// ── Hooks and options of single calls ──

{
  const busy = [429, { code: 'rate_limited', detail: 'Too many.', retryable: true }];
  const server = await scripted('cut', [200, { purged: 0 }, { 'x-request-id': 'r2' }], busy, 'silence');
  const events = [];
  const own = new Millstream({
    url: server.url,
    retries: quick,
    logger: quiet,
    onRequest: ({ headers }) => headers.set('x-tenant', 'acme'),
    onResponse: (event) => {
      events.push(event);
      throw new Error('no metrics');
    },
  });
  await own.queue('orders').deathReasons();
  const rows = events.map(({ request, status, requestId, error, durationSeconds }) => [
    request.method,
    request.path,
    request.attempt,
    status ?? (error instanceof Error && durationSeconds >= 0),
    requestId,
  ]);
  const named = async (run) => run().then(() => '', ({ name }) => name);
  const limited = await named(() => own.queue('orders').withOptions({ retries: { seconds: 0 } }).deathReasons());
  const once = own.withOptions({ timeoutSeconds: 0.2, retries: { seconds: 0 } });
  const silent = await named(() => once.stream('clicks').shards());
  await server.end();
  const tenants = server.requests.map(({ headers }) => headers['x-tenant']);
  tell('hooks', { rows, tenants, limited, silent });
}

// ── Lost responses of calls whose repeat sees more ──

{
  const exists = problem(412, 'precondition_failed', { current: { shards: 2 }, changes: [] });
  const created = await scripted('cut', exists);
  const stream = await client(created.url).stream('clicks').create({ shards: 2 });
  await created.end();

  const page = (records, cursor) => [200, { records, next_cursor: cursor, behind_seconds: 0, tier: 'hot', gaps: [] }];
  const record = { shard: 0, offset: 1, data: 'x', arrival_time: '2026-01-01T00:00:00.000Z' };
  const followed = await scripted('cut', page([], 'c1'), page([record], 'c2'));
  for await (const { text } of client(followed.url).stream('clicks').follow()) {
    tell('repeats', { stream, text, urls: followed.requests.map(({ url }) => url.split('?')[1]) });
    break;
  }
  await followed.end();
}

// ── Settings ──

{
  const server = await scripted([200, { items: [] }]);
  process.env.MILLSTREAM_URL = `${server.url}/`;
  process.env.MILLSTREAM_API_KEY = 'of-the-environment';
  await all(new Millstream({ namespace: 'acme' }).queues());
  await all(new Millstream({ apiKey: async () => 'of-a-function' }).queues());
  globalThis.location = { origin: server.url };
  await all(new Millstream().queues());
  delete globalThis.location;
  delete process.env.MILLSTREAM_URL;
  delete process.env.MILLSTREAM_API_KEY;
  await server.end();
  const rows = server.requests.map(({ headers }) => [
    headers.authorization ?? '',
    headers['millstream-namespace'] ?? '',
    headers['user-agent'].split('/')[0],
  ]);
  const invalid = (() => {
    try {
      return new Millstream({ url: 'localhost:8080' }).url;
    } catch (error) {
      return error.message;
    }
  })();
  tell('settings', { rows, url: new Millstream().url, invalid });
}

// ── A page without a secure context ──

{
  Object.defineProperty(globalThis, 'crypto', { value: { getRandomValues: (bytes) => bytes.fill(7) } });
  const server = await scripted(SENT);
  await send(client(server.url));
  await server.end();
  tell('insecure', { keys: server.requests.map(({ headers }) => headers['idempotency-key']) });
}
