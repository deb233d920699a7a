"""The cache of definitions: one read at a time for each name, and nothing old is kept."""

import asyncio
from collections.abc import Coroutine

import pytest

from storage.concurrency.definition_cache import DefinitionCache
from storage.domain.clock import ManualClock
from storage.domain.errors import QueueNotFound
from storage.domain.limits import DEFINITION_AGE_MS_MAX
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue, QueueSpec

ORDERS = QueueName("orders")
INVOICES = QueueName("invoices")


class Source:
    """Definitions whose version counts the reads; a read waits while `paused`."""

    def __init__(self) -> None:
        self.reads = 0
        self.hears_changes = True
        self.missing = False
        self.going = asyncio.Event()
        self.going.set()

    async def read(self, name: QueueName) -> Queue:
        self.reads += 1
        version = self.reads
        await self.going.wait()
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

    def pause(self) -> None:
        self.going.clear()

    def resume(self) -> None:
        self.going.set()


async def begun(reading: Coroutine[None, None, Queue]) -> asyncio.Task[Queue]:
    """A task for the reading, which has got as far as it can."""
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
    return DefinitionCache(source.read, lambda: source.hears_changes, clock, kept_max=2)


async def test_a_definition_is_read_once(cache, source):
    await cache.get(ORDERS)
    await cache.get(ORDERS)

    assert source.reads == 1


async def test_a_dropped_definition_is_read_again(cache, source):
    await cache.get(ORDERS)

    cache.drop(ORDERS)

    assert (await cache.get(ORDERS)).version == 2


async def test_a_definition_is_read_again_when_it_is_old(cache, clock):
    await cache.get(ORDERS)

    clock.advance(ms=DEFINITION_AGE_MS_MAX - 1)
    assert (await cache.get(ORDERS)).version == 1

    clock.advance(ms=1)
    assert (await cache.get(ORDERS)).version == 2


async def test_a_clock_that_is_set_back_makes_every_definition_old(cache, clock):
    await cache.get(ORDERS)

    clock.advance(ms=-1)

    assert (await cache.get(ORDERS)).version == 2


async def _drop(cache: DefinitionCache[QueueName, Queue]) -> None:
    cache.drop(ORDERS)


async def _drop_all(cache: DefinitionCache[QueueName, Queue]) -> None:
    cache.drop_all()


async def _read_anew(cache: DefinitionCache[QueueName, Queue]) -> None:
    await cache.fresh(ORDERS)


async def _need_room(cache: DefinitionCache[QueueName, Queue]) -> None:
    for other in (INVOICES, QueueName("parcels")):
        await cache.get(other)


@pytest.mark.parametrize("forget", [_drop, _drop_all, _read_anew, _need_room])
async def test_who_holds_what_is_kept_sees_that_it_ended(cache, clock, forget):
    await cache.get(ORDERS)
    held = cache.kept(ORDERS)
    good = held.read_at_ms <= clock.now_ms() < held.until_ms

    await forget(cache)

    assert good
    assert not clock.now_ms() < held.until_ms


async def test_what_is_kept_ends_with_its_age(cache, clock):
    await cache.get(ORDERS)

    held = cache.kept(ORDERS)

    assert held.until_ms == clock.now_ms() + DEFINITION_AGE_MS_MAX


async def test_those_who_miss_together_share_one_read(cache, source):
    source.pause()
    readers = [await begun(cache.get(ORDERS)) for _ in range(10)]

    source.resume()
    found = await asyncio.gather(*readers)

    assert {queue.version for queue in found} == {1}


async def test_a_reader_that_gives_up_does_not_end_the_read_of_the_others(cache, source):
    source.pause()
    impatient, patient = [await begun(cache.get(ORDERS)) for _ in range(2)]

    impatient.cancel()
    await asyncio.sleep(0)
    source.resume()

    assert (await patient).version == 1
    assert source.reads == 1


async def test_a_definition_that_changes_while_it_is_read_is_not_kept(cache, source):
    source.pause()
    early = await begun(cache.get(ORDERS))

    cache.drop(ORDERS)
    source.resume()
    await early

    assert (await cache.get(ORDERS)).version == 2


async def test_a_reader_that_comes_after_a_change_does_not_join_an_earlier_read(cache, source):
    source.pause()
    early = await begun(cache.get(ORDERS))

    cache.drop(ORDERS)
    late = await begun(cache.get(ORDERS))
    source.resume()

    assert (await early).version == 1
    assert (await late).version == 2
    assert (await cache.get(ORDERS)).version == 2


async def test_nothing_is_kept_while_changes_are_not_heard(cache, source):
    source.hears_changes = False
    await cache.get(ORDERS)
    await cache.get(ORDERS)

    assert source.reads == 2


async def test_a_read_that_began_before_changes_were_heard_is_not_kept(cache, source):
    source.hears_changes = False
    source.pause()
    early = await begun(cache.get(ORDERS))

    source.hears_changes = True
    source.resume()
    await early

    assert (await cache.get(ORDERS)).version == 2


async def test_a_read_during_which_everything_was_dropped_is_not_kept(cache, source):
    source.pause()
    early = await begun(cache.get(ORDERS))

    cache.drop_all()
    source.resume()
    await early

    assert (await cache.get(ORDERS)).version == 2


async def test_a_fresh_definition_is_read_though_one_is_kept(cache):
    await cache.get(ORDERS)

    assert (await cache.fresh(ORDERS)).version == 2
    assert (await cache.get(ORDERS)).version == 2


async def test_fresh_definitions_asked_for_together_take_one_read_that_began_later(cache, source):
    source.pause()
    early = await begun(cache.get(ORDERS))
    fresh = [await begun(cache.fresh(ORDERS)) for _ in range(10)]

    source.resume()
    found = await asyncio.gather(early, *fresh)

    assert [queue.version for queue in found] == [1] + [2] * 10


async def test_what_is_not_there_is_asked_for_again(cache, source):
    source.missing = True
    with pytest.raises(QueueNotFound):
        await cache.get(ORDERS)

    source.missing = False

    assert (await cache.get(ORDERS)).version == 2


async def test_no_more_are_kept_than_the_limit(cache, source):
    for name in (ORDERS, INVOICES, QueueName("third")):
        await cache.get(name)

    await cache.get(INVOICES)
    assert source.reads == 3

    await cache.get(ORDERS)
    assert source.reads == 4


async def test_closing_ends_the_reads_under_way(cache, source):
    source.pause()
    reader = await begun(cache.get(ORDERS))

    await cache.close()

    with pytest.raises(asyncio.CancelledError):
        await reader
