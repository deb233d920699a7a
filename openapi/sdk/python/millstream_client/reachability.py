"""Reachability of one service: retries are logged, and a first connection fails early."""

import logging
import math
import time
from collections.abc import Callable

from millstream_client.errors import ConnectionFailed, MillstreamError, NeverConnected

log = logging.getLogger("millstream_client")

WARN_AFTER = 2
"""Failed attempts of a call before a warning: the first retry is a matter of milliseconds."""

WARN_EVERY_S = 60.0


class Reachability:
    """State of the connection to a service, shared by all calls of a client.

    A service that never responded is probably not running, or somewhere else: calls fail sooner, with what to do. Retries are
    logged at most once a minute.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._warned_at = -math.inf
        self._is_established = False

    def established(self) -> None:
        """Record that a connection was made."""
        self._is_established = True

    def is_unreached(self, failure: MillstreamError) -> bool:
        """Return whether no connection was ever made, and this attempt did not make one either."""
        return not self._is_established and isinstance(failure, ConnectionFailed)

    def final(self, failure: MillstreamError) -> MillstreamError:
        """Return the error to raise for the last failure."""
        if self.is_unreached(failure) and failure.retryable:
            never = NeverConnected(str(failure))
            never.__cause__ = failure
            return never
        return failure

    def warn(self, failure: MillstreamError, failures: int, limit: str) -> None:
        """Log a failure that is retried up to a limit, unless a warning is recent."""
        now = self._now()
        if failures >= WARN_AFTER and now >= self._warned_at + WARN_EVERY_S:
            self._warned_at = now
            log.warning("%s; retrying %s", str(failure).rstrip("."), limit)
