// Works on a queue and prints what it has done: node examples/worker.mjs orders
// (in Node 20: node --experimental-websocket …)

import { Worker, connect } from '../dist/index.js';

const [queue, url] = process.argv.slice(2);
const worker = new Worker(
  connect({ url }),
  queue,
  (message) => {
    console.log(message.text);
  },
  { concurrency: 8 },
);
process.once('SIGTERM', () => worker.stop());
await worker.run();
