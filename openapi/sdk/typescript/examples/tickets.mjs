// A backend that serves the example page and makes tickets for it: node examples/tickets.mjs 8000
// The service is at MILLSTREAM_URL, and MILLSTREAM_API_KEY may do what the page's tickets may do. Then open
// http://127.0.0.1:8000/examples/browser.html?url=http://127.0.0.1:8080&stream=clicks#tickets=/ticket

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Millstream } from '../dist/index.js';

const [port = '8000'] = process.argv.slice(2);
const ROOT = new URL('..', import.meta.url);
const TYPES = { '.html': 'text/html', '.js': 'text/javascript' };
const client = new Millstream();

/** Return a ticket for a visitor. A real backend would look at the visitor's session first. */
async function ticket() {
  return { type: 'text/plain', body: (await client.ticket()).ticket };
}

async function file(path) {
  const url = new URL(`.${path}`, ROOT);
  const type = TYPES[extname(path)];
  if (!url.href.startsWith(ROOT.href) || type === undefined) throw new Error(`no page ${path}`);
  return { type, body: await readFile(fileURLToPath(url)) };
}

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://page');
  try {
    const { type, body } = await (pathname === '/ticket' ? ticket() : file(pathname));
    response.writeHead(200, { 'content-type': type }).end(body);
  } catch (error) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end(String(error));
  }
}).listen(Number(port), '127.0.0.1', () => console.log('ready'));
