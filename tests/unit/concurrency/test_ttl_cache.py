"""TTL cache: age, shared loads, and errors."""

import asyncio

import pytest

from storage.concurrency.ttl_cache import TtlCache
from storage.domain.clock import ManualClock
from storage.domain.errors import StorageUnavailable


class Source:
    """Count loads."""

    def __init__(self) -> None:
        self.loads = 0
        self.error: Exception | None = None

    async def read(self) -> int:
        self.loads += 1
        number = self.loads
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return number


async def test_result_is_loaded_again_after_its_age():
    clock, source = ManualClock(), Source()
    cache = TtlCache[int](1_000, clock)
    assert await cache.get("a", source.read) == 1

    clock.advance(999)
    assert await cache.get("a", source.read) == 1
    clock.advance(1)
    assert await cache.get("a", source.read) == 2


async def test_result_is_loaded_again_when_clock_was_set_back():
    clock, source = ManualClock(), Source()
    cache = TtlCache[int](1_000, clock)
    await cache.get("a", source.read)

    clock.advance(-10)

    assert await cache.get("a", source.read) == 2


async def test_concurrent_callers_share_load():
    clock, source = ManualClock(), Source()
    cache = TtlCache[int](1_000, clock)

    assert await asyncio.gather(*(cache.get("a", source.read) for _ in range(3))) == [1, 1, 1]


async def test_error_is_not_cached():
    clock, source = ManualClock(), Source()
    cache = TtlCache[int](1_000, clock)
    source.error = StorageUnavailable()
    with pytest.raises(StorageUnavailable):
        await cache.get("a", source.read)

    source.error = None

    assert await cache.get("a", source.read) == 2
