// Drives the compiled SDK against the service at argv[2], with names that begin with argv[3]. Each step prints a line of
// JSON, which tests/contract/sdk/test_typescript.py looks at.

import {
  MillstreamError,
  Reject,
  Retry,
  Worker,
  appendRecords,
  changeQueue,
  connect,
  deleteSource,
  getQueueStats,
  getSourceStats,
  getSourceUrl,
  listDeadLetters,
  listSourceFailures,
  putConsumerGroup,
  putQueue,
  putSource,
  putStream,
  receiveMessages,
  reshardStream,
  sendMessages,
  subscribeToGroup,
  subscribeToQueue,
  subscribeToStream,
  testSource,
} from './dist/index.js';

const [url, name, losingUrl] = process.argv.slice(2);
const millstream = connect({ url });
const { client } = millstream;
const queue = `${name}-queue`;
const stream = `${name}-stream`;

const tell = (step, told) => console.log(JSON.stringify({ step, ...told }));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const stats = async (of = queue) => (await getQueueStats({ client, path: { queue: of } })).data;
const send = (of, ...messages) =>
  sendMessages({ client, path: { queue: of }, body: { messages: messages.map((body) => ({ body })) } });
const put = (of, ...records) => appendRecords({ client, path: { stream: of }, body: { records } });

async function until(fact) {
  for (let tries = 0; tries < 1000; tries++) {
    if (await fact()) return;
    await sleep(10);
  }
  throw new Error(`never: ${fact}`);
}

async function some(subscription, number) {
  const items = [];
  while (items.length < number) items.push(await subscription.next());
  return items;
}

// ── Calls ──

await putQueue({ client, path: { queue }, body: { attempts_max: 2, backoff: { delays_seconds: [0] } } });
const sent = await send(queue, { order: 7 }, 'hello');
const received = await receiveMessages({ client, path: { queue }, body: { messages_max: 2 } });
tell('calls', { sent: sent.data.messages.length, bodies: received.data.messages.map((one) => one.body) });

const nothing = { client, path: { queue: `${name}-nothing` } };
const missing = await getQueueStats({ ...nothing, throwOnError: false });
const thrown = await getQueueStats(nothing).catch((error) => error);
tell('refused', { code: missing.error.code, status: missing.response.status, thrown: String(thrown) });

// ── Messages ──

const work = `${name}-work`;
await putQueue({ client, path: { queue: work } });
const subscription = await subscribeToQueue(millstream, work).open();
await send(work, 'ack', 'release', 'reject', { is: 'json' });
const byText = Object.fromEntries((await some(subscription, 4)).map((one) => [one.text, one]));
await byText.ack.ack();
await byText.reject.reject('never');
await byText['{"is":"json"}'].extend(100);
await byText.release.release();
const [again] = await some(subscription, 1);
const ended = await again.release().then(() => again.nack()).catch((error) => error);
await subscription.close();
await until(async () => (await stats(work)).in_flight === 0);
tell('verdicts', {
  json: byText['{"is":"json"}'].json(),
  again: [again.text, again.receives],
  refused: ended instanceof MillstreamError && ended.code,
  dead: (await listDeadLetters({ client, path: { queue: work } })).data.items.map((one) => one.reason),
  left: (await stats(work)).ready,
});

const nowhere = await subscribeToQueue(millstream, `${name}-nothing`).open().catch((error) => error);
tell('nowhere', { code: nowhere.code, kind: nowhere.name });

// ── Sources ──

const [source, inbox] = [`${name}-source`, `${name}-inbox`];
await putQueue({ client, path: { queue: inbox } });
const webhook = { provider: 'github', secrets: ['a secret of yours'] };
const stored = await putSource({ client, path: { source }, body: { webhook, into: { queue: inbox } } });
const event = await testSource({ client, path: { source } });
const forged = await fetch(url + stored.data.path, { method: 'POST', body: '{}' });
const tested = await receiveMessages({ client, path: { queue: inbox }, body: { wait_seconds: 5 } });
tell('source', {
  path: (await getSourceUrl({ client, path: { source } })).data.path === stored.data.path,
  event: tested.data.messages[0].body.id === event.data.id,
  forged: forged.status,
  accepted: (await getSourceStats({ client, path: { source } })).data.accepted,
  reasons: (await listSourceFailures({ client, path: { source } })).data.items.map((one) => one.reason),
});
await deleteSource({ client, path: { source } });

// ── Records ──

await putStream({ client, path: { stream }, body: { shards: 2 } });
await put(stream, { data: 'a', key: 'x' }, { data: { page: '/' }, key: 'x' }, { data_base64: '/w==', key: 'x' });
const earliest = await subscribeToStream(millstream, stream, { start: 'earliest' }).open();
const latest = await subscribeToStream(millstream, stream).open();
const fromThen = await subscribeToStream(millstream, stream, { start: new Date(Date.now() - 60_000) }).open();
const filtered = await subscribeToStream(millstream, stream, { start: 'earliest', filter: { keys: ['y'] } }).open();
const first = await some(earliest, 3);
await reshardStream({ client, path: { stream }, body: { shards: 4 } });
await put(stream, { data: 'after', key: 'x' }, { data: 'other', key: 'y' });
const then = await some(earliest, 2);
tell('records', {
  texts: [...first.slice(0, 2), ...then].map((one) => one.text).sort(),
  bytes: [...first[2].bytes],
  json: first[1].json(),
  latest: (await some(latest, 2)).map((one) => one.text).sort(),
  time: (await some(fromThen, 5)).length,
  filtered: (await some(filtered, 1)).map((one) => one.key),
});
await Promise.all([earliest, latest, fromThen, filtered].map((one) => one.close()));

// ── Groups ──

const [group, shared] = [`${name}-group`, `${name}-shared`];
await putStream({ client, path: { stream: shared } });
await put(shared, ...['0', '1', '2', '3', '4'].map((data) => ({ data, key: 'x' })));
await putConsumerGroup({ client, path: { group }, body: { stream: shared } });
const member = await subscribeToGroup(millstream, group).open();
const records = await some(member, 5);
await member.commit(records[2]);
await member.close();
const next = await subscribeToGroup(millstream, group).open();
const rest = await some(next, 2);
await next.close();
tell('group', { all: records.map((one) => one.text), rest: rest.map((one) => one.text) });

// ── Worker ──

const jobs = `${name}-jobs`;
await putQueue({ client, path: { queue: jobs }, body: { attempts_max: 2, backoff: { delays_seconds: [0] } } });
const seen = [];
let inside = 0;
let most = 0;
const worker = new Worker(
  millstream,
  jobs,
  async (message) => {
    seen.push(message.text);
    most = Math.max(most, ++inside);
    await sleep(20);
    inside--;
    if (message.text === 'reject') throw new Reject('no such customer');
    if (message.text === 'retry' && message.receives === 1) throw new Retry(0);
    if (message.text === 'broken') throw new Error('no page');
  },
  { concurrency: 3, onError: () => undefined },
);
const running = worker.run();
await send(jobs, 'reject', 'retry', 'broken', ...Array.from({ length: 20 }, (_, number) => `${number}`));
await until(async () => {
  const now = await stats(jobs);
  return now.acknowledged === 21 && now.dead_lettered === 2;
});
worker.stop();
await running;
tell('worker', { seen: seen.length, most, left: (await stats(jobs)).in_flight });

// ── A network that breaks ──

const lossy = connect({ url: losingUrl, retries: { firstPauseSeconds: 0.01 } });
const broken = `${name}-broken`;
await putStream({ client, path: { stream: broken } });
const through = await subscribeToStream(lossy, broken, { start: 'earliest', messages: 10 }).open();
const heard = (async () => (await some(through, 200)).map((one) => one.text))();
for (let number = 0; number < 200; number++) {
  await appendRecords({ client: lossy.client, path: { stream: broken }, body: { records: [{ data: `${number}`, key: 'one' }] } });
}
const texts = await heard;
await through.close();
tell('broken', { inOrder: texts.every((text, number) => text === `${number}`), number: texts.length });

await changeQueue({ client, path: { queue }, body: { paused: true } });
tell('done', {});
