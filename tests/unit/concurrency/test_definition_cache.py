"""The cache of definitions: single-flight loads and invalidation."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import pytest

from storage.concurrency.definition_cache import DefinitionCache
from storage.concurrency.tasks import in_background
from storage.domain import limits
from storage.domain.clock import ManualClock
from storage.domain.errors import QueueNotFound, StorageUnavailable
from storage.domain.limits import CATALOG_WITNESS_MS, DEFINITION_AGE_MS_MAX
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue, QueueSpec

ORDERS = QueueName("orders")
INVOICES = QueueName("invoices")


class Source:
    """Definitions whose version counts the reads; reads block while paused."""

    def __init__(self) -> None:
        self.reads = 0
        self.hears_changes = True
        self.missing = False
        self.failure: Exception | None = None
        self.names: list[QueueName] = []
        self.going = asyncio.Event()
        self.going.set()

    async def read(self, name: QueueName) -> Queue:
        self.reads += 1
        version = self.reads
        await self.going.wait()
        if self.failure is not None:
            raise self.failure
        if self.missing:
            raise QueueNotFound
        return Queue(
            name=name,
            log_id="0" * 16,
            spec=QueueSpec(),
            version=version,
            created_at_ms=0,
            changed_at_ms=0,
        )

    async def read_all(self) -> AsyncIterator[tuple[QueueName, Queue]]:
        for name in self.names:
            yield name, await self.read(name)

    def pause(self) -> None:
        self.going.clear()

    def resume(self) -> None:
        self.going.set()


async def started(reading: Coroutine[None, None, Queue]) -> asyncio.Task[Queue]:
    """Start a task for the read, and let it run as far as possible."""
    task = asyncio.create_task(reading)
    for _ in range(3):
        await asyncio.sleep(0)
    return task


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cache(source: Source, clock: ManualClock) -> DefinitionCache[QueueName, Queue]:
    return DefinitionCache(source.read, lambda: source.hears_changes, clock, entries_max=2)


async def test_definition_is_read_once(cache, source):
    await cache.get(ORDERS)
    await cache.get(ORDERS)

    assert source.reads == 1


async def test_dropped_definition_is_read_again(cache, source):
    await cache.get(ORDERS)

    cache.invalidate(ORDERS)

    assert (await cache.get(ORDERS)).version == 2


async def test_expired_definition_is_read_again(cache, clock):
    await cache.get(ORDERS)

    clock.advance(ms=DEFINITION_AGE_MS_MAX - 1)
    assert (await cache.get(ORDERS)).version == 1

    clock.advance(ms=1)
    assert (await cache.get(ORDERS)).version == 2


async def test_unchanged_definition_stays_the_same_object(cache, source, clock):
    cached = await cache.get(ORDERS)
    clock.advance(ms=DEFINITION_AGE_MS_MAX)
    source.reads = 0

    assert await cache.get(ORDERS) is cached
    assert (await cache.fresh(ORDERS)).version == 2


async def test_clock_set_back_expires_definitions(cache, clock):
    await cache.get(ORDERS)

    clock.advance(ms=-1)

    assert (await cache.get(ORDERS)).version == 2


async def _invalidate(cache: DefinitionCache[QueueName, Queue]) -> None:
    cache.invalidate(ORDERS)


async def _invalidate_all(cache: DefinitionCache[QueueName, Queue]) -> None:
    cache.invalidate_all()


async def _read_anew(cache: DefinitionCache[QueueName, Queue]) -> None:
    await cache.fresh(ORDERS)


async def _need_room(cache: DefinitionCache[QueueName, Queue]) -> None:
    for other in (INVOICES, QueueName("parcels")):
        await cache.get(other)


@pytest.mark.parametrize("forget", [_invalidate, _invalidate_all, _read_anew, _need_room])
async def test_held_entry_is_marked_expired_when_replaced(cache, clock, forget):
    await cache.get(ORDERS)
    entry = cache.entry(ORDERS)
    good = entry.read_at_ms <= clock.now_ms() < entry.until_ms

    await forget(cache)

    assert good
    assert not clock.now_ms() < entry.until_ms


async def test_entry_expires_at_its_maximum_age(cache, clock):
    await cache.get(ORDERS)

    entry = cache.entry(ORDERS)

    assert entry.until_ms == clock.now_ms() + DEFINITION_AGE_MS_MAX


async def test_concurrent_misses_share_one_read(cache, source):
    source.pause()
    readers = [await started(cache.get(ORDERS)) for _ in range(10)]

    source.resume()
    results = await asyncio.gather(*readers)

    assert {queue.version for queue in results} == {1}


async def test_cancelled_reader_does_not_cancel_shared_read(cache, source):
    source.pause()
    impatient, patient = [await started(cache.get(ORDERS)) for _ in range(2)]

    impatient.cancel()
    await asyncio.sleep(0)
    source.resume()

    assert (await patient).version == 1
    assert source.reads == 1


async def test_definition_changed_during_read_is_not_cached(cache, source):
    source.pause()
    early = await started(cache.get(ORDERS))

    cache.invalidate(ORDERS)
    source.resume()
    await early

    assert (await cache.get(ORDERS)).version == 2


async def test_reader_after_change_does_not_join_earlier_read(cache, source):
    source.pause()
    early = await started(cache.get(ORDERS))

    cache.invalidate(ORDERS)
    late = await started(cache.get(ORDERS))
    source.resume()

    assert (await early).version == 1
    assert (await late).version == 2
    assert (await cache.get(ORDERS)).version == 2


async def test_nothing_is_cached_while_changes_are_not_received(cache, source):
    source.hears_changes = False
    await cache.get(ORDERS)
    await cache.get(ORDERS)

    assert source.reads == 2


async def test_read_started_before_subscription_is_not_cached(cache, source):
    source.hears_changes = False
    source.pause()
    early = await started(cache.get(ORDERS))

    source.hears_changes = True
    source.resume()
    await early

    assert (await cache.get(ORDERS)).version == 2


async def test_read_overlapping_invalidation_is_not_cached(cache, source):
    source.pause()
    early = await started(cache.get(ORDERS))

    cache.invalidate_all()
    source.resume()
    await early

    assert (await cache.get(ORDERS)).version == 2


async def test_fresh_bypasses_cached_definition(cache):
    await cache.get(ORDERS)

    assert (await cache.fresh(ORDERS)).version == 2
    assert (await cache.get(ORDERS)).version == 2


async def test_concurrent_fresh_reads_share_one_later_read(cache, source):
    source.pause()
    early = await started(cache.get(ORDERS))
    fresh = [await started(cache.fresh(ORDERS)) for _ in range(10)]

    source.resume()
    results = await asyncio.gather(early, *fresh)

    assert [queue.version for queue in results] == [1] + [2] * 10


async def test_missing_definition_is_not_cached(cache, source):
    source.missing = True
    with pytest.raises(QueueNotFound):
        await cache.get(ORDERS)

    source.missing = False

    assert (await cache.get(ORDERS)).version == 2


async def test_cache_size_is_limited(cache, source):
    for name in (ORDERS, INVOICES, QueueName("third")):
        await cache.get(name)

    await cache.get(INVOICES)
    assert source.reads == 3

    await cache.get(ORDERS)
    assert source.reads == 4


async def test_closing_cancels_pending_reads(cache, source):
    source.pause()
    reader = await started(cache.get(ORDERS))

    await cache.close()

    with pytest.raises(asyncio.CancelledError):
        await reader


# ── Outages ──


@pytest.fixture
def vouched(source: Source, clock: ManualClock) -> DefinitionCache[QueueName, Queue]:
    """A cache for which nothing has changed while announcements cannot arrive."""
    return DefinitionCache(
        source.read,
        lambda: source.hears_changes,
        clock,
        entries_max=2,
        is_vouched=lambda: not source.hears_changes,
    )


async def test_expired_definition_stays_in_use_while_vouched(vouched, source, clock):
    known = await vouched.get(ORDERS)
    source.hears_changes = False
    clock.advance(ms=10 * DEFINITION_AGE_MS_MAX)

    assert vouched.get_cached(ORDERS) is known
    entry = vouched.entry(ORDERS)
    assert entry.value_at(clock.now_ms()) is known
    assert entry.value_at(clock.now_ms() + CATALOG_WITNESS_MS) is None
    assert source.reads == 1


async def test_vouched_definition_is_gone_once_invalidated(vouched, source, clock):
    await vouched.get(ORDERS)
    source.hears_changes = False

    vouched.invalidate_all()

    assert vouched.get_cached(ORDERS) is None


async def test_expired_definition_is_returned_when_read_is_refused(cache, source, clock):
    known = await cache.get(ORDERS)
    clock.advance(ms=DEFINITION_AGE_MS_MAX)
    source.failure = StorageUnavailable()

    assert await cache.get(ORDERS) is known
    cache.invalidate(ORDERS)
    with pytest.raises(StorageUnavailable):
        await cache.get(ORDERS)


async def test_refused_read_raises_when_announcements_may_be_missed(cache, source, clock):
    await cache.get(ORDERS)
    clock.advance(ms=DEFINITION_AGE_MS_MAX)
    source.failure, source.hears_changes = StorageUnavailable(), False

    with pytest.raises(StorageUnavailable):
        await cache.get(ORDERS)


# ── Warming ──


async def steps() -> None:
    """Let background work run as far as possible."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def no_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have changes read at once."""
    monkeypatch.setattr(limits, "CACHE_WARM_LINGER_MS", 0)


@asynccontextmanager
async def kept_warm(
    cache: DefinitionCache[QueueName, Queue], source: Source
) -> AsyncIterator[None]:
    async with in_background(cache.keep_warm(source.read_all), "warm"):
        await steps()
        yield


async def test_warm_cache_has_every_definition(cache, source):
    source.names = [ORDERS, INVOICES]
    async with kept_warm(cache, source):
        assert cache.get_cached(ORDERS) is not None
        assert cache.get_cached(INVOICES) is not None
        assert source.reads == 2


async def test_warm_cache_leaves_out_what_exceeds_it(cache, source):
    source.names = [ORDERS, INVOICES, QueueName("parcels")]
    async with kept_warm(cache, source):
        assert cache.get_cached(ORDERS) is not None
        assert cache.get_cached(QueueName("parcels")) is None


async def test_warm_cache_reads_changed_definition_again(cache, source):
    source.names = [ORDERS]
    async with kept_warm(cache, source):
        cache.invalidate(ORDERS)
        await steps()

        assert cache.get_cached(ORDERS).version == 2


async def test_warm_cache_reads_new_definition(cache, source):
    async with kept_warm(cache, source):
        cache.note_new(ORDERS)
        await steps()

        assert cache.get_cached(ORDERS) is not None


async def test_warm_cache_drops_definition_that_changed_while_all_were_read(cache, source):
    source.names = [ORDERS]
    source.pause()
    async with kept_warm(cache, source):
        cache.invalidate(ORDERS)
        source.resume()
        await steps()

        assert cache.get_cached(ORDERS).version == 2


async def test_warm_cache_reads_all_again_when_announcements_were_missed(cache, source):
    source.names = [ORDERS, INVOICES]
    async with kept_warm(cache, source):
        cache.invalidate_all()
        await steps()

        assert cache.get_cached(ORDERS).version > 2


async def test_warm_cache_reads_nothing_while_announcements_are_missed(cache, source):
    source.names, source.hears_changes = [ORDERS], False
    async with kept_warm(cache, source):
        assert source.reads == 0
