// Goes through the Kinesis-compatible API with Amazon's SDK: node exercise.mjs <endpoint> <name of the stream>
//
// Prints one line of JSON per step, { step, ... }. It judges nothing: test_javascript.py does.

import {
  CreateStreamCommand,
  DeleteStreamCommand,
  DescribeStreamSummaryCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  KinesisClient,
  ListShardsCommand,
  PutRecordCommand,
  PutRecordsCommand,
  RegisterStreamConsumerCommand,
  ResourceNotFoundException,
  SplitShardCommand,
  SubscribeToShardCommand,
  waitUntilStreamExists,
} from "@aws-sdk/client-kinesis";

const [endpoint, StreamName] = process.argv.slice(2);
const ShardId = "shardId-000000000000";

const kinesis = new KinesisClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
  maxAttempts: 1,
});

await kinesis.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }));
const waited = await waitUntilStreamExists({ client: kinesis, maxWaitTime: 11 }, { StreamName });
const { StreamDescriptionSummary } = await kinesis.send(new DescribeStreamSummaryCommand({ StreamName }));
const { handlerProtocol } = kinesis.config.requestHandler.metadata;
tell("created", { waited: waited.state, summary: StreamDescriptionSummary, protocol: handlerProtocol });

const put = await kinesis.send(
  new PutRecordCommand({ StreamName, PartitionKey: "blüe", Data: new Uint8Array([0, 127, 128, 255]) }),
);
const batch = await kinesis.send(
  new PutRecordsCommand({
    StreamName,
    Records: ["one", "two"].map((word) => ({ PartitionKey: "k", Data: new TextEncoder().encode(word) })),
  }),
);
tell("put", { put: without(put), batch: without(batch) });

tell("got", { records: (await read()).Records });
await subscription();

await kinesis.send(new SplitShardCommand({ StreamName, ShardToSplit: ShardId, NewStartingHashKey: `${2n ** 127n}` }));
const shards = await kinesis.send(new ListShardsCommand({ StreamName }));
const ended = await read();
tell("split", { shards: shards.Shards, next: ended.NextShardIterator ?? null, children: ended.ChildShards });

await kinesis.send(new DeleteStreamCommand({ StreamName, EnforceConsumerDeletion: true }));
tell("refused", await refusal(new DescribeStreamSummaryCommand({ StreamName })));
kinesis.destroy();

async function read() {
  const where = { StreamName, ShardId, ShardIteratorType: "TRIM_HORIZON" };
  const { ShardIterator } = await kinesis.send(new GetShardIteratorCommand(where));
  return kinesis.send(new GetRecordsCommand({ ShardIterator }));
}

async function subscription() {
  const { Consumer } = await kinesis.send(
    new RegisterStreamConsumerCommand({ StreamARN: StreamDescriptionSummary.StreamARN, ConsumerName: "app" }),
  );
  const { EventStream } = await kinesis.send(
    new SubscribeToShardCommand({
      ConsumerARN: Consumer.ConsumerARN,
      ShardId,
      StartingPosition: { Type: "TRIM_HORIZON" },
    }),
  );
  for await (const { SubscribeToShardEvent: event } of EventStream) {
    tell("subscribed", { records: event.Records, behind: event.MillisBehindLatest });
    break;
  }
}

async function refusal(command) {
  try {
    await kinesis.send(command);
  } catch (error) {
    return {
      name: error.name,
      is_its_class: error instanceof ResourceNotFoundException,
      message: error.message,
      status: error.$metadata.httpStatusCode,
      request_id: error.$metadata.requestId,
      extended_request_id: error.$metadata.extendedRequestId,
    };
  }
  throw new Error("it was not refused");
}

function without({ $metadata, ...answer }) {
  return answer;
}

function tell(step, told) {
  console.log(JSON.stringify({ step, ...told }, inBase64));
}

function inBase64(_, value) {
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}
