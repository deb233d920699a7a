/** Progress of background work, asked for until it has ended. */

import { sleep } from '../transport/retries.js';

const ENDED = new Set(['done', 'failed', 'cancelled']);
const WATCH_S = 0.5;

export interface WatchOptions {
  /** Default: 0.5. */
  everySeconds?: number;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

/** Yield what `status` returns, repeatedly until its state is final. */
export async function* watch<Status extends { state: string }>(
  status: () => Promise<Status>,
  { everySeconds = WATCH_S, signal }: WatchOptions,
): AsyncGenerator<Status, void, void> {
  while (!signal?.aborted) {
    const current = await status();
    yield current;
    if (ENDED.has(current.state)) return;
    await sleep(everySeconds, signal).catch(() => undefined);
  }
}
