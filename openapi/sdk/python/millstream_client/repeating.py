"""Retries of rejected items of a batch, by the rules of `retries` for whole calls."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from millstream_client.calls import Call
from millstream_client.errors import ItemRefused, MillstreamError, PartlyRefused
from millstream_client.retries import Attempts, Retries


class Remaining:
    """One logical batch, whose repeat with the same key adds nothing twice."""

    def __init__(
        self,
        call: Call[Any],
        retries: Retries,
        now: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,  # noqa: S311 - jitter
    ) -> None:
        self._attempts = Attempts(call, retries, now, chance)

    def pause_after(self, results: Sequence[Any]) -> float | None:
        """Return the seconds until the batch is sent again, or None if the results are final."""
        refused = [one for one in results if isinstance(one, ItemRefused)]
        if not any(one.retryable for one in refused):
            return None
        try:
            return self._attempts.pause_after(_ForNow(refused))
        except MillstreamError:
            return None


class _ForNow(PartlyRefused):
    """Some items were rejected temporarily."""

    def __init__(self, results: Sequence[Any]) -> None:
        super().__init__(results)
        self.retryable = True
