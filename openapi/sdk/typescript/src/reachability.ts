/** Reachability of one service: retries are logged, and a first connection fails early. */

/** Receives one line of text. */
export type Log = (line: string) => void;

const WARN_AFTER = 2; // failed attempts of a call: the first retry is a matter of milliseconds
const WARN_EVERY_MS = 60_000;

/** State of the connection to a service, shared by all calls and subscriptions of a client. */
export class Reachability {
  readonly #log: Log;
  #isEstablished = false;
  #warnedAt = -Infinity;

  constructor(log: Log = defaultLog) {
    this.#log = log;
  }

  /** Whether the service, or a proxy in front of it, ever responded. */
  get isEstablished(): boolean {
    return this.#isEstablished;
  }

  /** Record that the service responded. */
  established(): void {
    this.#isEstablished = true;
  }

  /** Log a failure that is retried, at most once a minute. */
  warn(failure: string, failures: number, limit: string): void {
    const now = Date.now();
    if (failures < WARN_AFTER || now < this.#warnedAt + WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#log(`${failure.replace(/\.$/, '')}; retrying ${limit}`);
  }
}

/** Write a line to the console. */
export function defaultLog(line: string): void {
  console.warn(`millstream: ${line}`);
}
