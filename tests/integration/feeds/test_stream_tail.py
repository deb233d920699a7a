"""Reading all shards through feeds: in order, children after parents, without loss."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from consumers.feeds.blocks import Chunk, Format
from consumers.feeds.feed import Feeds
from consumers.feeds.stream_tail import TO_ITS_END, Tail
from storage.domain.errors import ShardNotFound, StorageUnavailable, StreamNotFound
from storage.domain.limits import CLOSED_SHARD_MS_MIN
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId, QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
KEYS = [f"key {number}" for number in range(20)]
HALF = RING_SIZE // 2
LONG_MS = 10_000
DAY_MS = 86_400_000


class Flaky:
    """A catalog that fails a given number of times."""

    def __init__(self, catalog) -> None:
        self._catalog = catalog
        self.failures = 0

    async def stream(self, name: StreamName, stream_id: LogId | None = None):
        return await self._catalog.stream(name, stream_id)

    async def fresh_stream(self, name: StreamName, stream_id: LogId | None = None):
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable
        return await self._catalog.fresh_stream(name, stream_id)


@pytest.fixture
async def catalog(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=2, retention_ms=DAY_MS))
    return Flaky(engines.catalog)


@pytest.fixture
async def feeds(engines, catalog):
    opened = Feeds(engines.record_reader, {"": Format(lambda _, at: at.record.data)})
    yield opened
    await opened.close()


async def append(engines, word: str) -> None:
    await engines.streams.append(CLICKS, [Record(word.encode(), key) for key in KEYS])


async def turns() -> None:
    """Yield to the event loop until all readers wait."""
    for _ in range(20):
        await asyncio.sleep(0)


class Reader:
    """Collects the records of each key in order, and gaps and ends."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self.by_key: dict[str, list[bytes]] = defaultdict(list)
        self.places: list[tuple[int, int]] = []
        self.gaps: list[tuple[int, int, int]] = []
        self.ended: list[int] = []

    async def read(self, records: int) -> None:
        """Read so many records more, or to the end, requesting each chunk twice."""
        wanted = len(self.places) + records
        async with asyncio.timeout(PATIENCE_S):
            while len(self.places) < wanted and not self._tail.is_over:
                chunk = await self._tail.next(LONG_MS)
                if chunk is not None:
                    await self._take(chunk.within(wanted - len(self.places)))

    async def _take(self, chunk: Chunk) -> None:
        for at in chunk.records:
            self.by_key[at.record.key].append(at.record.data)
            self.places.append((chunk.shard, at.offset))
        if chunk.gap is not None:
            self.gaps.append((chunk.shard, chunk.gap.first, chunk.gap.next))
        if chunk.ended:
            self.ended.append(chunk.shard)
        await self._tail.take(chunk)


async def tail_of(
    feeds: Feeds, catalog: Flaky, positions: Mapping[int, int], **options: Any
) -> Tail:
    """Return a tail of the stream that exists now."""
    stream_id = (await catalog.stream(CLICKS)).stream_id
    return Tail(feeds, catalog, CLICKS, positions, stream_id=stream_id, **options)  # type: ignore[arg-type]


async def test_every_shard_is_read_in_order(engines, feeds, catalog):
    async with await tail_of(feeds, catalog, {0: 0, 1: 0}) as tail:
        reader = Reader(tail)
        await append(engines, "one")
        await reader.read(20)
        await append(engines, "two")
        await reader.read(20)

        assert sum(tail.positions.values()) == 40

    assert all(told == [b"one", b"two"] for told in reader.by_key.values())
    assert len(set(reader.places)) == 40
    assert feeds.count == 0


async def test_unconsumed_chunk_is_returned_again(engines, feeds, catalog):
    await append(engines, "one")
    async with await tail_of(feeds, catalog, {0: 0, 1: 0}) as tail:
        seen = [await tail.next(LONG_MS) for _ in range(4)]

        assert all(chunk is not None and chunk.first == 0 for chunk in seen)
        reader = Reader(tail)
        await reader.read(20)
    assert len(set(reader.places)) == 20


async def test_child_is_read_after_all_of_its_parents(engines, feeds, catalog):
    await append(engines, "one")
    async with await tail_of(feeds, catalog, {0: 0, 1: 0}) as tail:
        reader = Reader(tail)
        await reader.read(5)
        await engines.streams.resharder.merge(CLICKS, 0, 1)
        await append(engines, "two")
        await engines.streams.resharder.split(CLICKS, 2, HALF)
        await append(engines, "three")
        await reader.read(55)

        assert tail.positions.keys() == {3, 4}
    assert all(told == [b"one", b"two", b"three"] for told in reader.by_key.values())
    assert sorted(reader.ended) == [0, 1, 2]
    assert reader.ended[2] == 2


async def test_read_resumes_while_child_waits_for_other_parent(engines, feeds, catalog):
    await append(engines, "one")
    states = await engines.record_reader.shards(CLICKS)
    await engines.streams.resharder.merge(CLICKS, 0, 1)
    await append(engines, "two")

    async with await tail_of(feeds, catalog, {0: FULLY_READ, 1: 0}) as tail:
        reader = Reader(tail)
        await reader.read(states[1].next + 20)

    assert [shard for shard, _ in reader.places] == [1] * states[1].next + [2] * 20


async def test_children_are_found_after_catalog_outage(engines, feeds, catalog):
    """No record is lost when the children cannot be looked up."""
    await append(engines, "one")
    await engines.streams.resharder.merge(CLICKS, 0, 1)
    await append(engines, "two")
    async with await tail_of(feeds, catalog, {0: 0, 1: 0}) as tail:
        reader, failed = Reader(tail), 0
        catalog.failures = 3
        while len(reader.places) < 40:
            try:
                await reader.read(40 - len(reader.places))
            except StorageUnavailable:
                failed += 1

    assert failed == 3
    assert all(told == [b"one", b"two"] for told in reader.by_key.values())
    assert len(set(reader.places)) == 40


async def test_shard_expired_unread_is_reported_as_gap(engines, feeds, catalog, clock):
    await append(engines, "one")
    await engines.streams.resharder.merge(CLICKS, 0, 1)
    clock.advance(ms=CLOSED_SHARD_MS_MIN + 2 * DAY_MS)
    while await engines.streams.trim(CLICKS, 10_000):
        pass
    assert await engines.streams.expire_shards(CLICKS) == 2
    await append(engines, "two")

    async with await tail_of(feeds, catalog, {0: 3, 1: 4}) as tail:
        reader = Reader(tail)
        await reader.read(20)

    assert sorted(reader.gaps) == [(0, 3, 3), (1, 4, 4)]
    assert {shard for shard, _ in reader.places} == {2}


async def test_shard_expiring_while_read_is_reported_as_gap(engines, feeds, catalog, clock):
    await append(engines, "one")
    async with await tail_of(feeds, catalog, {0: 2, 1: 2}) as tail:
        await engines.streams.resharder.merge(CLICKS, 0, 1)
        clock.advance(ms=CLOSED_SHARD_MS_MIN + 2 * DAY_MS)
        while await engines.streams.trim(CLICKS, 10_000):
            pass
        await engines.streams.expire_shards(CLICKS)
        await append(engines, "two")
        reader = Reader(tail)
        await reader.read(20)

    assert sorted(reader.gaps) == [(0, 2, 2), (1, 2, 2)]
    assert {shard for shard, _ in reader.places} == {2}


async def test_single_shard_read_ends_at_end_of_shard(engines, feeds, catalog):
    await append(engines, "one")
    await engines.streams.resharder.merge(CLICKS, 0, 1)
    async with await tail_of(feeds, catalog, {1: 0}, alone=True) as tail:
        reader = Reader(tail)
        await reader.read(100)

        assert tail.is_over
        assert tail.has_ended
    assert {shard for shard, _ in reader.places} == {1}


async def test_unknown_single_shard_is_rejected(feeds, catalog):
    async with await tail_of(feeds, catalog, {9: 0}, alone=True) as tail:
        with pytest.raises(ShardNotFound):
            await tail.next(LONG_MS)


async def test_deletion_of_stream_ends_waiting_read(engines, feeds, catalog):
    async with await tail_of(feeds, catalog, {0: 0, 1: 0}) as tail:
        waiting = asyncio.create_task(tail.next(LONG_MS))
        await turns()
        await engines.catalog.delete_stream(CLICKS)

        with pytest.raises(StreamNotFound):
            await asyncio.wait_for(waiting, PATIENCE_S)


async def test_read_stops_at_end_offsets(engines, feeds, catalog):
    await append(engines, "one")
    await engines.streams.resharder.split(CLICKS, 0, HALF // 2)
    await append(engines, "two")
    states = await engines.record_reader.shards(CLICKS)
    until = {
        state.shard.index: state.next if state.shard.is_open else TO_ITS_END for state in states
    }
    await append(engines, "three")
    await engines.streams.resharder.merge(CLICKS, 2, 3)

    async with await tail_of(feeds, catalog, {0: 0, 1: 0}, until=until) as tail:
        reader = Reader(tail)
        await reader.read(1_000)
        positions = tail.positions

    assert all(told == [b"one", b"two"] for told in reader.by_key.values())
    assert positions == {index: until[index] for index in (1, 2, 3)}


async def test_read_of_empty_stream_ends_immediately(feeds, catalog):
    async with await tail_of(feeds, catalog, {0: 0, 1: 0}, until={0: 0, 1: 0}) as tail:
        assert tail.is_over


@pytest.mark.parametrize("positions", [{0: 0}, {0: 0, 1: 0}], ids=["one shard", "two"])
async def test_drain_ends_waiting_read(feeds, catalog, positions):
    async with await tail_of(feeds, catalog, positions, alone=len(positions) == 1) as tail:
        waiting = asyncio.create_task(tail.next(LONG_MS))
        await turns()

        feeds.drain()

        async with asyncio.timeout(PATIENCE_S):
            assert await waiting is None


async def test_drain_does_not_end_plain_feed_read(engines, feeds, catalog):
    async with feeds.of(CLICKS, 0, (await catalog.stream(CLICKS)).stream_id) as feed:
        waiting = asyncio.create_task(feed.at(0, LONG_MS))
        await turns()

        feeds.drain()
        await engines.streams.append_to_shard(CLICKS, 0, [Record(b"x")])

        assert len(await waiting) == 1


async def test_view_is_followed_into_partitions_that_are_added(engines):
    """They have no parents that end: the reader looks whether the queue has more."""
    work = QueueName("work")
    await engines.catalog.put_queue(work, QueueSpec(stream_view=True, partitions=2))
    view = await engines.catalog.stream(StreamName("work"))
    feeds = Feeds(engines.record_reader, {"": Format(lambda _, at: at.record.data)})
    positions = {0: 0, 1: 0}
    seen: set[tuple[int, bytes]] = set()
    async with Tail(feeds, engines.catalog, view.name, positions, stream_id=view.stream_id) as tail:
        for count in (2, 5):
            await engines.catalog.change_queue(work, lambda spec: replace(spec, partitions=count))  # noqa: B023
            for nth in range(10):
                await engines.queues.send(work, [NewMessage(b"%d of %d" % (nth, count))])
            async with asyncio.timeout(PATIENCE_S):
                while len(seen) < (10 if count == 2 else 20):
                    chunk = await tail.next(1_000)
                    if chunk is not None:
                        seen.update((chunk.shard, one.record.data) for one in chunk.records)
                        await tail.take(chunk)
    await feeds.close()

    assert {shard for shard, _ in seen} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("later", range(4))
async def test_tail_that_is_cancelled_again_leaves_no_read(feeds, catalog, later):
    """The reads of other shards went on for ever, and their errors were logged as never retrieved."""

    async def read() -> None:
        async with await tail_of(feeds, catalog, {}) as tail:
            await tail.next(LONG_MS)

    reader = asyncio.create_task(read())
    async with asyncio.timeout(PATIENCE_S):
        while feeds.count < 2:  # noqa: ASYNC110 - the tail has no event for it
            await asyncio.sleep(0.01)
    await turns()
    reader.cancel()
    for _ in range(later):
        await asyncio.sleep(0)
    reader.cancel()
    await asyncio.wait([reader])
    await turns()

    assert feeds.count == 0
    assert not [task for task in map(str, asyncio.all_tasks()) if "Tail." in task]
