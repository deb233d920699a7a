/**
 * Retry decisions for failed calls, without I/O.
 *
 *   rejected, retryable                       retry, after Retry-After or a delay
 *   never sent                                retry
 *   no response, or outcome 'unknown'         retry only if a repeat has no further effect
 *   anything else                             throw
 */

import { type MillstreamError, OutcomeUnknown } from '../errors.js';
import type { Reachability } from './reachability.js';
import type { Retries } from './settings.js';

const UNREACHED_PAUSE_S = 0.5;

/** Return the time limit of retries, for a service that this client reached or never reached. */
export function limitOf(retries: Retries, isEstablished: boolean): number {
  const seconds = retries.seconds ?? 60;
  return isEstablished ? seconds : Math.min(seconds, retries.firstContactSeconds ?? 5);
}

/** Return an exponential delay in seconds, with full jitter. A service that was never reached is soon tried again. */
export function backoffOf(retries: Retries, failures: number, isEstablished: boolean): number {
  const { firstPauseSeconds = 0.1, longestPauseSeconds = 5 } = retries;
  const longest = isEstablished ? longestPauseSeconds : Math.min(longestPauseSeconds, UNREACHED_PAUSE_S);
  return Math.min(longest, firstPauseSeconds * 2 ** Math.min(failures, 16)) * Math.random();
}

/** Attempts of one logical call. */
export class Attempts {
  readonly #mayRepeat: boolean;
  readonly #hasEffect: boolean;
  readonly #retries: Retries;
  readonly #service: Reachability;
  readonly #startedAt = Date.now();
  #failures = 0;
  #failedAt = 0;
  #mayHaveHappened = false;

  /** `hasEffect`: the call is not a read. */
  constructor(mayRepeat: boolean, hasEffect: boolean, retries: Retries, service: Reachability) {
    this.#mayRepeat = mayRepeat;
    this.#hasEffect = hasEffect;
    this.#retries = retries;
    this.#service = service;
  }

  /** Number of the present attempt, from 1. */
  get number(): number {
    return this.#failures + 1;
  }

  /** Whether an earlier attempt may have taken effect. */
  get mayHaveHappened(): boolean {
    return this.#mayHaveHappened;
  }

  /** Return the seconds until the next attempt. Throws the failure if there is none. */
  pauseAfter(failure: MillstreamError, atLeastSeconds = 0): number {
    const now = Date.now();
    this.#failedAt ||= now;
    this.#mayHaveHappened ||= failure.outcomeUnknown;
    if (!failure.retryable || (failure.outcomeUnknown && !this.#mayRepeat)) throw this.#last(failure);
    const isEstablished = this.#service.isEstablished;
    const pause = atLeastSeconds + backoffOf(this.#retries, this.#failures++, isEstablished);
    const limit = limitOf(this.#retries, isEstablished);
    const since = isEstablished ? this.#failedAt : this.#startedAt;
    if (now + pause * 1000 > since + limit * 1000) throw this.#last(failure);
    this.#service.warn(failure, this.#failures, `for up to ${limit} s`);
    return pause;
  }

  /** Return the error to throw: a rejection now does not show what an earlier attempt did. */
  #last(failure: MillstreamError): MillstreamError {
    if (this.#mayHaveHappened && this.#hasEffect && !failure.outcomeUnknown) {
      const detail = `An earlier attempt may have happened; the last one: ${failure.message}`;
      return new OutcomeUnknown(detail, { cause: failure });
    }
    return this.#service.final(failure);
  }
}
