"""Feeds: all readers of a shard in a process share its reads and encoded records."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from consumers.feeds.blocks import Chunk, Format
from consumers.feeds.feed import Feed, Feeds
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import (
    OffsetOutOfRange,
    ShardNotFound,
    StorageUnavailable,
    StreamNotFound,
)
from storage.domain.limits import MIB
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import RING_SIZE, Gap, GapReason, LogRecord, StreamSpec
from tests.archive_steps import archive_stream
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
LONG_MS = 10_000
NOTHING_HOT = StreamSpec(hot_retention_ms=0)


class CountingReader:
    """Reader of streams that counts its reads."""

    def __init__(self, reader) -> None:
        self._reader = reader
        self.reads = 0
        self.reads_of: Counter[StreamName] = Counter()
        self.reading = asyncio.Event()
        self.idle = asyncio.Event()
        self.failure: Exception | None = None

    async def read_shard(self, name, *asked, **how):
        self.reads += 1
        self.reads_of[name] += 1
        self.reading.set()
        self.idle.clear()
        try:
            if self.failure is not None:
                raise self.failure
            return await self._reader.read_shard(name, *asked, **how)
        finally:
            self.reading.clear()
            self.idle.set()


class CountingFormat:
    """A format that counts encoded records."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, shard: int, at: LogRecord) -> bytes:
        self.count += 1
        return b"%d/%d=%b" % (shard, at.offset, at.record.data)


@pytest.fixture
async def reader(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    return CountingReader(engines.record_reader)


@pytest.fixture
def words() -> CountingFormat:
    return CountingFormat()


@pytest.fixture
async def feeds(engines, reader, words):
    opened = Feeds(reader, {"words": Format(words, b" ")})
    yield opened
    await opened.close()


@asynccontextmanager
async def reading(feeds, engines, name: StreamName, shard: int) -> AsyncIterator[Feed]:
    """Open the feed of a shard of the stream that has the name now."""
    stream = await engines.catalog.stream(name)
    async with feeds.of(name, shard, stream.stream_id) as feed:
        yield feed


async def append(engines, count: int, data: bytes = b"", name: StreamName = CLICKS, shard: int = 0):
    return await engines.streams.append_to_shard(
        name, shard, [Record(data or b"%d" % number) for number in range(count)]
    )


def offsets(chunk: Chunk) -> list[int]:
    return [at.offset for at in chunk.records]


# Sharing


async def test_readers_waiting_at_tip_share_one_read_and_encoding(engines, feeds, reader, words):
    async with AsyncExitStack() as stack:
        some = [
            await stack.enter_async_context(reading(feeds, engines, CLICKS, 0)) for _ in range(100)
        ]
        waiting = [asyncio.create_task(feed.at(0, LONG_MS)) for feed in some]
        await reader.reading.wait()

        await append(engines, 3)
        chunks = await asyncio.gather(*waiting)
        told = [chunk.joined("words") for chunk in chunks]

    assert len({id(feed) for feed in some}) == 1
    assert [offsets(chunk) for chunk in chunks] == [[0, 1, 2]] * 100
    assert told == [b"0/0=0 0/1=1 0/2=2"] * 100
    assert len({id(answer) for answer in told}) == 1, "joined once for everybody"
    assert reader.reads == 1
    assert words.count == 3


async def test_history_is_read_once_for_successive_readers(engines, feeds, reader):
    await append(engines, 5)
    async with reading(feeds, engines, CLICKS, 0) as feed:
        first = await feed.at(0, LONG_MS)
        second = await feed.at(0, LONG_MS)

    assert offsets(first) == offsets(second) == [0, 1, 2, 3, 4]
    assert reader.reads == 1


async def test_reader_at_later_offset_gets_part_of_cached_block(engines, feeds, reader, words):
    await append(engines, 5)
    async with reading(feeds, engines, CLICKS, 0) as feed:
        await feed.at(0)
        part = await feed.at(3)

        assert offsets(part) == [3, 4]
        assert (part.first, part.next_offset, part.tip) == (3, 5, 5)
        assert part.encoded("words") == [b"0/3=3", b"0/4=4"]
        assert part.joined("words") == b"0/3=3 0/4=4"
    assert reader.reads == 1
    assert words.count == 2, "nobody asked for the others"


async def test_only_selected_records_are_encoded(engines, feeds, words):
    await append(engines, 5)
    async with reading(feeds, engines, CLICKS, 0) as feed:
        chunk = await feed.at(1)

        assert chunk.joined("words", [0, 2]) == b"0/1=1 0/3=3"
        assert chunk.encoded("words", [2, 3]) == [b"0/3=3", b"0/4=4"]
    assert words.count == 3


@pytest.mark.parametrize(
    ("records_max", "bytes_max", "taken"),
    [(2, 1_000, [0, 1]), (9, 20, [0, 1]), (9, 21, [0, 1, 2]), (0, 99, []), (9, 0, [])],
)
async def test_reader_gets_no_more_than_its_credit(engines, feeds, records_max, bytes_max, taken):
    await append(engines, 5, b"ten bytes!")
    async with reading(feeds, engines, CLICKS, 0) as feed:
        chunk = (await feed.at(0)).select(None, records_max, bytes_max).part

        assert offsets(chunk) == taken
        assert chunk.next_offset == len(taken)
        rest = await feed.at(chunk.next_offset)
        assert offsets(chunk) + offsets(rest) == [0, 1, 2, 3, 4]


async def test_reader_stops_before_offset(engines, feeds):
    await append(engines, 5)
    async with reading(feeds, engines, CLICKS, 0) as feed:
        await feed.at(0)
        chunk = await feed.at(2)

    assert offsets(chunk.before(4)) == [2, 3]
    assert offsets(chunk.before(2)) == []
    assert offsets(chunk.before(1)) == []
    assert offsets(chunk.before(9)) == [2, 3, 4]
    assert (chunk.data_bytes, chunk.before(4).data_bytes) == (3, 2)


async def test_read_is_bounded(engines, feeds):
    for _ in range(3):
        await append(engines, 500, b"x" * 100)

    async with reading(feeds, engines, CLICKS, 0) as feed:
        chunk = await feed.at(0)

    assert len(chunk) == limits.FEED_READ_RECORDS
    assert chunk.next_offset == limits.FEED_READ_RECORDS
    assert chunk.tip == 1_500


async def test_behind_ms_counts_from_last_record_of_each_part(engines, feeds, clock):
    await append(engines, 1)
    clock.advance(ms=1_000)
    await append(engines, 1)

    async with reading(feeds, engines, CLICKS, 0) as feed:
        whole = await feed.at(0)

        assert whole.behind_ms == 0
        assert whole.within(1).behind_ms == 1_000


# Waiting and cancellation


async def test_each_reader_has_its_own_timeout(engines, feeds, reader):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        patient = asyncio.create_task(feed.at(0, LONG_MS))
        soon = await feed.at(0, 20)

        assert soon.is_empty
        assert (soon.first, soon.next_offset) == (0, 0)
        await append(engines, 1)
        assert offsets(await patient) == [0]
    assert reader.reads == 1


async def test_read_at_tip_without_wait_returns_immediately(engines, feeds):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        chunk = await feed.at(0)

    assert chunk.is_empty
    assert chunk.tip == 0


async def test_cancelled_reader_does_not_end_shared_read(engines, feeds, reader):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        first, second = (asyncio.create_task(feed.at(0, LONG_MS)) for _ in range(2))
        await reader.reading.wait()

        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await append(engines, 1)

        assert offsets(await second) == [0]
    assert reader.reads == 1


async def test_last_cancelled_reader_ends_read(engines, feeds, reader):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        only = asyncio.create_task(feed.at(0, LONG_MS))
        await reader.reading.wait()

        only.cancel()
        await asyncio.gather(only, return_exceptions=True)

        await asyncio.wait_for(reader.idle.wait(), PATIENCE_S)


async def test_reader_joining_as_last_one_leaves_starts_new_read(engines, feeds, reader):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        leaving = asyncio.create_task(feed.at(0, LONG_MS))
        await reader.reading.wait()
        leaving.cancel()
        coming = asyncio.create_task(feed.at(0, LONG_MS))
        await asyncio.gather(leaving, return_exceptions=True)

        await append(engines, 1)

        assert offsets(await coming) == [0]


async def test_feed_without_readers_is_dropped_with_its_cache(engines, feeds):
    await append(engines, 5)
    async with reading(feeds, engines, CLICKS, 0) as feed, reading(feeds, engines, CLICKS, 0):
        await feed.at(0)
        assert feeds.count == 1
        assert feeds.size_bytes > 0

    assert feeds.count == 0
    assert feeds.size_bytes == 0


async def test_closing_feeds_fails_waiting_readers(engines, feeds, reader):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        waiting = asyncio.create_task(feed.at(0, LONG_MS))
        await reader.reading.wait()

        await feeds.close()

        with pytest.raises(StorageUnavailable):
            await waiting


# Failures


async def test_failure_reaches_all_readers_and_next_read_retries(engines, feeds, reader):
    await append(engines, 1)
    reader.failure = StorageUnavailable()
    async with reading(feeds, engines, CLICKS, 0) as feed:
        results = await asyncio.gather(
            *(feed.at(0, LONG_MS) for _ in range(3)), return_exceptions=True
        )
        reader.failure = None

        assert [type(result) for result in results] == [StorageUnavailable] * 3
        assert offsets(await feed.at(0, LONG_MS)) == [0]


async def test_offset_beyond_end_and_unknown_shard_are_rejected(engines, feeds):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        with pytest.raises(OffsetOutOfRange):
            await feed.at(7)
    async with reading(feeds, engines, CLICKS, 9) as feed:
        with pytest.raises(ShardNotFound):
            await feed.at(0)


async def test_unknown_stream_has_no_feed(engines, feeds):
    with pytest.raises(StreamNotFound):
        async with reading(feeds, engines, StreamName("nothing"), 0):
            pass

    assert feeds.count == 0


async def test_deletion_of_stream_wakes_waiting_readers(engines, feeds, reader):
    async with reading(feeds, engines, CLICKS, 0) as feed:
        waiting = asyncio.create_task(feed.at(0, LONG_MS))
        await reader.reading.wait()

        await engines.catalog.delete_stream(CLICKS)

        with pytest.raises(StreamNotFound):
            async with asyncio.timeout(PATIENCE_S):
                await waiting


async def test_feed_does_not_read_recreated_stream(engines, feeds):
    await append(engines, 1)
    async with reading(feeds, engines, CLICKS, 0) as old:
        await old.at(0)
        await engines.catalog.delete_stream(CLICKS)
        await engines.catalog.put_stream(CLICKS, StreamSpec())
        await append(engines, 5, b"another")

        with pytest.raises(StreamNotFound):
            await old.at(1, LONG_MS)
        async with reading(feeds, engines, CLICKS, 0) as new:
            assert [at.record.data for at in (await new.at(0)).records] == [b"another"] * 5


# Gaps and ends


async def test_slow_reader_gets_gap_for_expired_records(engines, feeds, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=60_000))
    await append(engines, 4)
    clock.advance(ms=61_000)
    await append(engines, 2)
    await engines.streams.trim(CLICKS, 1_000)

    async with reading(feeds, engines, CLICKS, 0) as feed:
        chunk = await feed.at(1, LONG_MS)
        within = await feed.at(2, LONG_MS)

    assert chunk.gap == Gap(1, 4, GapReason.EXPIRED)
    assert (chunk.first, offsets(chunk), chunk.next_offset) == (1, [4, 5], 6)
    assert within.gap == Gap(2, 4, GapReason.EXPIRED)


async def test_expired_records_are_dropped_from_cache(engines, feeds):
    await append(engines, 2)
    await append(engines, 2)
    async with reading(feeds, engines, CLICKS, 0) as feed:
        await feed.at(0)
        await engines.streams.truncate(CLICKS, 0, 3)
        await feed.at(4)

        chunk = await feed.at(1)

    assert chunk.gap == Gap(1, 3, GapReason.EXPIRED)
    assert offsets(chunk) == [3]


async def test_end_of_shard_is_reported_repeatedly_with_children(engines, feeds, reader):
    await append(engines, 2)
    async with reading(feeds, engines, CLICKS, 0) as feed:
        waiting = asyncio.create_task(feed.at(2, LONG_MS))
        await reader.reading.wait()

        await engines.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
        told = await waiting
        reads = reader.reads
        again = await feed.at(2, LONG_MS)
        whole = await feed.at(0, LONG_MS)

    assert told.ended
    assert [child.index for child in told.children] == [1, 2]
    assert not told.is_empty
    assert again.ended
    assert [child.index for child in again.children] == [1, 2]
    assert whole.ended
    assert offsets(whole) == [0, 1]
    assert not whole.within(1).ended
    assert whole.within(1).children == ()
    assert reader.reads == reads + 1


async def test_records_missing_from_hot_store_come_from_archive(settings, clock, words):
    async with open_storage(settings, clock=clock) as storage:
        await storage.catalog.put_stream(CLICKS, NOTHING_HOT)
        feeds = Feeds(storage.record_reader, {"words": Format(words, b" ")})
        await append(storage, 4)
        await archive_stream(storage, settings, CLICKS)
        while await storage.streams.trim(CLICKS, 1_000):
            pass
        await append(storage, 1)

        async with reading(feeds, storage, CLICKS, 0) as feed:
            cold = await feed.at(1, LONG_MS)
            hot = await feed.at(cold.next_offset, LONG_MS)

    assert cold.joined("words") == b"0/1=1 0/2=2 0/3=3"
    assert hot.joined("words") == b"0/4=0"


# Cache


async def test_cache_stays_below_its_limit(engines, reader, words):
    feeds = Feeds(reader, {"words": Format(words, b" ")}, bytes_max=MIB)
    for _ in range(10):
        await append(engines, 400, b"x" * 1_000)

    async with reading(feeds, engines, CLICKS, 0) as feed:
        sizes, offset = [], 0
        while offset < 4_000:
            chunk = await feed.at(offset)
            chunk.joined("words")
            sizes.append(feeds.size_bytes)
            offset = chunk.next_offset
        reads = reader.reads
        await feed.at(0)

    assert max(sizes) <= MIB
    assert reader.reads == reads + 1, "the oldest went first"


async def test_shared_block_stays_cached_during_scan_of_history(engines, reader, words):
    feeds = Feeds(reader, {"words": Format(words, b" ")}, bytes_max=3 * MIB)
    await engines.catalog.put_stream(StreamName("old"), StreamSpec())
    await append(engines, 5)
    for _ in range(10):
        await append(engines, 400, b"x" * 1_000, StreamName("old"))

    async with (
        reading(feeds, engines, CLICKS, 0) as busy,
        reading(feeds, engines, StreamName("old"), 0) as old,
    ):
        await busy.at(0)
        offset = 0
        while offset < 4_000:
            offset = (await old.at(offset)).next_offset
            await busy.at(0)

    assert reader.reads_of[CLICKS] == 1


async def read_along(feed: Feed, records: int) -> bytes:
    """Collect all that one reader at the tip gets."""
    told, offset = [], 0
    while offset < records:
        chunk = await feed.at(offset, LONG_MS)
        told.append(chunk.joined("words"))
        offset = chunk.next_offset
    return b" ".join(told)


async def test_many_readers_get_every_record_once_during_writes(engines, feeds, words):
    async with AsyncExitStack() as stack:
        some = [
            await stack.enter_async_context(reading(feeds, engines, CLICKS, 0)) for _ in range(20)
        ]
        tasks = [asyncio.create_task(read_along(feed, 300)) for feed in some]
        for number in range(100):
            await append(engines, 3, b"%d" % number)
        results = await asyncio.gather(*tasks)

    expected = b" ".join(b"0/%d=%d" % (offset, offset // 3) for offset in range(300))
    assert results == [expected] * 20
    assert words.count <= 320, (
        "a read that began before another was told may have read its records again"
    )
