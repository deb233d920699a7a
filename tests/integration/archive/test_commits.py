"""Commits of archived files, and their effect on the job."""

import asyncio

import pytest
from msgspec.structs import replace

from storage.bootstrap import open_storage
from storage.domain.archive import CopyResult
from storage.domain.jobs import JobKind, JobState, LeaseLost
from storage.domain.names import DEFAULT_NAMESPACE, StreamName
from storage.domain.streams.stream import StreamSpec
from storage.parquet.object_store import open_root
from tests.archive_steps import (
    WITHOUT_BACKOFF,
    archived_bodies,
    archived_files,
    copy_ranges,
    numbered_records,
)

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")


@pytest.fixture
async def engines(settings):
    async with open_storage(settings, limits=WITHOUT_BACKOFF) as storage:
        yield storage


async def test_concurrent_commits_of_same_ranges_have_one_winner(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    ranges = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    twice = [await copy_ranges(settings, ranges) for _ in range(2)]
    claims = []
    for number, copied in enumerate(twice):
        await engines.jobs.submit(DEFAULT_NAMESPACE, JobKind.ARCHIVE, f"{number}", {})
        claimed = await engines.jobs.claim(f"worker {number}", [JobKind.ARCHIVE])
        claims.append((claimed.claim, copied))

    await asyncio.gather(*(engines.archive_committer.commit(*claim) for claim in claims))

    files = await archived_files(engines, CLICKS)
    assert archived_bodies(open_root(settings.archive_url), files) == [
        b"%d" % number for number in range(10)
    ]


async def test_worker_that_lost_its_job_commits_nothing(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    await engines.archive_admin.flush(CLICKS)
    lost = (await engines.jobs.claim("slow", [JobKind.ARCHIVE])).claim
    await engines.jobs.release(lost)
    claim = (await engines.jobs.claim("quick", [JobKind.ARCHIVE])).claim
    copied = await copy_ranges(
        settings, await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    )

    for commit in (engines.archive_committer.commit_part, engines.archive_committer.commit):
        with pytest.raises(LeaseLost):
            await commit(lost, copied)

    assert await archived_files(engines, CLICKS) == []
    await engines.archive_committer.commit(claim, copied)
    assert len(await archived_files(engines, CLICKS)) == 1


async def test_commit_is_idempotent(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    await engines.archive_admin.flush(CLICKS)
    claim = (await engines.jobs.claim("test", [JobKind.ARCHIVE])).claim
    copied = await copy_ranges(
        settings, await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    )

    for _ in range(2):
        await engines.archive_committer.commit(claim, copied)

    assert len(await archived_files(engines, CLICKS)) == 1


async def test_range_with_missing_records_is_not_committed(engines, settings):
    other = StreamName("other")
    for name in (CLICKS, other):
        await engines.catalog.put_stream(name, StreamSpec())
        await engines.streams.append(name, numbered_records(0, 10))
    ranges = [
        log
        for name in ("clicks", "other")
        for log in await engines.archive_planner.due(DEFAULT_NAMESPACE, stream=name)
    ]
    lacking, whole = await copy_ranges(settings, ranges)
    lacking = replace(lacking, missing=((3, 5),))
    await engines.archive_admin.flush(CLICKS)
    claim = (await engines.jobs.claim("test", [JobKind.ARCHIVE])).claim

    commit = await engines.archive_committer.commit(claim, [lacking, whole])

    assert "[(3, 5)]" in commit["failures"][0]["failure"]
    assert await archived_files(engines, CLICKS) == []
    assert len(await archived_files(engines, other)) == 1


async def test_failed_range_blocks_later_ranges_of_its_shard(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 30))
    [log] = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    parts = [replace(log, first=first, next=first + 10) for first in (0, 10, 20)]
    first, _, third = await copy_ranges(settings, parts)
    await engines.archive_admin.flush(CLICKS)
    claim = (await engines.jobs.claim("test", [JobKind.ARCHIVE])).claim

    await engines.archive_committer.commit(
        claim, [third, CopyResult(parts[1], failure="no room"), first]
    )

    assert [file.next_offset for file in await archived_files(engines, CLICKS)] == [10]
    [again] = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    assert (again.first, again.next) == (10, 30)


async def test_committed_parts_outlive_their_attempt(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=3))
    await engines.streams.append(CLICKS, numbered_records(0, 30))
    asked = await engines.archive_admin.flush(CLICKS)
    unlucky = await engines.jobs.claim("test", [JobKind.ARCHIVE])
    await engines.jobs.fail(unlucky.claim, "no room")
    lost = await engines.jobs.claim("test", [JobKind.ARCHIVE])
    ranges = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    copied = await copy_ranges(settings, ranges)

    first = await engines.archive_committer.commit_part(lost.claim, copied[:1])
    second = await engines.archive_committer.commit_part(lost.claim, copied[1:2], first)
    job = await engines.jobs.get(asked.job_id)
    await engines.jobs.release(lost.claim)
    again = await engines.jobs.claim("test", [JobKind.ARCHIVE])
    rest = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    await engines.archive_committer.commit(again.claim, await copy_ranges(settings, rest))

    assert (job.state, job.failures, job.progress) == (JobState.RUNNING, 0, second.progress())
    assert second.records == sum(copy.files[0].records for copy in copied[:2])
    assert [log.shard for log in rest] == [2]
    assert (await engines.jobs.get(asked.job_id)).state is JobState.DONE


async def test_failure_of_part_is_reported_at_end_of_attempt(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await engines.streams.append(CLICKS, numbered_records(0, 30))
    asked = await engines.archive_admin.flush(CLICKS)
    claim = (await engines.jobs.claim("test", [JobKind.ARCHIVE])).claim
    refused, other = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")

    part = [CopyResult(refused, failure="no way there")]
    before = await engines.archive_committer.commit_part(claim, part)
    progress = await engines.archive_committer.commit(
        claim, await copy_ranges(settings, [other]), before
    )
    job = await engines.jobs.get(asked.job_id)

    assert (before.may_continue(refused), before.may_continue(other)) == (False, True)
    assert [one["shard"] for one in progress["failures"]] == [refused.shard]
    assert (job.state, job.failures, job.failure) == (JobState.QUEUED, 1, "no way there")


async def test_flush_job_is_requeued_until_everything_is_archived(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await engines.streams.append(CLICKS, numbered_records(0, 30))
    asked = await engines.archive_admin.flush(CLICKS)
    found = []
    for refused in (2, 1, 0):
        claimed = await engines.jobs.claim("test", [JobKind.ARCHIVE])
        ranges = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
        copied = [CopyResult(log, failure="no way there") for log in ranges[:refused]]
        copied += await copy_ranges(settings, ranges[refused:])
        await engines.archive_committer.commit(claimed.claim, copied)
        job = await engines.jobs.get(asked.job_id)
        found.append((len(ranges), job.state, job.failures, job.failure))

    assert found == [
        (2, JobState.QUEUED, 1, "no way there"),
        (2, JobState.QUEUED, 1, "no way there"),  # it made progress
        (1, JobState.DONE, 0, ""),
    ]


async def test_failures_are_logged_once_per_reason(engines, caplog):
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=3))
    await engines.streams.append(CLICKS, numbered_records(0, 60))
    await engines.archive_admin.flush(CLICKS)
    claimed = await engines.jobs.claim("test", [JobKind.ARCHIVE])
    ranges = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")

    reasons = ["no way there", "no room", "no way there"]
    copied = [CopyResult(log, failure=why) for log, why in zip(ranges, reasons, strict=True)]
    await engines.archive_committer.commit(claimed.claim, copied)

    told = [(record.reason, record.ranges) for record in caplog.records if "ranges" in vars(record)]
    assert told == [("no way there", 2), ("no room", 1)]


async def test_range_committed_by_another_job_is_not_failure(engines, settings):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.streams.append(CLICKS, numbered_records(0, 10))
    asked = await engines.archive_admin.flush(CLICKS)
    slow = await engines.jobs.claim("slow", [JobKind.ARCHIVE])
    [log] = await engines.archive_planner.due(DEFAULT_NAMESPACE, stream="clicks")
    await engines.jobs.submit(DEFAULT_NAMESPACE, JobKind.ARCHIVE, "lane 0", {"lane": 0})
    quick = await engines.jobs.claim("quick", [JobKind.ARCHIVE])
    await engines.archive_committer.commit(quick.claim, await copy_ranges(settings, [log]))

    gone = CopyResult(log, missing=((0, 10),))  # it left the hot store when it was archived
    commit = await engines.archive_committer.commit(slow.claim, [gone])
    begun_again = await engines.jobs.get(asked.job_id)
    last = await engines.jobs.claim("slow", [JobKind.ARCHIVE])
    await engines.archive_committer.commit(last.claim, [])

    assert commit["failures"] == []
    assert (begun_again.state, begun_again.failures) == (JobState.QUEUED, 0)
    assert (await engines.jobs.get(asked.job_id)).state is JobState.DONE
    assert len(await archived_files(engines, CLICKS)) == 1
