// Drives the in-memory service of the compiled SDK where it differs from a service: time, failures, inspection, limits. Each step
// prints a line of JSON, which tests/contract/sdk/test_typescript_memory.py looks at.

import { MemoryService } from './dist/testing/index.js';

const tell = (step, fields) => console.log(JSON.stringify({ step, ...fields }));
const logger = { warn: () => undefined, error: () => undefined };
const quick = { firstPauseSeconds: 0.001, longestPauseSeconds: 0.001 };
const service = new MemoryService();
const client = service.client({ retries: quick, logger });
const once = { retries: { seconds: 0 } };
const named = async (promise) => {
  try {
    await promise;
    return 'no error';
  } catch (error) {
    return [error.name, error.status ?? 0, error.code ?? ''];
  }
};

const orders = client.queue('orders');
await orders.create();

{
  await orders.send({ order: 7 }, { headers: { source: 'web' }, delaySeconds: 3600 });
  const [stored] = service.queue('orders').messages;
  const before = stored.state;
  service.advance(3601);
  const [message] = await orders.receive();
  await message.reject('never');
  const letters = service.queue('orders').deadLetters.map(({ reason }) => reason);
  tell('inspection', { json: stored.json(), headers: stored.headers, before, letters });
}

{
  const clicks = client.stream('clicks');
  await clicks.create({ retention_seconds: 86400 });
  await client.group('readers').create('clicks');
  await clicks.appendMany(['a', 'b']);
  const texts = service.stream('clicks').records.map(({ text }) => text);
  const positions = [...service.group('readers').positions];
  service.advance(86401);
  const gaps = [];
  for await (const record of clicks.read({ shard: 0, offset: 0, onGap: (gap) => gaps.push(gap) })) tell('never', record);
  tell('retention', { texts, positions, left: service.stream('clicks').records.length, gaps: gaps.map(({ next }) => next) });
}

{
  await orders.purge();
  service.failNext(503);
  const refused = await named(orders.withOptions(once).send('x'));
  service.failNext(429);
  const limited = await named(orders.withOptions(once).send('x'));
  service.failNext(503, { times: 2 });
  service.loseNext();
  const sent = await orders.send('hello');
  const stored = service.queue('orders').messages.length;
  service.loseNext();
  const unknown = await named(orders.purge());
  tell('failures', { refused, limited, duplicate: sent.duplicate, stored, unknown });
}

{
  const fifo = client.queue('fifo');
  await fifo.create({ type: 'fifo' });
  await fifo.send('hello', { group: 'a' });
  service.loseNext();
  const [message] = await fifo.receive();
  tell('repeated', { text: message.text, count: message.receiveCount });
}

{
  const topic = client.topic('shop');
  await topic.create();
  await topic.route('orders').create({ match: { subject: 'order.*' }, target: { queue: 'orders' } });
  await topic.route('later').create({ target: { queue: 'later' } });
  await topic.publish({ id: 1 }, { subject: 'order.new', ttlSeconds: 60 });
  const [message] = service.topic('shop').messages;
  const [copy] = service.queue('orders').messages.slice(-1);
  const states = message.copies.map(({ state }) => state);
  service.advance(61);
  await client.queue('later').create();
  const url = { target: { url: 'https://shop.example' } };
  tell('topics', {
    message: [message.json(), message.subject, states],
    copy: [copy.json(), copy.subject, copy.route],
    dropped: (await topic.route('later').stats()).dropped,
    limits: [
      await named(topic.route('x').create(url)),
      await named(topic.route('x').create({ match: { where: 'a > 1' }, target: { queue: 'orders' } })),
      await named(topic.explain({ message: {} })),
      await named(client.replay('x').status()),
    ],
    socket: (await named((async () => client.socket())()))[0],
  });
}

{
  const topic = client.topic('stream:clicks');
  await topic.route('tasks').create({ target: { queue: 'orders' } });
  await client.topic('queue:orders').route('later').create({ match: { filter: { key: ['ann'] } }, target: { queue: 'nowhere' } });
  await client.stream('clicks').append('a', { key: 'bea' });
  await orders.send('b', { delaySeconds: 60 });
  service.advance(60);
  const records = service.topic('stream:clicks').messages.map(({ text, copies }) => [text, copies.map(({ state }) => state)]);
  const letters = service.queue('orders').deadLetters.slice(-2).map(({ text, reason }) => [text, reason]);
  const shop = client.topic('shop');
  const job = await shop.startBacktest({ match: { subject: 'order.*' }, compare_with: 'later' });
  const states = [];
  for await (const { state, attempt, result } of job.watch()) states.push([state, attempt, result.matched, result.gained, result.complete]);
  const done = [await named(job.cancel()), await named(job.retry())];
  await topic.route('tasks').delete();
  const lost = await shop.startBacktest();
  await shop.delete();
  const failed = await lost.status();
  const retried = await lost.retry();
  tell('sources', { records, letters, states, done, failed: [failed.state, failed.failure, retried.state, retried.failure] });
}

tell('limits', {
  move: await named(orders.move()),
  source: await named(client.source('github').stats()),
  parked: await named(client.queue('x').create({ on_poison: 'park_group' })),
  letters: await named(client.queue('x').create({ dead_letters: { topic: 't', receives_max: 1 } })),
  aborted: (await named(orders.receive({ waitSeconds: 20, signal: AbortSignal.timeout(1) })))[0],
});
