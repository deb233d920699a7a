"""Retry decisions for failed calls, without I/O or sleeping.

rejected, retryable                         retry, after Retry-After or a delay
never sent                                  retry
unknown: no response, or outcome 'unknown'  retry only if a repeat has no further effect
anything else                               raise
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream_client.calls import Call
from millstream_client.errors import MillstreamError, OutcomeUnknown, Refused
from millstream_client.reachability import Reachability

UNREACHED_PAUSE_S = 0.5


@dataclass(frozen=True)
class Retries:
    """Time limit and speed of retries.

    `seconds` counts from the first failure; 0: one attempt. `first_contact_s` limits a client that has never reached the
    service: it is probably not running, or has another URL.
    """

    seconds: float = 60.0
    first_pause_s: float = 0.1
    longest_pause_s: float = 5.0
    first_contact_s: float = 5.0

    def limit_s(self, is_unreached: bool) -> float:
        """Return the time limit, for a service that this client never reached or for another."""
        return min(self.seconds, self.first_contact_s) if is_unreached else self.seconds

    def pause_s(
        self, failures: int, at_least_s: float, chance: float, is_unreached: bool = False
    ) -> float:
        """Return an exponential delay with full jitter, not shorter than the service requested.

        `chance`: a random number from 0 to 1. `is_unreached`: the client never reached the service, and has little time for it.
        """
        longest = UNREACHED_PAUSE_S if is_unreached else math.inf
        most = min(longest, self.longest_pause_s, self.first_pause_s * 2.0 ** min(failures, 16))
        return at_least_s + most * chance


class Attempts:
    """Attempts of one logical call, which are told each failure by `pause_after`."""

    def __init__(
        self,
        call: Call[Any],
        retries: Retries,
        now: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,  # noqa: S311 - jitter
        service: Reachability | None = None,
    ) -> None:
        self._call = call
        self._retries = retries
        self._now = now
        self._chance = chance
        self._service = service or Reachability(now)
        self._failures = 0
        self._started_at = now()
        self._first_failure_at = 0.0
        self._may_have_happened = False

    @property
    def number(self) -> int:
        """Return the number of the present attempt, from 1."""
        return self._failures + 1

    def pause_after(self, failure: MillstreamError) -> float:
        """Return the seconds until the next attempt. Raises the failure if there is none."""
        now = self._now()
        if not self._failures:
            self._first_failure_at = now
        self._may_have_happened |= failure.outcome_unknown
        if not failure.retryable or (failure.outcome_unknown and not self._call.may_repeat):
            raise self._last(failure)
        pause = self._retries.pause_s(
            self._failures,
            failure.retry_after_s,
            self._chance(),
            self._service.is_unreached(failure),
        )
        self._failures += 1
        if now + pause > self._deadline(failure):
            raise self._last(failure)
        self._service.warn(failure, self._failures, f"for up to {self._limit_s(failure):g} s")
        return pause

    def _deadline(self, failure: MillstreamError) -> float:
        """Return the end of retries: for a service that was never reached, counted from the call."""
        is_unreached = self._service.is_unreached(failure)
        since = self._started_at if is_unreached else self._first_failure_at
        return since + self._limit_s(failure)

    def _limit_s(self, failure: MillstreamError) -> float:
        return self._retries.limit_s(self._service.is_unreached(failure))

    def _last(self, failure: MillstreamError) -> MillstreamError:
        """Return the error to raise: a rejection now does not show what an earlier attempt did.

        The rejection may even be a consequence of that attempt.
        """
        if self._may_have_happened and not failure.outcome_unknown and self._call.method != "GET":
            unknown = OutcomeUnknown(
                f"An earlier attempt may have happened; the last one: {failure}"
            )
            unknown.__cause__ = failure
            return unknown
        return self._service.final(failure)

    def has_happened_before(self, failure: Refused) -> bool:
        """Return whether a delete that finds nothing repeats one that succeeded."""
        return self._may_have_happened and self._call.method == "DELETE" and failure.status == 404
