"""Operations of streams through the Python SDK that only the service has."""

import pytest

from millstream_client import (
    Gap,
    Gone,
    ItemRefused,
    NewRecord,
    NotFound,
    PartlyRefused,
    PreconditionFailed,
)


def test_fenced_shard_rejects_only_its_own_records(clicks):
    clicks.fence(0, "writer-7")

    with pytest.raises(PartlyRefused) as partly:
        clicks.put_many([NewRecord("a", str(number)) for number in range(8)])

    refused = [one for one in partly.value.results if isinstance(one, ItemRefused)]
    assert len(partly.value.results) == 8
    assert {one.code for one in refused} == {"fence_mismatch"}
    assert len(list(clicks.read())) == 8 - len(refused)
    assert not partly.value.retryable


def test_page_reports_expired_records_as_gap(clicks):
    shard = clicks.put_many(["a", "b", "c"], key="x")[0].shard
    cursor = clicks.read_page(limit=1).next_cursor
    assert clicks.truncate(shard, 2) == 2

    [page] = clicks.pages(cursor=cursor)
    gaps: list[Gap] = []
    assert [record.text for record in clicks.read(cursor=cursor, on_gap=gaps.append)] == ["c"]
    assert gaps == page.gaps

    [gap] = page.gaps
    assert (gap.shard, gap.first, gap.next, gap.reason) == (shard, 1, 2, "expired")
    assert [record.text for record in page.records] == ["c"]
    with pytest.raises(Gone) as expired:
        list(clicks.read(shard=shard, offset=0))
    assert expired.value.members["earliest_offset"] == 2


def test_read_continues_through_split_and_merge(clicks):
    clicks.put_many([NewRecord("before", str(number)) for number in range(8)])
    clicks.reshard(split=0)
    clicks.reshard(merge=(2, 3))
    shards = clicks.reshard(4)
    clicks.put_many([NewRecord("after", str(number)) for number in range(8)])

    by_key: dict[str, list[str]] = {}
    for record in clicks.read():
        by_key.setdefault(record.key, []).append(record.text)

    assert sum(shard.open_ for shard in shards) == 4
    assert list(by_key.values()) == [["before", "after"]] * 8


def test_shard_is_fenced(clicks):
    assert clicks.fence(0, "writer-7")

    with pytest.raises(PreconditionFailed) as refused:
        clicks.put_to_shard(0, ["a"])
    put = clicks.put_to_shard(0, ["a"], fence="writer-7")

    assert refused.value.code == "fence_mismatch"
    assert put[0].offset == 0


def test_producer_can_retry_safely(clicks):
    producer = {"id": "importer", "epoch": 0, "sequence": 0}

    first = clicks.put_to_shard(1, ["a", "b"], producer=producer)
    again = clicks.put_to_shard(1, ["a", "b"], producer=producer)

    assert [one.offset for one in again] == [one.offset for one in first]
    assert all(one.duplicate for one in again)


def test_latest_record_of_key_is_returned(clicks):
    clicks.change(key_index=True)
    clicks.put_many(["a", "b"], key="ann")

    assert clicks.latest("ann").data == "b"
    with pytest.raises(NotFound):
        clicks.latest("bea")


def test_stream_is_configured_listed_and_deleted(millstream, clicks):
    assert clicks.change(retention_seconds=3_600).retention_seconds == 3_600
    assert [stream.name for stream in millstream.streams(clicks.name)] == [clicks.name]
    assert clicks.archive().stream == clicks.name
    assert list(millstream.archived_files(clicks.name)) == []

    clicks.delete()

    with pytest.raises(NotFound):
        clicks.config()


def test_replay_is_planned_started_and_ended(millstream, clicks, name):
    clicks.put_many(["a", "b"], key="one")
    target = millstream.queue(name)
    target.create()

    plan = millstream.replays.plan(clicks.name, {"queue": name}, exact=True)
    replay = millstream.replays.start(clicks.name, {"queue": name}, id=f"{name}-again")
    same = millstream.replays.start(clicks.name, {"queue": name}, id=f"{name}-again")
    replay.pause()
    replay.resume()
    replay.cancel()

    assert plan.records.count == 2
    assert same.name == replay.name
    assert [str(status.state) for status in replay.watch()] == ["cancelled"]
    assert replay.name in [one.id for one in millstream.all_replays()]
    assert str(next(millstream.jobs(kind="replay")).state) == "cancelled"


def test_job_is_shown_retried_and_cancelled(millstream, make_job, name):
    job_id = f"{name}-job".ljust(32, "0")
    make_job(job_id, "logs")
    job = millstream.job(job_id)

    assert str(job.status().state) == "failed"
    assert str(job.retry().state) == "queued"
    assert str(job.cancel().state) == "cancelled"
