// Drives sockets of the compiled SDK against the service at argv[2], with names that begin with argv[3]; the service at argv[4]
// is behind a network that loses answers. Each step prints a line of JSON, which tests/contract/sdk/test_typescript_sockets.py
// looks at.

import { Millstream, NewMessage, NewPublication } from './dist/index.js';

const [url, name, losingUrl] = process.argv.slice(2);
const client = new Millstream({ url });
const tell = (step, fields) => console.log(JSON.stringify({ step, ...fields }));
const caught = async (promise) => {
  try {
    await promise;
    return 'no error';
  } catch (error) {
    return error.code || error.name;
  }
};
const all = async (items) => {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
};

const topic = client.topic(`${name}-topic`);
await topic.create({ unmatched: 'drop' });
await topic.route('orders').create({ match: { subject: 'order.*' }, target: { queue: `${name}-orders` } });
const queue = client.queue(`${name}-quotes`);
await queue.create();
const socket = await client.socket().open();

{
  const order = await socket.publish(topic.name, { id: 1 }, { subject: 'order.created' });
  const bytes = new NewPublication(new Uint8Array([255]), { subject: 'fax', key: 'c7', ttlSeconds: 60 });
  const many = await socket.publishMany(topic.name, ['a', bytes], { subject: 'order.a' });
  const stored = [await topic.message(order.id), await topic.message(many[1].id)];
  const once = { idempotencyKey: 'k' };
  const [first, again] = [await socket.publish(topic.name, 'x', once), await socket.publish(topic.name, 'x', once)];
  const together = await Promise.all(Array.from({ length: 100 }, (_, body) => socket.publish(topic.name, body)));
  tell('publish', {
    routes: [order, ...many].map(({ routes }) => routes),
    stored: [stored[0].body, stored[0].subject, stored[1].body_base64, stored[1].key, stored[1].ttl_seconds],
    once: [first.id === again.id, again.duplicate, again.routes],
    inOrder: together.every(({ offset }, number) => offset === together[0].offset + number),
    large: (await socket.publishMany(topic.name, Array(5).fill('x'.repeat(2 ** 19)))).length,
  });
}

{
  await topic.change({ unmatched: 'refuse' });
  tell('refused', {
    unroutable: await caught(socket.publish(topic.name, 'x', { subject: 'none' })),
    partly: await caught(socket.publishMany(topic.name, ['x'])),
    missing: await caught(socket.publish(`${name}-none`, 'x')),
    large: await caught(socket.publish(topic.name, 'x'.repeat(2 ** 21))),
    kind: await caught(socket.request('stream:x', 'x')),
    subject: await caught(socket.request('queue:x', 'x', { subject: 's' })),
    noSocket: await caught((async () => new Millstream({ url, WebSocket: null }).socket())()),
    after: (await socket.publish(topic.name, 'x', { subject: 'order.a' })).routes,
  });
}

{
  const asking = socket.request(`queue:${queue.name}`, new NewMessage({ n: 1 }, { headers: { a: 'b' } }));
  const [message] = await queue.receive({ waitSeconds: 20 });
  await socket.reply(message.replyTo, { n: message.json().n + 1 }, { headers: { c: 'd' } });
  await message.ack();
  const [reply] = await asking;
  const terms = { subject: 'order.a', repliesMax: 2, timeoutSeconds: 0.01 };
  tell('request', {
    reply: [reply.json(), reply.contentType, reply.headers],
    request: message.headers,
    late: await caught(socket.reply(message.replyTo, 'again')),
    nothing: await socket.request(`topic:${topic.name}`, 'a', terms),
    aborted: await caught(socket.request(`queue:${queue.name}`, 'a', { signal: AbortSignal.timeout(10) })),
  });
}

{
  const waiting = socket.request(`queue:${queue.name}`, 'a', { timeoutSeconds: 60 });
  const failure = caught(waiting);
  await socket.publish(topic.name, 'x', { subject: 'order.a' });
  await socket.close();
  tell('closed', { waiting: await failure, after: await caught(socket.publish(topic.name, 'x')) });
}

{
  const log = client.topic(`${name}-broken`);
  await log.create();
  const through = new Millstream({ url: losingUrl, retries: { firstPauseSeconds: 0.01 } }).socket();
  for (let number = 0; number < 100; number++) await through.publish(log.name, `${number}`);
  await through.close();
  const texts = (await all(client.stream(`topic:${log.name}`).read())).map(({ text }) => text);
  tell('broken', { inOrder: texts.every((text, number) => text === `${number}`), number: texts.length });
}

tell('done', {});
