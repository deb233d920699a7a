"""Staged writes: the first commit of a batch wins, and its records are appended once."""

import asyncio
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import (
    ArchiveOff,
    MessageTooLarge,
    StorageUnavailable,
    StreamReadOnly,
    ValidationFailed,
)
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.parquet.object_store import open_root
from storage.settings import StorageSettings
from tests.arrow import arrow_stream

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")


@pytest.fixture
async def engines(settings, clock):
    async with open_storage(settings, clock=clock) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
        yield storage


def numbered(first: int, count: int) -> bytes:
    numbers = range(first, first + count)
    return arrow_stream(
        [b"%d" % number for number in numbers], key=[f"k{number % 7}" for number in numbers]
    )


async def bodies(engines) -> list[bytes]:
    """Read all record bodies, children after their parents."""
    data: list[bytes] = []
    positions: dict[int, int] = {}
    while True:
        read = await engines.record_reader.read(CLICKS, positions, records_max=10_000)
        data += [record.record.data for shard in read.shards for record in shard.records]
        if read.positions == positions:
            return data
        positions = read.positions


def once_each(count: int) -> Counter[bytes]:
    return Counter(b"%d" % number for number in range(count))


def stored(settings) -> list[str]:
    return [file.path for file in open_root(settings.archive_url).files("")]


async def stage(engines, *parts: bytes) -> list[str]:
    return [await engines.staged_writes.stage(CLICKS, part) for part in parts]


async def test_commit_appends_staged_records(engines, settings):
    staged = await stage(engines, numbered(0, 1_500), numbered(1_500, 10))
    before = await bodies(engines)

    write = await engines.staged_writes.commit(CLICKS, "load", 0, staged)

    assert before == []
    assert (write.done, write.records) == (True, 1_510)
    assert Counter(await bodies(engines)) == once_each(1_510)
    assert stored(settings) == []


async def test_first_commit_wins_and_later_staged_data_is_discarded(engines, settings):
    await engines.staged_writes.commit(CLICKS, "load", 3, await stage(engines, numbered(0, 10)))
    other = await stage(engines, numbered(100, 10))

    again = await engines.staged_writes.commit(CLICKS, "load", 3, other)

    assert (again.done, again.records) == (True, 10)
    assert again.staged != tuple(other)
    assert Counter(await bodies(engines)) == once_each(10)
    assert stored(settings) == []


async def test_interrupted_commit_is_finished_once_by_next_commit(engines, settings, monkeypatch):
    staged = await stage(engines, *(numbered(first, 700) for first in range(0, 2_100, 700)))
    append, calls = engines.streams.append_idempotent, 0

    async def broken(*told: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            await append(*told)
            raise StorageUnavailable
        return await append(*told)

    monkeypatch.setattr(engines.streams, "append_idempotent", broken)
    with pytest.raises(StorageUnavailable):
        await engines.staged_writes.commit(CLICKS, "load", 0, staged)
    [half] = [len(await bodies(engines))]
    async with open_storage(settings) as other:
        write = await other.staged_writes.commit(CLICKS, "load", 0, [])

    assert half == 1_400
    assert (write.done, write.records) == (True, 2_100)
    assert Counter(await bodies(engines)) == once_each(2_100)


async def test_abandoned_commit_is_finished_by_maintenance(engines, settings, clock, monkeypatch):
    staged = await stage(engines, numbered(0, 700), numbered(700, 300))

    async def broken(*told: Any) -> Any:
        raise StorageUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(engines.streams, "append_idempotent", broken)
        with pytest.raises(StorageUnavailable):
            await engines.staged_writes.commit(CLICKS, "load", 0, staged)

    at_once = await engines.staged_writes.finish()
    clock.advance(ms=limits.COMMIT_ABANDONED_MS + 1)
    later = [await engines.staged_writes.finish() for _ in range(2)]

    assert (at_once, later) == (0, [1, 0])
    assert Counter(await bodies(engines)) == once_each(1_000)


async def test_concurrent_commits_append_once_even_during_split(engines, settings):
    staged = await stage(engines, *(numbered(first, 300) for first in range(0, 3_000, 300)))

    async with open_storage(settings) as other:
        writes = await asyncio.gather(
            engines.staged_writes.commit(CLICKS, "load", 0, staged),
            other.staged_writes.commit(CLICKS, "load", 0, staged),
            other.streams.resharder.set_shard_count(CLICKS, 5),
        )
        last = await other.staged_writes.commit(CLICKS, "load", 0, staged)

    assert len(writes) == 3
    assert last.done
    assert Counter(await bodies(engines)) == once_each(3_000)


async def test_batches_and_writers_are_independent(engines):
    for writer_id, batch_id in (("load", 0), ("load", 1), ("other", 0)):
        staged = await stage(engines, numbered(0, 5))
        await engines.staged_writes.commit(CLICKS, writer_id, batch_id, staged)

    assert Counter(await bodies(engines)) == once_each(5) + once_each(5) + once_each(5)


async def test_commit_of_unknown_staged_file_is_rejected(engines):
    [staged] = await stage(engines, numbered(0, 5))

    for wrong in ([staged, "0" * 32], ["../../etc/passwd"], [staged, staged]):
        with pytest.raises(ValidationFailed):
            await engines.staged_writes.commit(CLICKS, "load", 0, wrong)

    write = await engines.staged_writes.commit(CLICKS, "load", 0, [staged])
    assert write.records == 5


async def test_discard_deletes_only_named_staged_file(engines, settings):
    first, second = await stage(engines, numbered(0, 5), numbered(5, 5))

    await engines.staged_writes.discard(CLICKS, first)
    await engines.staged_writes.discard(CLICKS, "no such thing")

    assert [path.rsplit("/", 1)[1] for path in stored(settings)] == [second]


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"hello",
        arrow_stream([]),
        arrow_stream([None]),
        arrow_stream([b"a"], color=["red"]),
        arrow_stream([b"a"], key=["k" * 257]),
        arrow_stream([b"a"], key=[7.5]),
        numbered(0, 5)[:-40],
    ],
)
async def test_staging_invalid_table_is_rejected(engines, settings, encoded):
    with pytest.raises(ValidationFailed):
        await engines.staged_writes.stage(CLICKS, encoded)

    assert stored(settings) == []


async def test_staging_invalid_record_is_rejected(engines):
    with pytest.raises(MessageTooLarge):
        await engines.staged_writes.stage(CLICKS, arrow_stream([b"x" * (1 << 20) + b"y"]))


async def test_headers_and_event_times_are_kept(engines):
    headers = pa.array(
        [[{"k": "color", "t": "", "v": b"red"}], None],
        pa.list_(pa.struct([("k", pa.string()), ("t", pa.string()), ("v", pa.binary())])),
    )
    times = pa.array([1_700_000_000_000_000, None], pa.timestamp("us", tz="UTC"))
    staged = await stage(engines, arrow_stream([b"a", b"b"], headers=headers, event_ts=times))

    await engines.staged_writes.commit(CLICKS, "load", 0, staged)

    read = await engines.record_reader.read(CLICKS, {})
    found = {
        record.record.data: (record.record.headers, record.record.event_time_ms)
        for shard in read.shards
        for record in shard.records
    }
    assert found == {b"a": ((("color", "", b"red"),), 1_700_000_000_000), b"b": ((), None)}


async def test_staging_is_rejected_for_view_and_without_archive(engines, redis_url, database_url):
    await engines.catalog.put_queue(QueueName("work"), QueueSpec(stream_view=True))
    with pytest.raises(StreamReadOnly):
        await engines.staged_writes.stage(StreamName("work"), numbered(0, 1))

    bare = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(bare) as other:
        with pytest.raises(ArchiveOff):
            await other.staged_writes.stage(CLICKS, numbered(0, 1))
