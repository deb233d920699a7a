// Goes through the SQS door with Amazon's SDK: node exercise.mjs <endpoint> <prefix of the queues' names>
//
// Prints one line of JSON per step, { step, ... }. It judges nothing: test_javascript.py does.

import {
  ChangeMessageVisibilityBatchCommand,
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueueTagsCommand,
  QueueDoesNotExist,
  ReceiptHandleIsInvalid,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  SQSClient,
  SQSServiceException,
  TagQueueCommand,
  UntagQueueCommand,
  paginateListQueues,
} from "@aws-sdk/client-sqs";

const [endpoint, prefix] = process.argv.slice(2);

const sqs = new SQSClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
  maxAttempts: 1,
});

const standard = await createQueue(prefix, { VisibilityTimeout: "40" });
const fifo = await createQueue(`${prefix}.fifo`, { FifoQueue: "true" });
tell("created", { standard, fifo });

await findQueues();
await sendAndReceive();
await changeVisibility();
await batches();
await groupsInOrder();
await longPoll();
await configure();
await refusals();
await spoiltBodies();
await deleteQueues();

sqs.destroy();

async function createQueue(name, attributes) {
  const asked = new CreateQueueCommand({ QueueName: name, Attributes: attributes });
  return without(await sqs.send(asked));
}

async function findQueues() {
  const found = await sqs.send(new GetQueueUrlCommand({ QueueName: prefix }));
  const pages = [];
  const asked = { QueueNamePrefix: prefix };
  for await (const page of paginateListQueues({ client: sqs, pageSize: 1 }, asked)) {
    pages.push(page.QueueUrls ?? []);
  }
  tell("found", { url: found.QueueUrl, pages });
}

async function sendAndReceive() {
  const sent = await sqs.send(
    new SendMessageCommand({
      ...standard,
      MessageBody: "<é> & \"🚂\"\t\r\n",
      MessageAttributes: {
        color: { DataType: "String", StringValue: "blüe" },
        price: { DataType: "Number.decimal", StringValue: "007.50" },
        raw: { DataType: "Binary.png", BinaryValue: new Uint8Array([0, 127, 128, 255]) },
      },
    }),
  );
  const [message] = await receive({
    MessageAttributeNames: ["All"],
    MessageSystemAttributeNames: ["All"],
  });
  const during = await counts();
  const { ReceiptHandle } = message;
  const deleted = await sqs.send(new DeleteMessageCommand({ ...standard, ReceiptHandle }));
  tell("sent", without(sent));
  tell("received", message);
  tell("deleted", { during, after: await counts(), ...metadata(deleted) });
}

async function changeVisibility() {
  await sqs.send(new SendMessageCommand({ ...standard, MessageBody: "again" }));
  const [first] = await receive({ VisibilityTimeout: 60 });
  const hidden = await receive();
  const { ReceiptHandle } = first;
  await sqs.send(
    new ChangeMessageVisibilityCommand({ ...standard, ReceiptHandle, VisibilityTimeout: 0 }),
  );
  const [second] = await receive({ MessageSystemAttributeNames: ["ApproximateReceiveCount"] });
  await sqs.send(new DeleteMessageCommand({ ...standard, ReceiptHandle: second.ReceiptHandle }));
  tell("visibility", { first, hidden, second });
}

async function batches() {
  const sent = await sqs.send(
    new SendMessageBatchCommand({
      ...standard,
      Entries: [
        { Id: "a", MessageBody: "one" },
        {
          Id: "b",
          MessageBody: "two",
          MessageAttributes: { n: { DataType: "Number", StringValue: "1e3" } },
        },
        { Id: "c", MessageBody: "not a character of XML: \u000b" },
      ],
    }),
  );
  const messages = await receive({ MaxNumberOfMessages: 10, MessageAttributeNames: ["n"] });
  const handles = messages.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle }));
  const changed = await sqs.send(
    new ChangeMessageVisibilityBatchCommand({
      ...standard,
      Entries: handles.map((handle) => ({ ...handle, VisibilityTimeout: 60 })),
    }),
  );
  const deleted = await sqs.send(
    new DeleteMessageBatchCommand({
      ...standard,
      Entries: [...handles, { Id: "none", ReceiptHandle: "none" }],
    }),
  );
  tell("batch sent", without(sent));
  tell("batch received", { messages });
  tell("batch changed", without(changed));
  tell("batch deleted", { ...without(deleted), after: await counts() });
}

async function groupsInOrder() {
  const sent = [];
  for (const [body, group, deduplication] of [
    ["one", "a", "1"],
    ["one", "a", "1"],
    ["two", "a", "2"],
    ["three", "b", "3"],
  ]) {
    const answer = await sqs.send(
      new SendMessageCommand({
        ...fifo,
        MessageBody: body,
        MessageGroupId: group,
        MessageDeduplicationId: deduplication,
      }),
    );
    sent.push(without(answer));
  }
  const asked = { ...fifo, MaxNumberOfMessages: 10, MessageSystemAttributeNames: ["All"] };
  const messages = await receive(asked);
  await sqs.send(
    new DeleteMessageBatchCommand({
      ...fifo,
      Entries: messages.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle })),
    }),
  );
  tell("groups", { sent, messages, after: await counts(fifo) });
}

async function longPoll() {
  let waits = true;
  const waiting = receive({ WaitTimeSeconds: 10 }).finally(() => {
    waits = false;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  const waited = waits;
  const sentAt = performance.now();
  await sqs.send(new SendMessageCommand({ ...standard, MessageBody: "at last" }));
  const messages = await waiting;
  const cameAfterMs = performance.now() - sentAt;
  for (const { ReceiptHandle } of messages) {
    await sqs.send(new DeleteMessageCommand({ ...standard, ReceiptHandle }));
  }
  tell("long poll", { waited, came_after_ms: cameAfterMs, messages });
}

async function configure() {
  await sqs.send(new TagQueueCommand({ ...standard, Tags: { team: "blüe", stage: "test" } }));
  await sqs.send(new UntagQueueCommand({ ...standard, TagKeys: ["stage"] }));
  const tags = await sqs.send(new ListQueueTagsCommand(standard));
  await sqs.send(
    new SetQueueAttributesCommand({ ...standard, Attributes: { MessageRetentionPeriod: "3600" } }),
  );
  const all = await attributes(standard, ["All"]);
  tell("tags", without(tags));
  tell("attributes", { standard: all, fifo: await attributes(fifo, ["FifoQueue", "QueueArn"]) });
}

async function refusals() {
  const missing = { QueueUrl: `${standard.QueueUrl}-missing` };
  const send = new SendMessageCommand({ ...missing, MessageBody: "x" });
  tell("no queue", await refusal(send, QueueDoesNotExist));
  const remove = new DeleteMessageCommand({ ...standard, ReceiptHandle: "none" });
  tell("no handle", await refusal(remove, ReceiptHandleIsInvalid));
}

// The SDK compares each body with the MD5 that the service told. Here an answer is spoilt on its way, so that
// it is seen to: were the check off, all the steps above would say nothing about the service's digests.
async function spoiltBodies() {
  const told = {};
  const wrong = "0".repeat(32);
  told.send = await failure(
    spoilt(new SendMessageCommand({ ...standard, MessageBody: "x" }), (output) => {
      output.MD5OfMessageBody = wrong;
    }),
  );
  const Entries = [{ Id: "a", MessageBody: "x" }];
  told.batch = await failure(
    spoilt(new SendMessageBatchCommand({ ...standard, Entries }), (output) => {
      output.Successful[0].MD5OfMessageBody = wrong;
    }),
  );
  told.receive = await failure(
    spoilt(new ReceiveMessageCommand(standard), (output) => {
      output.Messages[0].Body = "y";
    }),
  );
  tell("spoilt", told);
}

async function deleteQueues() {
  for (const queue of [standard, fifo]) {
    await sqs.send(new DeleteQueueCommand(queue));
  }
  const asked = new GetQueueAttributesCommand({ ...standard, AttributeNames: ["All"] });
  tell("queue deleted", await refusal(asked, QueueDoesNotExist));
}

async function receive(options = {}) {
  const answer = await sqs.send(new ReceiveMessageCommand({ ...standard, ...options }));
  return answer.Messages ?? [];
}

async function attributes(queue, names) {
  const asked = new GetQueueAttributesCommand({ ...queue, AttributeNames: names });
  return (await sqs.send(asked)).Attributes;
}

async function counts(queue = standard) {
  const told = await attributes(queue, ["All"]);
  return ["", "NotVisible", "Delayed"].map((of) => Number(told[`ApproximateNumberOfMessages${of}`]));
}

async function refusal(command, Expected) {
  const error = await failed(command);
  return {
    name: error.name,
    is_its_class: error instanceof Expected && error instanceof SQSServiceException,
    message: error.message,
    fault: error.$fault,
    query_error: error.Error,
    ...metadata(error),
  };
}

async function failure(command) {
  const error = await failed(command);
  return error.message;
}

async function failed(command) {
  try {
    await sqs.send(command);
  } catch (error) {
    return error;
  }
  throw new Error(`${command.constructor.name} was not refused`);
}

function spoilt(command, spoil) {
  const middleware = (next) => async (args) => {
    const answer = await next(args);
    spoil(answer.output);
    return answer;
  };
  command.middlewareStack.add(middleware, { step: "finalizeRequest" });
  return command;
}

function metadata({ $metadata }) {
  const { httpStatusCode, attempts, requestId } = $metadata;
  return { status: httpStatusCode, attempts, request_id: requestId };
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
