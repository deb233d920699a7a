// Works a queue with sqs-consumer until each of a number of messages was handled: node consume.mjs URL QUEUE_URL COUNT
//
// The first attempt at every seventh message fails. Prints one JSON line: how often each body was handled, and the failures.

import { SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const [endpoint, queueUrl, count] = process.argv.slice(2);
const sqs = new SQSClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
});
const handled = {};
const failed = new Set();
const errors = [];

const consumer = Consumer.create({
  queueUrl,
  sqs,
  batchSize: 10,
  waitTimeSeconds: 1,
  visibilityTimeout: 30,
  terminateVisibilityTimeout: true,
  handleMessage: async (message) => {
    const number = Number(message.Body);
    if (number % 7 === 0 && !failed.has(number)) {
      failed.add(number);
      throw new Error("the first attempt fails");
    }
    handled[number] = (handled[number] ?? 0) + 1;
    return message;
  },
});
consumer.on("error", (error) => errors.push(error.message));
consumer.on("message_processed", () => {
  if (Object.keys(handled).length === Number(count)) {
    consumer.stop();
  }
});
consumer.on("stopped", () => {
  console.log(JSON.stringify({ step: "consumed", handled, failed: failed.size, errors }));
});
consumer.start();
