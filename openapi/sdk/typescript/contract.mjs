// Drives the compiled SDK against a service (`node contract.mjs URL PREFIX`) or against the in-memory one (`memory PREFIX`). Each
// step prints a line of JSON; tests/contract/sdk/test_typescript_memory.py expects the same lines of both.

import { setTimeout as sleep } from 'node:timers/promises';

import { Millstream, NewMessage, NewRecord, Reject } from './dist/index.js';
import { MemoryService } from './dist/testing/index.js';

const [, , url, prefix] = process.argv;
const memory = url === 'memory' ? new MemoryService() : undefined;
const logger = { warn: () => undefined, error: () => undefined };
const client = memory?.client({ logger }) ?? new Millstream({ url, WebSocket: null, logger });
const advance = async (seconds) => (memory === undefined ? sleep(seconds * 1000) : memory.advance(seconds));
const SHORT = 0.3; // seconds
const PAST = 0.5;

const tell = (step, fields) => console.log(JSON.stringify({ step, ...fields }));
const all = async (items) => {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
};
const code = async (promise) => {
  try {
    await promise;
    return 'no error';
  } catch (error) {
    return error.errors?.length ? [error.code, error.errors[0].code, error.errors[0].pointer] : (error.code ?? String(error));
  }
};
const texts = (items) => items.map(({ text }) => text);
let number = 0;
const newQueue = async (config = {}) => {
  const queue = client.queue(`${prefix}-${number++}`);
  await queue.create(config);
  return queue;
};
const newStream = async (config = { shards: 2 }) => {
  const stream = client.stream(`${prefix}-${number++}`);
  await stream.create(config);
  return stream;
};
const counts = async (queue) => {
  const stats = await queue.stats();
  const names = ['ready', 'delayed', 'in_flight', 'dead_lettered', 'acknowledged', 'deduplicated'];
  return Object.fromEntries(names.filter((name) => stats[name] > 0).map((name) => [name, stats[name]]));
};

// ── Definitions ──

{
  const queue = await newQueue({ attempts_max: 3, tags: { team: 'shop' } });
  const same = await queue.create({ attempts_max: 3 });
  const differs = await code(queue.create({ attempts_max: 4 }));
  const planned = await queue.apply({ attempts_max: 5 }, { dryRun: true });
  const changed = await queue.change({ attempts_max: null, tags: null });
  const paused = (await queue.pause()).paused;
  const kept = (await queue.apply({})).paused;
  await queue.resume();
  const names = (await all(client.queues({ prefix: queue.name }))).length;
  const invalid = [
    await code(queue.change({ attempt_max: 3 })),
    await code(queue.apply({ type: 'fifo' })),
    await code(queue.apply({ deduplicate_by_content: true })),
  ];
  await queue.delete();
  tell('definitions', {
    same: same.created,
    differs,
    planned: planned.changes.map(({ pointer, after }) => [pointer, after]),
    changed: [changed.attempts_max, changed.tags],
    paused: [paused, kept],
    names,
    invalid,
    gone: await code(queue.stats()),
  });
}

// ── Messages ──

{
  const queue = await newQueue();
  await queue.send({ order: 7 }, { headers: { source: 'web' } });
  await queue.sendMany(['text', new Uint8Array([255]), null, new NewMessage('note', { contentType: 'text/x-note' })]);
  const first = await queue.send('once', { idempotencyKey: 'k' });
  const again = await queue.send('once', { idempotencyKey: 'k' });
  const reused = await code(queue.send('other', { idempotencyKey: 'k' }));
  const messages = (await queue.receive({ messagesMax: 10 })).sort((one, other) => one.offset - other.offset);
  const shapes = messages.map((message) => [message.text.length, message.contentType, message.headers, message.receiveCount]);
  await messages[0].ack();
  await messages[1].nack(0, 'bad');
  await messages[2].reject('never');
  await messages[3].extend(60);
  await messages[4].release();
  const late = [await code(messages[0].nack()), await code(messages[1].ack()), await code(messages[2].nack())];
  const browsed = (await all(queue.browse())).map(({ offset, state, failures }) => [offset, state, failures]);
  const letters = (await all(queue.deadLetters())).map(({ offset, reason }) => [offset, reason]);
  const settled = await counts(queue);
  const redriven = (await queue.redrive({ reason: 'never' })).redriven;
  const purged = await queue.purge();
  tell('messages', {
    once: first.id === again.id && again.duplicate,
    reused,
    shapes,
    late,
    browsed,
    letters,
    settled,
    redriven,
    purged,
    unknown: await code(queue.message('nothing')),
  });
}

// ── Requests ──

{
  const queue = await newQueue({ backoff: { delays_seconds: [0] } });
  const stop = new AbortController();
  let attempts = 0;
  const answers = { value: { n: 1 }, zero: 0, nothing: undefined, once: 'second time' };
  const handler = (message) => {
    if (message.text === 'once' && ++attempts === 1) throw new Error('no connection');
    return answers[message.text];
  };
  const running = queue.work(handler, { signal: stop.signal, onError: () => undefined });
  const value = await queue.request('value', { headers: { source: 'web' } });
  const zero = await queue.request('zero');
  const once = await queue.request('once');
  const nothing = await code(queue.request('nothing', { timeoutSeconds: SHORT }));
  stop.abort();
  await running;

  const asking = queue.request('by hand', { idempotencyKey: 'k' });
  const [message] = await queue.receive({ waitSeconds: 20 });
  await message.reply('a', { headers: { n: '1' } });
  const late = await code(client.reply(message.replyTo, 'b'));
  const reply = await asking;
  const again = await queue.request('by hand', { idempotencyKey: 'k' });
  await queue.send('no request');
  const [plain] = await queue.receive();
  tell('requests', {
    value: [value.json(), value.contentType],
    zero: zero.json(),
    once: [once.text, attempts],
    nothing,
    byHand: [reply.text, reply.headers, again.text],
    late,
    plain: [plain.replyTo, await code((async () => plain.reply('a'))())],
    counts: await counts(queue),
  });
}

// ── Time and attempts ──

{
  const queue = await newQueue({ attempts_max: 2 });
  await queue.send('crashes');
  const [lost] = await queue.receive({ visibilityTimeoutSeconds: SHORT });
  const hidden = (await queue.receive()).length;
  await advance(PAST);
  const [second] = await queue.receive({ waitSeconds: 1, visibilityTimeoutSeconds: SHORT });
  const expired = await code(lost.ack());
  await advance(PAST);
  await queue.receive();
  const dead = (await all(queue.deadLetters())).map(({ reason, failures, crash_count }) => [reason, failures, crash_count]);
  await queue.send('later', { delaySeconds: SHORT });
  await queue.send('short', { ttlSeconds: SHORT });
  const before = await counts(queue);
  await advance(PAST);
  const after = texts(await queue.receive({ messagesMax: 2, waitSeconds: 1 }));
  tell('time', { hidden, count: second.receiveCount, expired, dead, before, after });
}

// ── Order ──

{
  const fifo = await newQueue({ type: 'fifo' });
  await fifo.sendMany([
    new NewMessage('a1', { group: 'a', dedupId: '1' }),
    new NewMessage('a2', { group: 'a', dedupId: '2' }),
    new NewMessage('b1', { group: 'b', dedupId: '3' }),
  ]);
  const again = await fifo.send('a1', { group: 'a', dedupId: '1' });
  const [a] = await fifo.receive();
  const [b] = await fifo.receive();
  const none = (await fifo.receive()).length;
  await a.nack(60);
  const barred = (await fifo.receive({ messagesMax: 5 })).length;
  const standard = await newQueue();
  await standard.sendMany(['low', new NewMessage('high', { priority: 5 })]);
  tell('order', {
    duplicate: again.duplicate,
    received: texts([a, b]),
    none,
    barred,
    counts: await counts(fifo),
    priority: texts(await standard.receive({ messagesMax: 2 })),
    invalid: [await code(fifo.send('x')), await code(fifo.send('x', { group: 'a', delaySeconds: 1 }))],
  });
}

// ── Dead-letter queue and worker ──

{
  const dead = await newQueue();
  const source = await newQueue({ dead_letters: { queue: dead.name, receives_max: 1 } });
  await source.send('hello');
  const [message] = await source.receive();
  await message.nack(0, 'no such customer');
  await source.receive();
  const [moved] = await dead.receive({ waitSeconds: 1 });
  await moved.ack();

  const queue = await newQueue({ attempts_max: 1 });
  await queue.sendMany(['good', 'bad', 'ugly']);
  const done = new AbortController();
  let calls = 0;
  await queue.work(
    async ({ text }) => {
      if (++calls === 3) done.abort();
      if (text === 'bad') throw new Reject('a negative total');
      if (text === 'ugly') throw new Error('no connection');
    },
    { signal: done.signal, concurrency: 1 },
  );
  tell('work', {
    why: [moved.text, moved.deadLetter?.reason, moved.deadLetter?.failures],
    counts: await counts(queue),
    reasons: (await queue.deathReasons()).map(({ reason, count }) => [reason, count]).sort(),
  });
}

// ── Streams ──

{
  const stream = await newStream();
  const put = await stream.append({ page: '/' }, { key: 'ann', headers: { source: 'web' } });
  const more = await stream.appendMany(['a', new NewRecord('b', { key: 'ann' })], { key: 'ann' });
  const once = await stream.append('c', { key: 'ann', idempotencyKey: 'k' });
  const again = await stream.append('c', { key: 'ann', idempotencyKey: 'k' });
  const records = await all(stream.read());
  const subscription = stream.subscribe({ start: 'earliest' });
  const pushed = [];
  for await (const record of subscription) {
    pushed.push(record.text);
    if (pushed.length === 4) break;
  }
  const shards = await all(await stream.shards());
  await stream.append('other', { key: 'bea' });
  tell('streams', {
    first: put.offset,
    sameShard: more.every(({ shard }) => shard === put.shard),
    offsets: more.map(({ offset }) => offset),
    once: once.offset === again.offset && again.duplicate,
    texts: texts(records),
    record: [records[0].key, records[0].headers, records[0].json()],
    pushed,
    shards: shards.map(({ index, open, first_hash_key: first }) => [index, open, first]),
    next: Math.max(...shards.map(({ next }) => next)),
  });
}

// ── Groups ──

{
  const stream = await newStream();
  for (const key of ['ann', 'bea', 'cid', 'dan']) await stream.append(key, { key });
  const group = client.group(`${prefix}-group`);
  await group.create(stream.name);
  const member = group.member('one');
  const read = await member.fetch({ waitSeconds: 1 });
  const before = (await group.lag()).records;
  await member.commit(read);
  const after = (await group.lag()).records;
  await group.reset({ to: 'earliest' });
  const stale = await code(member.commit(read));
  const again = (await member.fetch({ waitSeconds: 1 })).records.length;
  const members = (await group.details()).members.map(({ member: name, assigned }) => [name, assigned]);
  await member.leave();
  const left = (await group.details()).members.length;
  tell('groups', {
    texts: texts(read.records).sort(),
    lag: [before, after],
    stale,
    again,
    members,
    left,
    unknown: await code(client.group('nothing').lag()),
  });
}

// ── Fields of answers, by schema ──

{
  const queue = await newQueue({ backoff: { kind: 'linear' } });
  await queue.sendMany(['dead', 'flying', 'ready']);
  const [dead] = await queue.receive();
  await dead.reject('never', 'a trace');
  await queue.receive();
  const stream = await newStream();
  await stream.append('a', { key: 'ann' });
  const group = client.group(`${prefix}-fields`);
  const stored = await group.create(stream.name);
  await group.member('one').fetch({ waitSeconds: 1 });
  const details = await group.details();
  const [first] = (await all(queue.browse())).filter(({ state }) => state === 'in_flight');
  const lag = await group.lag();
  const answers = {
    QueueStored: await queue.apply({}),
    QueueOut: await queue.config(),
    QueueStatsOut: await queue.stats(),
    ListedQueue: (await all(client.queues({ prefix: queue.name })))[0],
    BrowsedMessageOut: first,
    DeadLetterOut: (await all(queue.deadLetters()))[0],
    DeathReasonOut: (await queue.deathReasons())[0],
    StreamStored: await stream.apply({ shards: 2 }),
    StreamOut: await stream.config(),
    ListedStream: (await all(client.streams({ prefix: stream.name })))[0],
    ShardOut: (await stream.shards())[0],
    GroupStored: stored,
    GroupDetail: details,
    GroupLag: lag,
    ListedGroup: (await all(client.groups({ prefix: group.name })))[0],
    BookmarkOut: await group.bookmark('start'),
    ResetOut: await group.reset({ to: 'latest', dry_run: true }),
  };
  tell('fields', Object.fromEntries(Object.entries(answers).map(([schema, answer]) => [schema, Object.keys(answer)])));
}
