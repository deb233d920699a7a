/** Many items in as few calls as the limits allow. */

import { ItemRefused, type MillstreamError } from '../errors.js';
import { Attempts } from '../transport/attempts.js';
import { sleep } from '../transport/retries.js';
import type { Transport } from '../transport/transport.js';

export const ITEMS_MAX = 1_000; // of one call
const BYTES_MAX = 5 * 2 ** 20; // of bodies in one call, which may have 16 MiB: escapes can make text larger

/** Send a batch whose items have results of their own; repeat it while some are refused temporarily. */
export async function sendBatch<Result>(
  send: () => Promise<(Result | ItemRefused)[]>,
  transport: Transport,
  signal?: AbortSignal,
): Promise<(Result | ItemRefused)[]> {
  const attempts = new Attempts(true, false, transport.settings.retries, transport.service);
  for (;;) {
    const results = await send();
    const temporary = results.find((result) => result instanceof ItemRefused && result.retryable);
    const pause = temporary && pauseAfter(attempts, temporary as ItemRefused);
    if (pause === undefined) return results;
    await sleep(pause, signal);
  }
}

/** Return the seconds until a batch is sent again; undefined if there is no time left. */
function pauseAfter(attempts: Attempts, failure: MillstreamError): number | undefined {
  try {
    return attempts.pauseAfter(failure);
  } catch {
    return undefined;
  }
}

/** Yield the items in order, in batches that fit into a call; a too large item is alone. */
export function* batches<Item>(
  items: Iterable<Item>,
  sizeOf: (item: Item) => number,
  bytesMax = BYTES_MAX,
): Generator<Item[]> {
  let batch: Item[] = [];
  let size = 0;
  for (const item of items) {
    const more = sizeOf(item);
    if (batch.length > 0 && (batch.length === ITEMS_MAX || size + more > bytesMax)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(item);
    size += more;
  }
  if (batch.length > 0) yield batch;
}
