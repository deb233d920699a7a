"""Streams and groups through the Python SDK."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from millstream_client import (
    AlreadyExists,
    Conflict,
    Gone,
    NewRecord,
    PartlyRefused,
)
from tests.contract.sdk.conftest import BOTH

pytestmark = BOTH
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


def test_repeat_with_same_key_adds_nothing(clicks):
    first = clicks.put("hello", key="a", idempotency_key="once")
    again = clicks.put("hello", key="a", idempotency_key="once")

    assert (again.offset, again.duplicate) == (first.offset, True)


def test_large_put_is_split_into_calls(clicks):
    put = clicks.put_many((str(number) for number in range(2_500)), key="one")

    assert [one.offset for one in put] == list(range(2_500))
    assert [record.text for record in clicks.read(limit=700)] == [str(n) for n in range(2_500)]


def test_event_time_round_trips(clicks):
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)

    clicks.put("hello", event_time=at)

    assert next(iter(clicks.read())).event_time == at


def test_read_starts_at_oldest_latest_time_or_cursor(clicks):
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


def test_shard_is_read_from_offset_or_time(clicks):
    shard = clicks.put_many(["a", "b", "c"], key="x")[0].shard

    assert [record.text for record in clicks.read(shard=shard, offset=1)] == ["b", "c"]
    assert [record.text for record in clicks.read(LONG_AGO, shard=shard, limit=1)] == list("abc")
    assert list(clicks.read("latest", shard=shard)) == []
    assert clicks.read_shard_page(shard, tail=1).records[0].text == "c"


def test_following_reader_gets_later_records(clicks):
    clicks.put_many(["a", "b"], key="x")
    following = clicks.read(follow=True)

    first = [record.text for record in islice(following, 2)]
    clicks.put("c", key="x")

    assert [*first, next(following).text] == ["a", "b", "c"]


def test_offset_beyond_end_is_out_of_range(clicks):
    with pytest.raises(Gone) as beyond:
        list(clicks.read(shard=0, offset=5))

    assert beyond.value.code == "offset_out_of_range"


# ── Groups ──


def test_member_reads_and_committed_records_are_not_repeated(millstream, clicks):
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


def test_member_is_fenced_by_process_of_same_name(millstream, clicks):
    clicks.put_many(["a"])
    group = millstream.group(clicks.name)
    group.create(clicks.name)
    with group.member("alice") as earlier:
        read = earlier.fetch(wait_seconds=1)
        later = group.member("alice")
        later.fetch(wait_seconds=1)

        for fenced in (earlier.fetch, lambda: earlier.commit(read)):
            with pytest.raises(Conflict) as refused:
                fenced()
            assert refused.value.code == "stale_generation"

    assert [member.member for member in group.details().members] == ["alice"]  # the later one


def test_batches_are_committed_when_next_is_requested(millstream, clicks):
    clicks.put_many([str(number) for number in range(10)], key="one")
    group = millstream.group(clicks.name)
    group.create(clicks.name)
    texts = []

    with group.member() as member:
        for read in member.batches(limit=4, wait_seconds=0, until_empty=True):
            texts += [record.text for record in read.records]

    assert texts == [str(number) for number in range(10)]
    assert group.lag().records == 0


def test_reset_member_continues_at_bookmark(millstream, clicks):
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
    assert [actual_group.name for actual_group in millstream.groups(group.name)] == [group.name]
    group.delete_bookmark("start")
    group.delete()


def test_simple_group_keeps_positions(millstream, clicks):
    clicks.put_many(["a", "b"], key="one")
    group = millstream.group(clicks.name)
    group.create(clicks.name, kind="simple")

    group.commit_positions({0: 0, 1: 0})
    with pytest.raises(PartlyRefused) as partly:
        group.commit_positions({0: 0, 1: 100})

    assert partly.value.results[1].code == "offset_out_of_range"


def test_create_of_stream_or_group_never_overwrites(millstream, clicks, name):
    """Both were replaced, with the defaults of what the program left out."""
    group = millstream.group(name)
    for thing, required, setting, value, other in (
        (clicks, {"shards": 2}, "retention_seconds", 3600, 7200),
        (group, {"stream": clicks.name}, "session_timeout_seconds", 10, 20),
    ):
        thing.apply(**required, **{setting: value})

        same = thing.create(**required, **{setting: value})
        bare = thing.create(**required)
        with pytest.raises(AlreadyExists) as refused:
            thing.create(**required, **{setting: other})
        applied = thing.apply(**required, **{setting: other})

        assert [same.created, bare.created, applied.created] == [False] * 3
        [change] = refused.value.changes
        assert (change.pointer, change.before, change.after) == (f"/{setting}", value, other)
        assert [change.pointer for change in applied.changes] == [f"/{setting}"]


def test_paused_group_reads_nothing_until_resumed(millstream, clicks, name):
    group = millstream.group(name)
    group.create(clicks.name)
    clicks.put("one")
    group.pause()

    with group.member() as member:
        paused = member.fetch(wait_seconds=0)
        group.resume()
        resumed = member.fetch(wait_seconds=0)

    assert (list(paused.records), [record.text for record in resumed.records]) == ([], ["one"])
