/** Close of a subscription that polls, which may interrupt a call. */

import { MillstreamError } from '../errors.js';

/** State of a subscription that can be closed once. */
export class Closing {
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isClosed(): boolean {
    return this.signal.aborted;
  }

  /** Close; return false if it was closed before. */
  close(): boolean {
    const isFirst = !this.isClosed;
    this.#controller.abort();
    return isFirst;
  }

  /** Return the result of a call with this signal; undefined if it was interrupted. */
  async unlessClosed<Result>(call: Promise<Result>): Promise<Result | undefined> {
    try {
      return await call;
    } catch (error) {
      if (this.isClosed) return undefined;
      throw error;
    }
  }
}

/** Wait for a call whose failure has no consequences, because the service does the same after a timeout. */
export async function attempted(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof MillstreamError)) throw error;
  }
}
