"""Write-behind of last-used times: recorded immediately, written later in batches.

At most once a minute for each key. A time that cannot be written is lost; the next use is recorded again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeVar

from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

_FLUSH_SECONDS = limits.CREDENTIAL_USED_FLUSH_MS / limits.SECOND_MS


class LastUsedWriter(Generic[K]):
    """Writer of last-used times of one kind.

    `write` is given keys and milliseconds since 1970.
    """

    def __init__(self, write: Callable[[Mapping[K, int]], Awaitable[None]], clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._noted: dict[K, int] = {}
        self._waiting: dict[K, int] = {}
        self._writing: asyncio.Task[None] | None = None

    def touch(self, key: K) -> None:
        """Record that a key is used now."""
        now_ms = self._clock.now_ms()
        noted_ms = self._noted.get(key)
        if noted_ms is not None and 0 <= now_ms - noted_ms < limits.CREDENTIAL_USED_MS:
            return
        if len(self._noted) >= limits.CREDENTIALS_CACHED_MAX:
            self._noted.clear()
        self._noted[key] = self._waiting[key] = now_ms
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_later(), name="noted-uses")

    async def flush(self) -> None:
        """Write the pending times."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        try:
            await self._write(waiting)
        except MillstreamError as error:
            facts = {"count": len(waiting), "reason": error.detail}
            logger.info("last_used_write_failed", extra=facts)

    async def close(self) -> None:
        """Write the pending times, and stop."""
        if self._writing is not None:
            await end(self._writing)
        await self.flush()

    async def _write_later(self) -> None:
        """Write after a delay, so that many uses are one statement."""
        try:
            await asyncio.sleep(_FLUSH_SECONDS)
        finally:
            self._writing = None
        await self.flush()
