"""Streams and groups through the Python SDK."""

from datetime import UTC, datetime, timedelta
from itertools import islice

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

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def test_records_are_put_and_read(clicks):
    put = clicks.put({"page": "/"}, key="ann", headers={"source": "web"})
    clicks.put_many([NewRecord(b"\xff", "bea"), "plain"], key="cat")

    records = list(clicks.read())

    assert [record.data for record in records] == [b'{"page":"/"}', b"\xff", b"plain"]
    assert [record.key for record in records] == ["ann", "bea", "cat"]
    assert (records[0].shard, records[0].offset) == (put.shard, put.offset)
    assert (records[0].json(), records[0].headers) == ({"page": "/"}, {"source": "web"})
    assert records[2].text == "plain"


def test_a_repeat_with_the_same_key_adds_nothing(clicks):
    first = clicks.put("hello", key="a", idempotency_key="once")
    again = clicks.put("hello", key="a", idempotency_key="once")

    assert (again.offset, again.duplicate) == (first.offset, True)


def test_more_records_than_a_call_takes_go_in_several(clicks):
    put = clicks.put_many((str(number) for number in range(2_500)), key="one")

    assert [one.offset for one in put] == list(range(2_500))
    assert [record.text for record in clicks.read(limit=700)] == [str(n) for n in range(2_500)]


def test_records_of_a_fenced_shard_are_refused_and_the_others_are_not(clicks):
    clicks.fence(0, "writer-7")

    with pytest.raises(PartlyRefused) as partly:
        clicks.put_many([NewRecord("a", str(number)) for number in range(8)])

    refused = [one for one in partly.value.results if isinstance(one, ItemRefused)]
    assert len(partly.value.results) == 8
    assert {one.code for one in refused} == {"fence_mismatch"}
    assert len(list(clicks.read())) == 8 - len(refused)
    assert not partly.value.retryable


def test_an_event_time_comes_back(clicks):
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)

    clicks.put("hello", event_time=at)

    assert next(iter(clicks.read())).event_time == at


def test_a_read_starts_at_the_oldest_the_latest_a_time_or_a_cursor(clicks):
    clicks.put_many(["a", "b"], key="x")
    middle = datetime.now(UTC) + timedelta(milliseconds=5)
    cursor = clicks.read_page().next_cursor
    while datetime.now(UTC) <= middle:
        pass
    clicks.put_many(["c"], key="x")

    def texts(*start, **more):
        return [record.text for record in clicks.read(*start, **more)]

    assert texts() == texts("earliest") == texts(LONG_AGO) == ["a", "b", "c"]
    assert texts("latest") == []
    assert texts(middle) == texts(cursor=cursor) == ["c"]


def test_one_shard_is_read_from_an_offset_or_a_time(clicks):
    shard = clicks.put_many(["a", "b", "c"], key="x")[0].shard

    assert [record.text for record in clicks.read(shard=shard, offset=1)] == ["b", "c"]
    assert [record.text for record in clicks.read(LONG_AGO, shard=shard, limit=1)] == list("abc")
    assert list(clicks.read("latest", shard=shard)) == []
    assert clicks.read_shard_page(shard, tail=1).records[0].text == "c"


def test_a_reader_that_follows_gets_what_comes_next(clicks):
    clicks.put_many(["a", "b"], key="x")
    following = clicks.read(follow=True)

    first = [record.text for record in islice(following, 2)]
    clicks.put("c", key="x")

    assert [*first, next(following).text] == ["a", "b", "c"]


def test_a_page_tells_of_what_retention_has_taken(clicks):
    shard = clicks.put_many(["a", "b", "c"], key="x")[0].shard
    cursor = clicks.read_page(limit=1).next_cursor
    assert clicks.truncate(shard, 2) == 2

    [page] = clicks.pages(cursor=cursor)
    told: list[Gap] = []
    assert [record.text for record in clicks.read(cursor=cursor, on_gap=told.append)] == ["c"]
    assert told == page.gaps

    [gap] = page.gaps
    assert (gap.shard, gap.first, gap.next, gap.reason) == (shard, 1, 2, "expired")
    assert [record.text for record in page.records] == ["c"]
    with pytest.raises(Gone) as expired:
        list(clicks.read(shard=shard, offset=0))
    assert expired.value.members["earliest_offset"] == 2


def test_an_offset_beyond_the_end_is_not_there(clicks):
    with pytest.raises(Gone) as beyond:
        list(clicks.read(shard=0, offset=5))

    assert beyond.value.code == "offset_out_of_range"


def test_shards_are_split_and_merged_and_reading_goes_through_them(clicks):
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


def test_a_shard_is_fenced(clicks):
    assert clicks.fence(0, "writer-7")

    with pytest.raises(PreconditionFailed) as refused:
        clicks.put_to_shard(0, ["a"])
    put = clicks.put_to_shard(0, ["a"], fence="writer-7")

    assert refused.value.code == "fence_mismatch"
    assert put[0].offset == 0


def test_a_producer_repeats_itself_without_harm(clicks):
    producer = {"id": "importer", "epoch": 0, "sequence": 0}

    first = clicks.put_to_shard(1, ["a", "b"], producer=producer)
    again = clicks.put_to_shard(1, ["a", "b"], producer=producer)

    assert [one.offset for one in again] == [one.offset for one in first]
    assert all(one.duplicate for one in again)


def test_the_newest_record_of_a_key(clicks):
    clicks.change(key_index=True)
    clicks.put_many(["a", "b"], key="ann")

    assert clicks.latest("ann").data == "b"
    with pytest.raises(NotFound):
        clicks.latest("bea")


def test_a_stream_is_configured_listed_and_deleted(millstream, clicks):
    assert clicks.change(retention_seconds=3_600).retention_seconds == 3_600
    assert [stream.name for stream in millstream.streams(clicks.name)] == [clicks.name]
    assert clicks.archive().stream == clicks.name
    assert list(millstream.archived_files(clicks.name)) == []

    clicks.delete()

    with pytest.raises(NotFound):
        clicks.config()


# ── Groups ──


def test_a_member_reads_commits_and_is_not_shown_the_same_again(millstream, clicks):
    clicks.put_many(["a", "b", "c"])
    group = millstream.group(clicks.name)
    group.create(clicks.name)

    with group.member("alice") as alice:
        read = alice.fetch(wait_seconds=1)
        again = alice.fetch(wait_seconds=1)
        alice.commit(read)
        rest = alice.fetch(wait_seconds=0)

    assert [record.text for record in read.records] == ["a", "b", "c"]
    assert [record.text for record in again.records] == ["a", "b", "c"]
    assert rest.records == []
    assert group.lag().records == 0
    assert group.details().members == []


def test_batches_are_committed_as_the_next_one_is_asked_for(millstream, clicks):
    clicks.put_many([str(number) for number in range(10)], key="one")
    group = millstream.group(clicks.name)
    group.create(clicks.name)
    texts = []

    with group.member() as member:
        for read in member.batches(limit=4, wait_seconds=0, until_empty=True):
            texts += [record.text for record in read.records]

    assert texts == [str(number) for number in range(10)]
    assert group.lag().records == 0


def test_a_member_that_was_reset_reads_on_from_there(millstream, clicks):
    clicks.put_many(["a", "b"], key="one")
    group = millstream.group(clicks.name)
    group.create(clicks.name)
    group.bookmark("start", {0: 0, 1: 0})

    with group.member("alice") as alice:
        batches = alice.batches(wait_seconds=1)
        first = next(batches)
        plan = group.reset("bookmark", bookmark="start", dry_run=True)
        group.reset("bookmark", bookmark="start")
        again = next(batches)

    assert [record.text for record in again.records] == [record.text for record in first.records]
    assert plan.dry_run
    assert [bookmark.name for bookmark in group.bookmarks()] == ["start"]
    assert [found.name for found in millstream.groups(group.name)] == [group.name]
    group.delete_bookmark("start")
    group.delete()


def test_a_simple_group_keeps_positions(millstream, clicks):
    clicks.put_many(["a", "b"], key="one")
    group = millstream.group(clicks.name)
    group.create(clicks.name, kind="simple")

    group.commit_positions({0: 0, 1: 0})
    with pytest.raises(PartlyRefused) as partly:
        group.commit_positions({0: 0, 1: 100})

    assert partly.value.results[1].code == "offset_out_of_range"


# ── Replays and jobs ──


def test_a_replay_is_planned_begun_and_ended(millstream, clicks, name):
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


def test_a_job_is_looked_at_and_tried_again(millstream, make_job, name):
    job_id = f"{name}-job".ljust(32, "0")
    make_job(job_id, "logs")
    job = millstream.job(job_id)

    assert str(job.status().state) == "failed"
    assert str(job.retry().state) == "queued"
    assert str(job.cancel().state) == "cancelled"
