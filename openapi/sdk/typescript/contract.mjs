// Drives the compiled SDK against a service (`node contract.mjs URL PREFIX`) or against the in-memory one (`memory PREFIX`). Each
// step prints a line of JSON; tests/contract/sdk/test_typescript_memory.py expects the same lines of both.

import { setTimeout as sleep } from 'node:timers/promises';

import { Millstream, NewMessage, NewPublication, NewRecord, Reject } from './dist/index.js';
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

// ── Topics ──

const newTopic = async (config = {}) => {
  const topic = client.topic(`${prefix}-${number++}`);
  await topic.create(config);
  return topic;
};
const take = async (queue, count = 1) => {
  const messages = [];
  while (messages.length < count) messages.push(...(await queue.receive({ messagesMax: count - messages.length, waitSeconds: 20 })));
  await Promise.all(messages.map((message) => message.ack()));
  return messages;
};
const until = async (fact) => {
  for (let tries = 0; tries < 1000; tries++) {
    if (await fact()) return true;
    await sleep(20);
  }
  return false;
};

{
  const topic = await newTopic();
  const [a, b] = [await newQueue(), await newQueue()];
  const route = topic.route('orders');
  const made = await route.create({ match: { subject: 'order.*' }, target: { queue: a.name } });
  const same = await route.create({ match: { subject: 'order.*' }, target: { queue: a.name } });
  const differs = await code(route.create({ match: { subject: 'x' }, target: { queue: a.name } }));
  await topic.route('rest').create({ match: 'unmatched', target: { queue: b.name } });
  const order = await topic.publish({ id: 1 }, { subject: 'order.new', key: 'c7', headers: { tenant: 't7' } });
  const [first, again] = [await topic.publish('x', { idempotencyKey: 'k' }), await topic.publish('x', { idempotencyKey: 'k' })];
  const [message] = await take(a);
  const [rest] = await take(b);
  const stored = await topic.message(order.id);
  const applied = await route.apply({ match: { subject: 'order.#' }, target: { queue: a.name } });
  const paused = (await route.pause()).paused;
  await topic.publish('waits', { subject: 'order' });
  const state = (await route.stats()).state;
  await route.resume();
  const [waited] = await take(a);
  const log = [];
  for await (const record of client.stream(`topic:${topic.name}`).read()) log.push([record.text, record.subject]);
  tell('topics', {
    created: [made.created, same.created, made.number, made.cost, made.target],
    differs,
    routes: [order.routes, again.routes, first.id === again.id],
    message: [message.json(), message.headers, message.topic === topic.name, message.subject, message.route, message.key],
    rest: [rest.text, rest.route, rest.subject],
    stored: [stored.body, stored.subject, stored.content_type],
    changes: applied.changes.map(({ pointer }) => pointer),
    paused: [paused, state, waited.text],
    log,
    readOnly: await code(client.stream(`topic:${topic.name}`).append('x')),
    names: [(await all(topic.routes())).map(({ name }) => name), (await all(client.topics({ prefix: topic.name }))).length],
    missing: [await code(topic.route('none').config()), await code(client.topic(`${prefix}-none`).publish('x'))],
  });
}

{
  const topic = await newTopic();
  const route = topic.route('waits');
  await route.create({ target: { queue: `${prefix}-none` } });
  const { id } = await topic.publish('x');
  await route.apply({ match: { subject: 'a' }, target: { queue: `${prefix}-none` } });
  const [former] = (await topic.messageRoutes(id)).routes;
  await route.delete();
  const [deleted] = (await topic.messageRoutes(id)).routes;
  tell('revisions', { former: [former.route, former.number, former.state], deleted: [deleted.number, deleted.state] });
}

{
  const order = { total: 250, vip: true, tags: ['a', 'b'], customer: { id: 'c7' }, note: null };
  const bodies = [
    { total: [250] },
    { total: ['250'] },
    { vip: [1] },
    { note: [null] },
    { total: [{ numeric: ['>', 100, '<=', 250] }] },
    { customer: { id: [{ prefix: 'c' }, { suffix: '8' }] } },
    { customer: { id: [{ 'equals-ignore-case': 'C7' }] } },
    { customer: { id: [{ 'anything-but': ['c7', 'c8'] }] } },
    { missing: { id: [{ exists: false }] } },
    { customer: [{ exists: true }] },
    { tags: ['b'], total: [{ 'anything-but': 7 }] },
  ];
  const patterns = ['order.*', 'order.#', 'order.>', '#.b', '*', '#', '', ['b', 'order']];
  const topic = await newTopic();
  const route = topic.route('all');
  const target = { queue: 'nowhere' };
  const filters = [];
  for (const body of bodies) {
    await route.apply({ match: { filter: { body } }, target });
    filters.push((await topic.publish(order)).routes);
  }
  const subjects = [];
  for (const subject of patterns) {
    await route.apply({ match: { subject }, target });
    const messages = ['', 'order', 'order.a', 'order.a.b', 'b'].map((name) => new NewPublication('x', { subject: name }));
    subjects.push((await topic.publishMany(messages)).map(({ routes }) => routes).join(''));
  }
  const invalid = [];
  for (const match of [{ subject: 'a*' }, { subject: ['a', '>.b'] }, [{ subjects: 'a' }], { filter: { body: { a: [] } } }])
    invalid.push(await code(route.apply({ match, target })));
  tell('matches', { filters, subjects, invalid: invalid.map(([name, , pointer]) => [name, pointer]) });
}

{
  const [topic, other] = [await newTopic({ unmatched: 'refuse' }), await newTopic()];
  const [letters, fifo, end] = [await newQueue(), await newQueue({ type: 'fifo' }), await newQueue()];
  await topic.route('fifo').create({ target: { queue: fifo.name }, dead_letter_queue: letters.name });
  await topic.route('next').create({ match: { subject: 'order.*' }, target: { topic: other.name } });
  await other.route('end').create({ target: { queue: end.name }, key: '/body/id' });
  const cycle = await code(other.route('back').create({ target: { topic: topic.name } }));
  await topic.publish({ id: 'i7' }, { subject: 'order.a' });
  await topic.publish('2', { key: 'c7' });
  const [letter] = await take(letters);
  const [message] = await take(fifo);
  const [copy] = await take(end);
  const late = topic.route('late');
  await late.create({ target: { queue: `${prefix}-late` } });
  const shadow = topic.route('shadow');
  await shadow.create({ target: { queue: end.name }, mode: 'shadow' });
  await topic.publish('waits', { key: 'c7' });
  const lateQueue = client.queue(`${prefix}-late`);
  await lateQueue.create();
  const [waited] = await take(lateQueue);
  const dropped = topic.route('dropped');
  await dropped.create({ target: { queue: `${prefix}-never` }, on_failure: 'drop' });
  await topic.publish('lost', { key: 'c7' });
  await topic.route('fifo').delete();
  await topic.route('late').delete();
  await topic.route('dropped').pause();
  tell('targets', {
    cycle: [cycle].flat()[0],
    letter: [letter.json(), letter.subject, letter.route, letter.deadLetter.reason],
    source: letter.deadLetter.source === `route:${topic.name}/fifo`,
    fifo: [message.text, message.group, message.key],
    copy: [copy.json(), copy.subject, copy.key, copy.topic === other.name],
    waited: waited.text,
    shadowed: await until(async () => (await shadow.stats()).shadowed === 2),
    dropped: await until(async () => (await dropped.stats()).dropped === 1),
    refused: await code((async () => (await dropped.delete(), topic.publish('x')))()),
  });
}

{
  const topic = await newTopic();
  const queues = [await newQueue(), await newQueue()];
  const route = topic.route('workers');
  const spread = [{ queue: queues[0].name, weight: 2 }, { queue: queues[1].name }];
  const made = await route.create({ target: { spread } });
  const same = await route.create({ target: { spread, by: 'key' } });
  const keys = Array.from({ length: 40 }, (_, index) => `c${index % 20}`);
  const published = await topic.publishMany(keys.map((key, index) => new NewPublication(index, { key })));
  const isDelivered = await until(async () => (await route.stats()).delivered === keys.length);
  const counts = await Promise.all(queues.map(async (queue) => (await queue.stats()).ready));
  const places = new Map();
  for (const [index, queue] of queues.entries()) {
    for (const { key } of await take(queue, counts[index])) places.set(key, new Set([...(places.get(key) ?? []), queue.name]));
  }
  const { routes } = await topic.messageRoutes(published[0].id);
  const stats = await route.stats();
  const refused = [];
  for (const members of [[spread[0]], [spread[0], spread[0]], [spread[0], { url: 'https://a.example' }], [spread[0], { queue: 'a', weight: 0 }]])
    refused.push((await code(route.apply({ target: { spread: members } }))).at(-1));
  refused.push((await code(route.apply({ target: { queue: 'a', by: 'key' } }))).at(-1));
  tell('spread', {
    made: [made.created, same.created, made.target.by, made.target.spread.map(({ weight }) => weight)],
    delivered: [isDelivered, counts[0] + counts[1], counts.every((count) => count > 0)],
    alone: places.size === 20 && [...places.values()].every(({ size }) => size === 1),
    member: places.get('c0').has(routes[0].member.queue),
    lags: stats.members.map(({ member, lag_messages: lag }) => [queues.some(({ name }) => name === member.queue), lag]),
    refused,
    cycle: [await code(route.apply({ target: { spread: [spread[0], { topic: topic.name }] } }))].flat()[0],
  });
}

{
  const topic = await newTopic({ type: 'fifo', dedup_scope: 'key', shards: 2 });
  const once = await topic.publishMany([1, 2, 1].map((body) => new NewPublication(body, { key: 'c7', dedupId: `d${body}` })));
  const offers = await newTopic();
  const dealers = [await newQueue(), await newQueue()];
  for (const { name } of dealers) await offers.route(name).create({ target: { queue: name } });
  const asking = offers.request('price?', { subject: 'offer', repliesMax: 2 });
  for (const dealer of dealers) {
    let received = [];
    while (received.length === 0) received = await dealer.receive({ waitSeconds: 20 });
    await received[0].reply('yes');
  }
  tell('fifo', {
    duplicates: once.map(({ duplicate }) => duplicate),
    invalid: [await code(topic.publish('x')), await code(newTopic({ type: 'fifo', shards: 2 }))],
    replies: texts(await asking),
  });
}

{
  const [stream, target, rest] = [await newStream({ shards: 1 }), await newQueue(), await newQueue()];
  const topic = client.topic(`stream:${stream.name}`);
  await stream.append({ even: true, n: 0 }, { key: 'k' });
  const route = topic.route('even');
  const made = await route.create({ match: { filter: { body: { even: [true] } } }, target: { queue: target.name } });
  await topic.route('rest').create({ match: 'unmatched', target: { queue: rest.name } });
  for (const n of [1, 2]) await stream.append({ even: n % 2 === 0, n }, { key: 'k' });
  const [message] = await take(target);
  const [other] = await take(rest);
  const origin = ['stream', 'shard', 'offset'].map((name) => message.headers[`:source_${name}`]);
  const shown = await topic.config();
  const back = await code(topic.route('back').create({ target: { stream: stream.name } }));
  const readOnly = [];
  for (const call of ['create', 'change', 'delete', 'publish']) readOnly.push(await code(topic[call]({ unmatched: 'refuse' })));
  const names = (await all(client.topics({ prefix: topic.name }))).map(({ name }) => name);
  const pointers = [];
  for (const named of [{ topic: 'stream:a' }, { topic: 'queue:a' }, { queue: 'route:a.b' }, { stream: 'topic:a' }])
    pointers.push((await code(topic.route('x').create({ target: named }))).at(-1));
  const isDelivered = await until(async () => (await route.stats()).delivered === 1);
  await stream.delete();
  tell('streamRoutes', {
    made: [made.topic === topic.name, made.number],
    copy: [message.json(), message.key, message.topic, message.route, message.subject],
    origin: [origin[0] === stream.name, ...origin.slice(1)],
    rest: [other.json(), other.route],
    shown: [shown.name === topic.name, shown.stream === stream.name, shown.type, shown.unmatched, shown.message_bytes_max],
    back: [back].flat()[0],
    readOnly,
    names: names.length === 1 && names[0] === topic.name,
    pointers,
    delivered: isDelivered,
    gone: [await code(route.config()), await code(topic.route('x').create({ target: { queue: 'a' } }))],
  });
}

{
  const [queue, target, end] = [await newQueue(), await newQueue(), await newQueue({ type: 'fifo' })];
  const topic = client.topic(`queue:${queue.name}`);
  await queue.sendMany([1, 2].map((n) => new NewMessage({ even: n % 2 === 0, n }, { group: 'g' })));
  const route = topic.route('even');
  const planned = await route.apply({ target: { queue: target.name } }, { dryRun: true });
  const missing = [await code(topic.config()), await code(client.topic(`queue:${prefix}-none`).create())];
  const made = await route.create({ match: { filter: { body: { even: [true] } } }, target: { queue: target.name } });
  const [message] = await take(target);
  const isLetter = await until(async () => (await queue.stats()).dead_lettered === 1);
  const [letter] = await all(queue.deadLetters());
  await topic.route('end').create({ match: 'unmatched', target: { queue: end.name } });
  await queue.send({ even: false, n: 3 }, { group: 'g', delaySeconds: SHORT });
  await advance(PAST);
  const [last] = await take(end);
  await route.pause();
  await queue.send({ even: true, n: 4 });
  const isTaken = await until(async () => (await queue.stats()).moved_out === 3);
  await route.resume();
  const [resumed] = await take(target);
  const shown = await topic.config();
  const changed = [(await topic.change({ unmatched: 'drop' })).unmatched, (await topic.change({ unmatched: null })).unmatched];
  const back = client.topic(`queue:${target.name}`).route('back');
  const refused = [await code(topic.publish('x')), await code(topic.apply({ shards: 2 })), await code(topic.apply({ type: 'fifo' }))];
  const cycles = [];
  for (const other of [back, topic.route('self')]) cycles.push([await code(other.create({ target: { queue: queue.name } }))].flat()[0]);
  const { ready, moved_out, dead_lettered, sent } = await queue.stats();
  await queue.delete();
  tell('queueRoutes', {
    planned: [planned.created, planned.number, planned.in_force],
    missing,
    made: [made.topic === topic.name, made.number],
    copy: [message.json(), message.key, message.topic === topic.name, message.route],
    letter: [isLetter, letter.body, letter.reason],
    last: [last.json(), last.group],
    paused: [isTaken, resumed.json()],
    shown: [shown.stream === `topic:${topic.name}`, shown.unmatched, shown.message_bytes_max, ...changed],
    refused,
    cycles,
    counts: { ready, moved_out, dead_lettered, sent },
    gone: await code(route.config()),
  });
}

// ── Back-tests ──

{
  const topic = await newTopic({ shards: 2 });
  await topic.route('orders').create({ match: { subject: 'order.*' }, target: { queue: 'nowhere' } });
  const paid = { filter: { body: { total: [{ numeric: ['>', 10] }] } } };
  await topic.publishMany([
    new NewPublication({ total: 5 }, { subject: 'order.created', key: 'a' }),
    new NewPublication({ total: 15, tags: ['x'] }, { subject: 'order.created', key: 'a' }),
    new NewPublication({ total: 25, customer: { id: 'c7' } }, { subject: 'order.paid', headers: { tenant: 't7' } }),
    new NewPublication({ customer: { id: 'c7', vip: true } }, { subject: 'refund' }),
    new NewPublication('hello', { subject: 'fax', key: 'b' }),
  ]);
  const matches = [
    null,
    paid,
    { subject: ['order.*', 'fax'] },
    { subject: 'order.*', ...paid },
    [{ subject: 'fax' }, paid],
    [{ subject: 'fax' }, { subject: 'r', filter: { key: ['a'] } }],
    { filter: { body: { customer: { vip: [{ exists: false }] } } } },
    { filter: { key: ['a'], body: { tags: ['x'] } } },
    { filter: { headers: { tenant: ['t7'] }, meta: { topic: ['other'] } } },
    { filter: { size: [{ numeric: ['<', 14] }] } },
    'unmatched',
  ];
  const results = [];
  for (const match of matches) {
    const { evaluated, matched, gained, failed_by_path: failed, complete } = await topic.backtest({ match });
    results.push([evaluated, matched, gained, failed, complete]);
  }
  const compared = await topic.backtest({ match: paid, compare_with: 'orders', samples_max: 1 });
  const few = await topic.backtest({ messages_max: 2 });
  const late = await topic.backtest({ start_time: '2100-01-01T00:00:00Z' });
  const refused = [];
  for (const config of [{ match: { subjects: 'a' } }, { messages_max: -1 }, { samples_max: 101 }, { compare_with: 'none' }])
    refused.push([await code(topic.backtest(config))].flat());
  const job = await topic.startBacktest({ match: paid });
  await topic.publish('later');
  const again = await topic.startBacktest({ match: paid });
  const other = await code(topic.startBacktest());
  const cancelled = await job.cancel();
  const [last] = await all(job.watch());
  tell('backTests', {
    results,
    compared: [compared.gained, compared.lost, compared.samples.matched.length, compared.samples.lost.length],
    few: [few.evaluated, few.complete],
    late: [late.evaluated, late.complete],
    refused,
    same: job.id === again.id,
    other,
    cancelled: [cancelled.state, cancelled.kind, cancelled.subject === topic.name, last.state, last.messages, last.result.evaluated, last.result.complete],
    retried: await code(job.retry()),
    unknown: [await code(topic.backtestJob('none').status()), await code(client.topic('other').backtestJob(job.id).status())],
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
  const topic = await newTopic();
  const route = topic.route('all');
  const storedRoute = await route.create({ target: { queue: queue.name } });
  const { id } = await topic.publish('x');
  const job = await topic.startBacktest();
  const cancelled = await job.cancel();
  const answers = {
    TopicStored: await topic.apply({}),
    TopicOut: await topic.config(),
    TopicStats: await topic.stats(),
    BackTestOut: await topic.backtest(),
    BackTestJobOut: await job.status(),
    JobOut: cancelled,
    TopicMessageOut: await topic.message(id),
    MessageRoutes: await topic.messageRoutes(id),
    RouteStored: storedRoute,
    RouteOut: await route.config(),
    RouteStats: await route.stats(),
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
