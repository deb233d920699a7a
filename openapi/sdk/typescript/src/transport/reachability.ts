/** Reachability of one service: retries are logged, and a first connection fails early. */

import { ConnectionFailed, type MillstreamError, NeverConnected, OutcomeUnknown } from '../errors.js';
import { firstContactHint, isForeignPage } from './origins.js';
import type { Logger } from './settings.js';

const WARN_AFTER = 2; // failed attempts of a call: the first retry is a matter of milliseconds
const WARN_EVERY_MS = 60_000;

/** State of the connection to a service, shared by all calls and subscriptions of a client. */
export class Reachability {
  readonly #url: string;
  readonly #logger: Logger;
  #isEstablished = false;
  #warnedAt = -Infinity;

  constructor(url: string, logger: Logger) {
    this.#url = url;
    this.#logger = logger;
  }

  /** Whether the service, or a proxy in front of it, ever responded. */
  get isEstablished(): boolean {
    return this.#isEstablished;
  }

  /** Record that the service responded. */
  established(): void {
    this.#isEstablished = true;
  }

  /** Record that a WebSocket spoke; in a page of another origin that does not show that calls can reach the service. */
  spoke(): void {
    if (!isForeignPage(this.#url)) this.established();
  }

  /** Return the error to throw for the last failure. */
  final(failure: MillstreamError): MillstreamError {
    const hasNoResponse = failure instanceof ConnectionFailed || failure instanceof OutcomeUnknown;
    if (this.#isEstablished || !hasNoResponse || !failure.retryable) return failure;
    const detail = `${failure.detail.replace(/\.$/, '')}. ${firstContactHint(this.#url)}`;
    return new NeverConnected(detail, failure.outcomeUnknown, { cause: failure.cause });
  }

  /** Log a failure that is retried, at most once a minute. */
  warn(failure: MillstreamError, failures: number, limit: string): void {
    const now = Date.now();
    if (failures < WARN_AFTER || now < this.#warnedAt + WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#logger.warn(`${failure.message.replace(/\.$/, '')}; retrying ${limit}`);
  }
}
