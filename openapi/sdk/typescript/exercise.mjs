// Drives the compiled SDK against the service at argv[2], with names that begin with argv[3]. Each step prints a line of
// JSON, which tests/contract/sdk/test_typescript.py looks at. Without a WebSocket, subscriptions use long polls.

import {
  AlreadyExists,
  ItemRefused,
  Millstream,
  MillstreamError,
  NewMessage,
  NewPublication,
  NewRecord,
  NotFound,
  Reject,
  Retry,
  Worker,
  connect,
  putNamespace,
  putQueue,
  subscribeToQueue,
} from './dist/index.js';
import { getQueueStats } from './dist/generated/index.js';

const [url, name, losingUrl] = process.argv.slice(2);
const client = new Millstream({ url });
const hasSocket = 'WebSocket' in globalThis;

const tell = (step, fields) => console.log(JSON.stringify({ step, ...fields }));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const caught = (promise) =>
  promise.then(
    () => undefined,
    (error) => error,
  );

async function until(fact) {
  for (let tries = 0; tries < 1000; tries++) {
    if (await fact()) return;
    await sleep(10);
  }
  throw new Error(`never: ${fact}`);
}

async function all(items) {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
}

async function take(subscription, number) {
  const items = [];
  while (items.length < number) items.push(await subscription.next());
  return items;
}

// ── Queues ──

const queue = client.queue(`${name}-queue`);
const config = { attempts_max: 2, backoff: { delays_seconds: [0] } };
const stored = await queue.create(config);
const again = await queue.create(config);
const differs = await caught(queue.create({ attempts_max: 3 }));
const sent = await queue.sendMany([
  { order: 7 },
  'hello',
  new Uint8Array([255, 0]),
  null,
  new NewMessage('with', { headers: { source: 'web' }, contentType: 'text/x-note' }),
]);
const once = { idempotencyKey: `${name}-once` };
const [first, second] = [await queue.send('once', once), await queue.send('once', once)];
const received = await queue.receive({ messagesMax: 10, waitSeconds: 1 });
tell('queue', {
  created: [stored.created, again.created],
  differs: [differs instanceof AlreadyExists, differs.code, differs.changes.map(({ pointer }) => pointer)],
  sent: sent.length,
  once: first.id === second.id,
  bodies: received.map((message) => ([...message.bytes].join() === '255,0' ? 'bytes' : message.text)),
  json: received[0].json(),
  note: [received[4].headers, received[4].contentType],
});

await queue.nack(received.slice(0, 1), 0, 'not now');
await queue.extend(received.slice(1, 2), 60);
await queue.ack(received.slice(1, 3));
await queue.reject(received.slice(3, 4), 'null');
await queue.release(received.slice(4));
const late = await queue.ack(received.slice(4));
const loop = [];
for await (const message of queue.messages({ messagesMax: 2, waitSeconds: 0, untilEmpty: true })) {
  loop.push(message.text);
  await message.ack();
}
tell('settled', {
  late: late.map((result) => result instanceof ItemRefused && result.code),
  loop: loop.sort(),
  dead: (await all(queue.deadLetters())).map(({ reason }) => reason),
  reasons: (await queue.deathReasons()).length,
  stats: (await queue.stats()).acknowledged,
});

await queue.sendMany(Array.from({ length: 2500 }, (_, number) => number));
for await (const message of queue.messages({ messagesMax: 10, waitSeconds: 1 })) {
  await message.ack();
  break;
}
await until(async () => (await queue.stats()).in_flight === 0);
const abort = new AbortController();
setTimeout(() => abort.abort(), 50);
const idle = client.queue(`${name}-idle`);
await idle.create();
const nothing = await all(idle.messages({ signal: abort.signal }));
tell('loop', { ready: (await queue.stats()).ready, nothing, purged: await queue.purge() });

await queue.change({ visibility_timeout_seconds: 77 });
await queue.pause();
const paused = await queue.config();
await queue.resume();
const applied = await queue.apply({}, { dryRun: true });
const listed = await all(client.queues({ prefix: queue.name, measured: true }));
await idle.delete();
tell('operations', {
  changed: [paused.visibility_timeout_seconds, paused.paused],
  applied: [applied.dry_run, applied.changes.length > 0],
  listed: listed.map((item) => [item.name === queue.name, 'measurement' in item]),
  gone: (await caught(idle.stats())).name,
  consumers: Array.isArray(await queue.consumers()),
});

const missing = await caught(client.queue(`${name}-nothing`).stats());
const problem = await getQueueStats({ client: client.client, path: { queue: `${name}-nothing` }, throwOnError: false });
tell('refused', {
  error: [missing instanceof NotFound, missing instanceof MillstreamError, missing instanceof Error],
  fields: [missing.name, missing.code, missing.status, missing.retryable, missing.requestId.length > 0],
  text: String(missing),
  hasStack: missing.stack.includes('exercise.mjs'),
  call: [problem.error.code, problem.response.status],
  invalid: (await caught(queue.create({ attempts_max: 'many' }))).errors.map(({ pointer }) => pointer),
  noJson: (await caught(queue.send(undefined))).name,
});

// ── Subscriptions of a queue ──

const work = client.queue(`${name}-work`);
await work.create();
const subscription = await work.subscribe().open();
await work.sendMany(['ack', 'release', 'reject', { is: 'json' }]);
const byText = Object.fromEntries((await take(subscription, 4)).map((message) => [message.text, message]));
await byText.ack.ack();
await byText.reject.reject('never', 'at line 7');
await byText['{"is":"json"}'].extend(100);
await byText.release.release();
const [returned] = await take(subscription, 1);
const ended = await caught(returned.release().then(() => returned.nack()));
await subscription.close();
await until(async () => (await work.stats()).in_flight === 0);
tell('verdicts', {
  json: byText['{"is":"json"}'].json(),
  again: [returned.text, returned.receiveCount],
  refused: ended instanceof ItemRefused && ended.code,
  dead: (await all(work.deadLetters())).map(({ reason, details }) => [reason, details]),
  left: (await work.stats()).ready,
  closed: await subscription.next(),
});
const nowhere = await caught(client.queue(`${name}-nothing`).subscribe().open());
const aborted = new AbortController();
setTimeout(() => aborted.abort(), 50);
const empty = client.queue(`${name}-empty`);
await empty.create();
tell('nowhere', {
  code: nowhere.code,
  kind: nowhere.name,
  aborted: await all(empty.subscribe({ signal: aborted.signal })),
});

// ── Sources ──

const source = client.source(`${name}-source`);
const inbox = client.queue(`${name}-inbox`);
await inbox.create();
const webhook = { provider: 'github', secrets: ['a secret of yours'] };
const newSource = await source.create({ webhook, into: { queue: inbox.name } });
const event = await source.test();
const forged = await fetch(url + newSource.path, { method: 'POST', body: '{}' });
const [tested] = await inbox.receive({ waitSeconds: 5 });
tell('source', {
  path: (await source.url()) === url + newSource.path,
  event: tested.json().id === event.id,
  forged: forged.status,
  accepted: (await source.stats()).accepted,
  reasons: (await source.failures()).map(({ reason }) => reason),
});
await source.delete();

// ── Topics ──

const topic = client.topic(`${name}-topic`);
await topic.create();
const route = topic.route('orders');
await route.create({ match: { subject: 'order.*' }, target: { queue: `${name}-orders` } });
const published = await topic.publish({ id: 1 }, { subject: 'order.created', key: 'c7' });
const many = await topic.publishMany([new Uint8Array([255]), 'x'], { subject: 'fax' });
const message = await topic.message(published.id);
const explained = await topic.explain({ message: { subject: 'fax' } });
const fifo = client.topic(`${name}-fifo`);
await fifo.create({ type: 'fifo' });
const repeated = await fifo.publishMany([1, 2].map((body) => new NewPublication(body, { key: 'c7', dedupId: 'd' })));
await fifo.delete();
const backtest = await topic.backtest({ match: { subject: 'fax' }, compare_with: 'orders' });
const job = await topic.startBacktest({ match: { subject: 'fax' } });
const started = await topic.backtestJob(job.id).status();
await job.cancel();
const [cancelled] = await all(job.watch());
await topic.change({ unmatched: 'refuse' });
const unroutable = await caught(topic.publish('x', { subject: 'fax' }));
tell('topic', {
  routes: [published, ...many].map((result) => result.routes),
  message: [message.body, message.subject, message.key],
  states: (await topic.messageRoutes(published.id)).routes.map(({ route, state }) => [route, state]),
  failed: explained.routes[0].failed[0].actual,
  unroutable: unroutable.code,
  paused: [(await route.pause()).paused, (await route.resume()).paused],
  policy: (await route.change({ on_failure: 'drop' })).on_failure,
  names: [(await all(topic.routes())).map((one) => one.name), (await all(client.topics({ prefix: topic.name }))).length],
  state: (await route.stats()).state,
  messages: (await topic.stats()).messages,
  duplicates: repeated.map((one) => one.duplicate),
  tested: [backtest.evaluated, backtest.gained, backtest.lost, backtest.complete],
  job: [started.state, started.messages, cancelled.state, (await caught(job.retry())).code],
});
await route.delete();
await topic.delete();

// ── Streams ──

const stream = client.stream(`${name}-stream`);
await stream.create({ shards: 2 });
const appended = await stream.append('a', { key: 'x' });
await stream.appendMany([{ page: '/' }, new Uint8Array([255])], { key: 'x' });
const { shard } = appended;
const earliest = await stream.subscribe({ start: 'earliest' }).open();
const latest = await stream.subscribe().open();
const fromThen = await stream.subscribe({ start: new Date(Date.now() - 60_000) }).open();
const filter = { keys: ['y'] };
const filtered = hasSocket ? await stream.subscribe({ start: 'earliest', filter }).open() : undefined;
const one = await stream.subscribe({ shard, offsets: { [shard]: 1 } }).open();
const start = await take(earliest, 3);
const read = await all(stream.read());
const readOne = await all(stream.read({ shard, offset: 1 }));
await stream.reshard({ shards: 4 });
await stream.appendMany([new NewRecord('after', { key: 'x' }), new NewRecord('other', { key: 'y' })]);
const then = await take(earliest, 2);
tell('records', {
  offset: appended.offset,
  texts: [...start.slice(0, 2), ...then].map(({ text }) => text).sort(),
  bytes: [...start[2].bytes],
  json: start[1].json(),
  latest: (await take(latest, 2)).map(({ text }) => text).sort(),
  time: (await take(fromThen, 5)).length,
  filtered: filtered ? (await take(filtered, 1)).map(({ key }) => key) : ['y'],
  one: (await take(one, 2)).map(({ offset }) => offset),
  read: [read.length, read.every((record) => record.shard === shard), readOne.map(({ offset }) => offset)],
  open: (await stream.shards()).filter(({ open }) => open).length,
});
await Promise.all([earliest, latest, fromThen, filtered, one].map((subscribed) => subscribed?.close()));

const following = new AbortController();
const followed = [];
for await (const record of stream.follow({ start: 'earliest', signal: following.signal })) {
  if (followed.push(record) === 5) following.abort();
}
const tail = stream.follow(await stream.located({ start: 'latest' }));
const coming = tail.next();
await stream.append({ last: true });
tell('follow', { followed: followed.length, coming: (await coming).value.json() });
await tail.return();

// ── Replays and jobs ──

const target = { queue: inbox.name };
const plan = await client.replays.plan({ stream: stream.name, target });
const replay = await client.replays.start({ id: `${name}-replay`, stream: stream.name, target });
const { value: planned } = await replay.watch().next();
await replay.cancel();
const replays = await all(client.replays.list());
tell('replay', {
  planned: plan.records.count,
  state: planned.state,
  listed: replays.some(({ id }) => id === replay.id),
  jobs: (await all(client.jobs({ kind: 'replay' }))).length > 0,
  missing: (await caught(client.job('00000000-0000-7000-8000-000000000000').status())).code,
  files: (await all(stream.archivedFiles())).length,
});

// ── Groups ──

const shared = client.stream(`${name}-shared`);
await shared.create();
await shared.appendMany(['0', '1', '2', '3', '4'], { key: 'x' });
const group = client.group(`${name}-group`);
await group.create(shared.name);
const member = await group.subscribe().open();
const records = await take(member, 5);
await member.commit(records[2]);
await member[Symbol.asyncDispose]();
const next = await group.subscribe().open();
const rest = await take(next, 2);
await next.close();
const reader = group.member();
const batches = await all(reader.batches({ waitSeconds: 1, untilEmpty: true }));
await reader.leave();
tell('group', {
  all: records.map(({ text }) => text),
  rest: rest.map(({ text }) => text),
  batches: batches.map((batch) => batch.records.map(({ text }) => text)),
  lag: (await group.lag()).records,
  members: (await group.details()).members.length,
});
await group.bookmark('now');
await group.reset({ to: 'earliest' });
const reset = (await group.lag()).records;
await group.reset({ to: 'bookmark', bookmark: 'now' });
tell('reset', { lags: [reset, (await group.lag()).records], bookmarks: (await group.bookmarks()).length });

// Two members share the shards. Both poll: an owner's socket is asked for shards only every five seconds

const wide = client.stream(`${name}-wide`);
await wide.create({ shards: 4 });
await wide.appendMany(Array.from({ length: 60 }, (_, number) => new NewRecord(`${number}`, { key: `${number}` })));
const polling = new Millstream({ url, WebSocket: null });
const pair = polling.group(`${name}-pair`);
await pair.create(wide.name);
const members = [pair.subscribe({ messages: 5 }), pair.subscribe({ messages: 5 })];
await members[0].open();
const shares = await Promise.all(members.map(shareOf));
tell('members', {
  distinct: new Set(shares.flat()).size,
  both: shares.every((share) => share.length > 0),
  lag: (await pair.lag()).records,
});

/** Commit records until the group has no more; return where they were. */
async function shareOf(subscription) {
  const share = [];
  for await (const record of subscription) {
    share.push(`${record.shard}/${record.offset}`);
    await subscription.commit(record);
    if ((await pair.lag()).records === 0) for (const each of members) await each.close();
  }
  return share;
}

// ── Workers ──

const jobs = client.queue(`${name}-jobs`);
await jobs.create({ attempts_max: 2, backoff: { delays_seconds: [0] } });
const seen = [];
const delays = [];
let inside = 0;
let most = 0;
const stop = new AbortController();
const running = jobs.work(
  async (message) => {
    seen.push(message.text);
    most = Math.max(most, ++inside);
    await sleep(20);
    inside--;
    if (message.text === 'reject') throw new Reject('no such customer', { cause: new RangeError('customer 7') });
    if (message.text === 'retry' && message.receiveCount === 1) throw new Retry(0);
    if (message.text === 'broken') throw new TypeError('no page');
  },
  {
    concurrency: 3,
    signal: stop.signal,
    onError: () => undefined,
    retry: (error) => {
      delays.push(error.name);
      return 0;
    },
  },
);
await jobs.sendMany(['reject', 'retry', 'broken', ...Array.from({ length: 20 }, (_, number) => `${number}`)]);
await until(async () => {
  const now = await jobs.stats();
  return now.acknowledged === 21 && now.dead_lettered === 2;
});
stop.abort();
await running;
const causes = (await all(jobs.deadLetters())).map(({ reason, details = '' }) => [
  reason,
  details.split('\n')[0],
  details.includes('exercise.mjs'),
]);
tell('worker', { seen: seen.length, most, delays, causes: causes.sort(), left: (await jobs.stats()).in_flight });

// A lease of two seconds for work of three; and a worker that gives up what takes too long

const slow = client.queue(`${name}-slow`);
await slow.create();
await slow.send('slow');
let slowly = 0;
const worker = slow.worker(
  async () => {
    slowly++;
    await sleep(3000);
  },
  { leaseSeconds: 2, signals: false },
);
const slowRun = worker.run();
await until(async () => (await slow.stats()).acknowledged === 1);
worker.stop();
await slowRun;
await slow.send('stuck');
const stuck = slow.worker((_, signal) => new Promise((resolve) => signal.addEventListener('abort', resolve)), {
  graceSeconds: 0.1,
  signals: false,
});
const stuckRun = stuck.run();
await until(async () => (await slow.stats()).in_flight === 1);
stuck.stop();
await stuckRun;
tell('leases', { slowly, released: (await slow.stats()).ready });

// ── A namespace ──

const namespace = `${name}-ns`;
await putNamespace({ client: client.client, path: { namespace } });
const tenant = new Millstream({ url, namespace }).queue(`${name}-inside`);
await tenant.create();
await tenant.send('inside');
const outside = await caught(client.queue(tenant.name).stats());
const [deep] = await take(tenant.subscribe({ visibilityTimeoutSeconds: 1 }), 1);
await deep.ack(); // a subscription that is not closed extends nothing that is settled, so it keeps no process alive
tell('namespace', { text: deep.text, outside: outside.code });

// ── Former names ──

const former = connect({ url, log: () => undefined });
await putQueue({ client: former.client, path: { queue: `${name}-former` } });
await former.queue(`${name}-former`).sendMany(['subscribed', 'worked']);
const subscribed = await subscribeToQueue(former, `${name}-former`, { messages: 1 }).open();
await (await subscribed.next()).ack();
await subscribed.close();
const worked = [];
const formerWorker = new Worker(former, `${name}-former`, (message) => {
  worked.push(message.text);
  formerWorker.stop();
});
await formerWorker.run();
tell('former', { worked });

// ── A network that breaks ──

const lossy = new Millstream({ url: losingUrl, retries: { firstPauseSeconds: 0.01 } });
const broken = lossy.stream(`${name}-broken`);
await broken.create();
const through = await broken.subscribe({ start: 'earliest', messages: 10 }).open();
const heard = take(through, 200);
for (let number = 0; number < 200; number++) await broken.append(`${number}`, { key: 'one' });
const texts = (await heard).map(({ text }) => text);
await through.close();
tell('broken', { inOrder: texts.every((text, number) => text === `${number}`), number: texts.length });

tell('done', {});
