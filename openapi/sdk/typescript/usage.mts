// Compiled with --strict against the packed package, as an ES module and as CommonJS, by
// tests/contract/sdk/test_typescript_package.py. It is not run.

import {
  AlreadyExists,
  type Message,
  Millstream,
  MillstreamError,
  NewMessage,
  type QueueStatsOut,
  Reject,
  Retry,
  type StreamRecord,
} from 'millstream-client';
import { whoami } from 'millstream-client/calls';
import { MemoryService, type StoredMessage } from 'millstream-client/testing';

interface Order {
  id: number;
  total: number;
}

export async function use(signal: AbortSignal): Promise<void> {
  const client = new Millstream({
    url: 'http://127.0.0.1:8080',
    apiKey: async () => 'a token',
    retries: { seconds: 10 },
    timeoutSeconds: 5,
    logger: console,
    fetch,
    WebSocket,
    onRequest: ({ attempt, headers }) => headers.set('x-attempt', String(attempt)),
    onResponse: ({ request, status, durationSeconds }) => console.log(request.path, status, durationSeconds),
  });

  const orders = client.queue('orders');
  const { created, changes } = await orders.create({ attempts_max: 3, backoff: { delays_seconds: [1, 10] } });
  const fields: [boolean, string[]] = [created, changes.map(({ pointer }) => pointer)];
  const { id }: { id: string } = await orders.send({ id: 1 }, { group: 'ann', delaySeconds: 5, signal });
  await orders.withOptions({ timeoutSeconds: 2, retries: { seconds: 0 } }).send('now');
  await orders.sendMany(['text', new Uint8Array([1]), new NewMessage({ id }, { priority: 1 })]);
  for await (const message of orders.messages({ messagesMax: 10, signal })) {
    const order = message.json<Order>();
    await (order.total < 0 ? message.reject('a negative total') : message.ack());
  }
  const stats: QueueStatsOut = await orders.stats();
  await orders.work(
    async (message: Message, released: AbortSignal) => {
      if (released.aborted) throw new Retry(stats.ready);
      if (message.receiveCount > fields[1].length) throw new Reject('too late');
    },
    { concurrency: 8, signal, retry: (_error, message) => 2 ** message.failures },
  );

  for await (const record of client.stream('clicks').subscribe({ start: new Date(), filter: { keys: ['ann'] } })) {
    const { shard, offset, key }: StreamRecord = record;
    console.log(shard, offset, key.length, record.bytes.length);
  }
  await using member = client.group('billing').member();
  for await (const batch of member.batches({ untilEmpty: true })) console.log(batch.records.map(({ text }) => text));
  for await (const queue of client.queues({ measured: true })) console.log(queue.name, queue.measurement?.ready);
  console.log((await whoami({ client: client.client })).data.name);

  try {
    await orders.create({ attempts_max: 4 }, { onlyNew: true });
  } catch (error) {
    if (error instanceof AlreadyExists) console.log(error.changes[0]?.pointer);
    else if (error instanceof MillstreamError) console.log(error.code, error.status, error.requestId, error.retryable);
    else throw error;
  }

  // @ts-expect-error: a field that does not exist
  await orders.create({ attempt_max: 3 });
  // @ts-expect-error: a value of another type
  await orders.receive({ waitSeconds: '1' });
  // @ts-expect-error: a group needs a stream
  await client.group('billing').create();
  // @ts-expect-error: records of a stream are not acknowledged
  for await (const record of client.stream('clicks').read()) await record.ack();
}

export async function test(): Promise<void> {
  const service = new MemoryService({ longPollSeconds: 0 });
  await service.client({ retries: { seconds: 0 } }).queue('orders').send({ id: 1 });
  service.advance(30);
  service.failNext(503, { times: 2 });
  const [message]: StoredMessage[] = service.queue('orders').messages;
  const order = message?.json<Order>();
  console.log(order?.id, service.stream('clicks').records.length, service.group('readers').positions.get(0));
}
