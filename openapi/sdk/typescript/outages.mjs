// Drives the compiled SDK against ports that are closed, open late, or another service's. Each step prints a line of JSON,
// which tests/contract/sdk/test_typescript_outages.py looks at.

import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';

import { MillstreamError, connect, listQueues, subscribeToQueue } from './dist/index.js';

const quick = { firstPauseSeconds: 0.01, longestPauseSeconds: 0.05, firstContactSeconds: 0.3 };
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

// ── A closed port ──

{
  const url = `http://127.0.0.1:${await closedPort()}`;
  const lines = [];
  const millstream = connect({ url, retries: quick, log: (line) => lines.push(line) });
  const error = await listQueues({ client: millstream.client }).catch((reason) => reason);
  const subscription = await subscribeToQueue(millstream, 'orders').open().catch((reason) => reason);
  tell('closed', { url, ...shape(error), subscription: shape(subscription), lines });
}

// ── The limit of a client without options ──

{
  const started = Date.now();
  const millstream = connect({ url: `http://127.0.0.1:${await closedPort()}`, log: () => undefined });
  const error = await listQueues({ client: millstream.client }).catch((reason) => reason);
  tell('default', { ...shape(error), seconds: (Date.now() - started) / 1000 });
}

// ── A port that opens late ──

{
  const port = await closedPort();
  const server = answering(200, 'application/json', '{"items":[],"next_cursor":null}');
  setTimeout(() => server.listen(port, '127.0.0.1'), 400);
  const lines = [];
  const retries = { firstPauseSeconds: 0.05, longestPauseSeconds: 0.1 };
  const millstream = connect({ url: `http://127.0.0.1:${port}`, retries, log: (line) => lines.push(line) });
  const { data } = await listQueues({ client: millstream.client });
  await closed(server);
  tell('late', { items: data.items, lines: lines.length });
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
  const { client } = connect({ url: `http://127.0.0.1:${await listening(server)}`, retries: { seconds: 0 } });
  const thrown = await listQueues({ client }).catch((error) => error);
  const { error } = await listQueues({ client, throwOnError: false }).catch((reason) => ({ error: reason }));
  if (error === undefined) throw new Error(`no error for ${answer}`);
  await closed(server);
  answers.push({ name: thrown.name, message: thrown.message.replace(/127\.0\.0\.1:\d+/, 'here') });
}
tell('foreign', { answers });

// ── A page without a secure context ──

{
  Object.defineProperty(globalThis, 'crypto', { value: { getRandomValues: (bytes) => bytes.fill(7) } });
  const { sendMessages } = await import('./dist/index.js');
  const keys = [];
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key']);
    response.writeHead(201, { 'content-type': 'application/json', connection: 'close' });
    response.end('{"messages":[]}');
  });
  const { client } = connect({ url: `http://127.0.0.1:${await listening(server)}` });
  await sendMessages({ client, path: { queue: 'orders' }, body: { body: 'hello' } });
  await closed(server);
  tell('insecure', { keys });
}
