// Works on a queue and prints what it has done, until SIGTERM or Ctrl-C: node examples/worker.mjs orders

import { Millstream } from '../dist/index.js';

const [name, url] = process.argv.slice(2);
const client = new Millstream({ url });
await client.queue(name).work(
  (message) => {
    console.log(message.text);
  },
  { concurrency: 8, leaseSeconds: 5 },
);
