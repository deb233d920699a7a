"""Write-behind of last-used times: recorded immediately, written later in batches.

At most once a minute for each key. A time that cannot be written is lost; the next use is recorded again.
"""

import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from storage.concurrency.batcher import Batcher
from storage.concurrency.bounded_cache import BoundedCache
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
        self._noted: BoundedCache[K, int] = BoundedCache(limits.CREDENTIALS_CACHED_MAX)
        self._writes = Batcher[tuple[K, int], None](
            self._write_all, batch_max=limits.CREDENTIALS_CACHED_MAX, linger_s=_FLUSH_SECONDS
        )

    def touch(self, key: K) -> None:
        """Record that a key is used now."""
        now_ms = self._clock.now_ms()
        noted_ms = self._noted.get(key)
        if noted_ms is not None and 0 <= now_ms - noted_ms < limits.CREDENTIAL_USED_MS:
            return
        self._noted[key] = now_ms
        self._writes.put((key, now_ms))

    async def flush(self) -> None:
        """Write the pending times."""
        await self._writes.finish()

    async def close(self) -> None:
        """Write the pending times, and stop."""
        await self.flush()

    async def _write_all(self, uses: Sequence[tuple[K, int]]) -> None:
        try:
            await self._write(dict(uses))
        except MillstreamError as error:
            facts = {"count": len(uses), "reason": error.detail}
            logger.info("last_used_write_failed", extra=facts)
