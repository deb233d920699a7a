"""Archiving: planning, commits, trimming of the hot store, and retirement of files."""

import errno
from typing import Any

import pytest
from msgspec.structs import replace

from storage.archive.compact_task import compact_files
from storage.archive.verify import open_archive_check
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import ArchiveBehind, ArchiveOff
from storage.domain.jobs import JobKind, JobState
from storage.domain.log.record_batch import Record
from storage.domain.names import DEFAULT_NAMESPACE, QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.parquet import local_store
from storage.parquet.object_store import open_root
from storage.postgres.database import open_database
from storage.postgres.repositories.archive_manifest import ArchiveRows
from tests.archive_steps import (
    WITHOUT_BACKOFF,
    archive_stream,
    archived_bodies,
    archived_files,
    copy_ranges,
    numbered_records,
)

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
HOUR = limits.HOUR_MS


@pytest.fixture
async def engines(settings, clock):
    async with open_storage(settings, clock=clock, limits=WITHOUT_BACKOFF) as storage:
        yield storage


@pytest.fixture
def root(settings):
    return open_root(settings.archive_url)


def stored(root) -> list[str]:
    return [file.path for file in root.files("")]


async def test_archived_files_contain_all_records_by_offset(engines, settings, root):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in range(0, 100, 10):
        await engines.streams.append(CLICKS, numbered_records(first, 10))

    job = await archive_stream(engines, settings, CLICKS)

    [file] = await archived_files(engines, CLICKS)
    assert (file.first_offset, file.next_offset, file.records) == (0, 100, 100)
    assert archived_bodies(root, [file]) == [b"%d" % number for number in range(100)]
    assert job.state is JobState.DONE
    assert job.progress["records"] == 100


async def test_archiving_continues_where_it_ended(engines, settings, root):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in (0, 10, 20):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)

    files = await archived_files(engines, CLICKS)

    assert [(file.first_offset, file.next_offset) for file in files] == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]
    assert archived_bodies(root, files) == [b"%d" % number for number in range(30)]


async def test_file_never_spans_two_hours(engines, settings, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in (0, 5, 10):
        await engines.streams.append(CLICKS, numbered_records(first, 5))
        clock.advance(ms=HOUR)

    await archive_stream(engines, settings, CLICKS)

    files = await archived_files(engines, CLICKS)
    assert [file.first_offset for file in files] == [0, 5, 10]
    assert len({file.path.split("/hr=")[0] + file.path.split("/hr=")[1][:2] for file in files}) == 3


async def test_unarchived_records_stay_in_hot_store(engines, settings, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(hot_retention_ms=HOUR))
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    clock.advance(ms=2 * HOUR)

    await engines.streams.trim(CLICKS, 1_000)
    [before] = (await engines.archive_admin.show(CLICKS)).shards
    await archive_stream(engines, settings, CLICKS)
    await engines.streams.trim(CLICKS, 1_000)
    [after] = (await engines.archive_admin.show(CLICKS)).shards

    assert before.hot.start == 0
    assert after.hot.start == after.state.archived == 10


async def test_unarchived_stream_is_trimmed_by_retention_only(engines, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(archive=False, retention_ms=HOUR))
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    clock.advance(ms=2 * HOUR)

    await engines.streams.trim(CLICKS, 1_000)

    [shard] = (await engines.archive_admin.show(CLICKS)).shards
    assert shard.hot.start == 10
    with pytest.raises(ArchiveOff):
        await engines.archive_admin.flush(CLICKS)


async def test_append_is_rejected_when_half_of_budget_is_unarchived(engines, settings):
    other = StreamName("other")
    spec = StreamSpec(hot_bytes_max=limits.HOT_BYTES_MIN)
    for name in (CLICKS, other):
        await engines.catalog.put_stream(name, spec)
    large = Record(b"x" * (limits.HOT_BYTES_MIN // 4))
    await engines.streams.append(CLICKS, [large, large, large])
    await engines.streams.trim(CLICKS, 1_000)

    [refused] = await engines.streams.append(CLICKS, [large])
    [taken] = await engines.streams.append(other, [large])
    await archive_stream(engines, settings, CLICKS)
    [again] = await engines.streams.append(CLICKS, [large])

    assert isinstance(refused, ArchiveBehind)
    assert taken.offset == 0
    assert again.offset == 3


async def test_repeated_append_to_full_shard_is_duplicate(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(hot_bytes_max=limits.HOT_BYTES_MIN))
    large = [Record(b"x" * (limits.HOT_BYTES_MIN * 3 // 4))]
    [first] = await engines.streams.append(CLICKS, large, idempotency_key="once")
    await engines.streams.trim(CLICKS, 1_000)

    [again] = await engines.streams.append(CLICKS, large, idempotency_key="once")

    assert (again.offset, again.duplicate) == (first.offset, True)


async def test_plan_submits_one_job_per_due_lane(engines, clock):
    names = [StreamName(f"s{number}") for number in range(12)]
    for name in names:
        await engines.catalog.put_stream(name, StreamSpec(archive_lag_ms=limits.MINUTE_MS))
        await engines.streams.append(name, numbered_records(0, 1))
    young = await engines.archive_planner.plan()
    clock.advance(ms=limits.MINUTE_MS)

    planned = [await engines.archive_planner.plan() for _ in range(2)]

    jobs = await engines.jobs.list(kind=JobKind.ARCHIVE)
    assert young == 0
    assert planned[0] == planned[1] == len(jobs) <= limits.ARCHIVE_JOBS_PER_NAMESPACE
    due = [
        log.stream
        for job in jobs
        for log in await engines.archive_planner.due(job.namespace, lane=job.spec["lane"])
    ]
    assert sorted(due) == sorted(name.name for name in names)


async def test_records_trimmed_unarchived_are_skipped(engines, settings, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=HOUR))
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    await archive_stream(engines, settings, CLICKS)
    stream = await engines.catalog.stream(CLICKS)
    await engines.catalog.put_stream(CLICKS, replace(stream.spec, archive=False))
    await engines.streams.append(CLICKS, numbered_records(10, 10))
    clock.advance(ms=2 * HOUR)
    await engines.streams.trim(CLICKS, 1_000)
    await engines.catalog.put_stream(CLICKS, stream.spec)
    await engines.streams.append(CLICKS, numbered_records(20, 10))

    await archive_stream(engines, settings, CLICKS)

    files = await archived_files(engines, CLICKS)
    assert [(file.first_offset, file.next_offset) for file in files] == [(0, 10), (20, 30)]


async def test_stream_view_is_archived_when_enabled(engines, settings, root):
    work = QueueName("work")
    await engines.catalog.put_queue(work, QueueSpec(stream_view=True, archive=True))
    await engines.queues.send(work, [NewMessage(b"one"), NewMessage(b"two")])
    received = await engines.queues.receive(work, messages_max=2)
    assert len(received) == 2

    await archive_stream(engines, settings, StreamName("work"))

    files = await archived_files(engines, StreamName("work"))
    assert archived_bodies(root, files) == [b"one", b"two"]


async def test_old_files_are_retired_and_deleted_one_day_later(engines, settings, root, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=2 * HOUR))
    for first in (0, 10):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)
        clock.advance(ms=HOUR)

    retired = await engines.archive_garbage_collector.retire()
    stored_files = await archived_files(engines, CLICKS)
    at_once = await engines.archive_garbage_collector.collect()
    clock.advance(ms=limits.READER_GRACE_MS + 1)
    later = await engines.archive_garbage_collector.collect()

    assert (retired, at_once, later) == (1, 0, 1)
    assert [file.first_offset for file in stored_files] == [10]
    assert len(stored(root)) == 1
    [shard] = (await engines.archive_admin.show(CLICKS)).shards
    assert shard.state.start == 10


async def test_files_of_deleted_stream_are_deleted(engines, settings, root):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    await archive_stream(engines, settings, CLICKS)
    assert stored(root)

    await engines.catalog.delete_stream(CLICKS)
    await engines.archive_garbage_collector.collect()

    assert not stored(root)


async def test_old_uncommitted_files_are_deleted(engines, settings, root, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    await copy_ranges(
        settings, await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    )
    await archive_stream(engines, settings, CLICKS)
    assert len(stored(root)) == 2
    moment = max(file.changed_at_ms for file in root.files(""))

    clock.advance(ms=moment - clock.now_ms())
    young = await engines.archive_garbage_collector.collect_orphans()
    clock.advance(ms=limits.ORPHAN_AGE_MS + 1)
    old = await engines.archive_garbage_collector.collect_orphans()

    assert (young, old) == (0, 1)
    [file] = await archived_files(engines, CLICKS)
    assert stored(root) == [file.path]


async def test_small_files_of_same_hour_are_compacted(engines, settings, root, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in range(0, 50, 10):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)
    before = await archived_files(engines, CLICKS)
    clock.advance(ms=2 * HOUR)
    assert await engines.archive_planner.plan_compaction() == 1
    claim = (await engines.jobs.claim("test", [JobKind.COMPACT])).claim
    [run] = await engines.archive_planner.to_compact(DEFAULT_NAMESPACE)

    joined = compact_files(root, DEFAULT_NAMESPACE, run)
    await engines.archive_committer.commit_compaction(claim, [(run, joined)], {})

    assert await archived_files(engines, CLICKS) == [joined]
    assert run == before
    assert archived_bodies(root, [joined]) == archived_bodies(root, before)
    assert await engines.archive_planner.plan_compaction() == 0


async def test_compaction_does_not_replace_deleted_files(engines, settings, root, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=3 * HOUR))
    for first in range(0, 40, 10):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)
    clock.advance(ms=2 * HOUR)
    await engines.archive_planner.plan_compaction()
    claim = (await engines.jobs.claim("test", [JobKind.COMPACT])).claim
    [run] = await engines.archive_planner.to_compact(DEFAULT_NAMESPACE)
    joined = compact_files(root, DEFAULT_NAMESPACE, run)
    clock.advance(ms=2 * HOUR)
    await engines.archive_garbage_collector.retire()

    await engines.archive_committer.commit_compaction(claim, [(run, joined)], {})

    assert await archived_files(engines, CLICKS) == []


async def checked(settings) -> list[Any]:
    async with open_archive_check(settings) as check:
        return [shard async for shard in check.shards()]


async def test_intact_archive_is_verified(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in (0, 10):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)

    [shard] = await checked(settings)

    assert (shard.files, shard.records, shard.faults) == (2, 20, [])


async def test_verify_finds_flipped_byte_and_missing_file(engines, settings, root, tmp_path):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in (0, 10, 20):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)
    flipped, missing, _ = await archived_files(engines, CLICKS)
    place = tmp_path / "archive" / flipped.path
    data = bytearray(place.read_bytes())
    data[100] ^= 1
    place.write_bytes(data)
    root.delete(missing.path)

    [shard] = await checked(settings)

    assert len(shard.faults) == 2
    assert [fault.split(":")[0] for fault in shard.faults] == [flipped.path, missing.path]


async def test_verify_finds_missing_offsets(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    for first in (0, 10, 20):
        await engines.streams.append(CLICKS, numbered_records(first, 10))
        await archive_stream(engines, settings, CLICKS)
    _, middle, _ = await archived_files(engines, CLICKS)
    async with open_database(settings) as database:
        await ArchiveRows(database).delete_files([middle.file_id])

    [shard] = await checked(settings)

    assert shard.faults == ["No file has the offsets 10 to 19."]


async def test_archiving_resumes_after_full_disk(engines, settings, root, monkeypatch):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    make = local_store._made

    class Full:
        def __init__(self, file: Any) -> None:
            self._file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local_store, "_made", lambda place: Full(make(place)))
    full = await archive_stream(engines, settings, CLICKS)
    left = stored(root)
    monkeypatch.setattr(local_store, "_made", make)
    again = await archive_stream(engines, settings, CLICKS)

    assert full.progress["failures"][0]["failure"] == "The archive is out of space."
    assert (left, full.progress["files"]) == ([], 0)
    assert again.progress["records"] == 10
    assert archived_bodies(root, await archived_files(engines, CLICKS)) == [
        b"%d" % n for n in range(10)
    ]


async def test_clock_moving_back_keeps_record_order(engines, settings, root, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(archive_lag_ms=limits.MINUTE_MS))
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    clock.advance(ms=-3 * HOUR)
    await engines.streams.append(CLICKS, numbered_records(10, 10))
    before = await engines.archive_planner.plan()
    clock.advance(ms=3 * HOUR + limits.MINUTE_MS)
    after = await engines.archive_planner.plan()
    claim = (await engines.jobs.claim("test", [JobKind.ARCHIVE])).claim
    copied = await copy_ranges(settings, await engines.archive_planner.due(DEFAULT_NAMESPACE))

    await engines.archive_committer.commit(claim, copied)

    [file] = await archived_files(engines, CLICKS)
    assert (before, after) == (0, 1)
    assert file.first_arrival_ms == file.last_arrival_ms
    assert archived_bodies(root, [file]) == [b"%d" % number for number in range(20)]
