"""Reads of streams and groups, on the service and on the in-memory one: positions, members, offsets."""

from datetime import UTC, datetime

import pytest

from millstream_client import BadRequest, Conflict, Gone, ItemRefused, NotFound, PartlyRefused
from tests.contract.sdk.conftest import BOTH

pytestmark = BOTH


@pytest.fixture
def readers(millstream, clicks):
    """A group of the stream's readers."""
    group = millstream.group(clicks.name)
    group.create(clicks.name)
    return group


def texts(records) -> list[str]:
    return [record.text for record in records]


def test_key_stays_in_one_shard_in_order(clicks):
    appended = [clicks.put(str(number), key="ann") for number in range(3)]

    assert len({record.shard for record in appended}) == 1
    assert [record.offset for record in appended] == [0, 1, 2]
    assert {clicks.put("x", key=str(number)).shard for number in range(20)} == {0, 1}


def test_pages_continue_at_their_cursor(clicks):
    clicks.put_many(list("abcde"), key="x")
    first = clicks.read_page(limit=2)
    second = clicks.read_page(cursor=first.next_cursor)
    end = clicks.read_page(cursor=second.next_cursor)

    assert 1 <= len(first.records) <= 2
    assert texts([*first.records, *second.records]) == list("abcde")
    assert (end.records, end.next_cursor) == ([], second.next_cursor)


def test_shard_shows_its_extent(clicks):
    shard = clicks.put_many(list("abc"), key="x")[0].shard

    page = clicks.read_shard_page(shard, offset=1, limit=1)

    assert (texts(page.records), page.next_offset, page.start, page.tip) == (["b"], 2, 0, 3)
    assert [(each.index, each.next_) for each in clicks.shards() if each.next_] == [(shard, 3)]
    assert clicks.read_shard_page(shard, offset=3).records == []
    with pytest.raises(Gone) as refused:
        clicks.read_shard_page(shard, offset=4)
    assert refused.value.code == "offset_out_of_range"


def test_expected_offset_of_shard_must_match(clicks):
    [first] = clicks.put_to_shard(1, ["a"], expected_offset=0)

    assert (first.shard, first.offset) == (1, 0)
    with pytest.raises(Exception, match="offset_mismatch"):
        clicks.put_to_shard(1, ["b"], expected_offset=0)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda stream: stream.read_shard_page(7), "shard_not_found"),
        (lambda stream: stream.read_page(cursor="nonsense"), "invalid_cursor"),
    ],
)
def test_unknown_place_is_rejected(clicks, call, code):
    with pytest.raises(Exception, match=code):
        call(clicks)


def test_position_of_deleted_stream_is_gone(clicks):
    clicks.put("a", key="x")
    page, stream_id = clicks.read_page(), clicks.read_shard_page(0).stream_id
    clicks.delete()
    clicks.create(shards=2)

    with pytest.raises(Gone) as refused:
        clicks.read_shard_page(0, stream_id=stream_id)
    assert refused.value.code == "stream_recreated"
    with pytest.raises(BadRequest) as invalid:
        clicks.read_page(cursor=page.next_cursor)
    assert invalid.value.code == "invalid_cursor"


def test_members_share_the_shards(clicks, readers):
    for number in range(20):
        clicks.put(str(number), key=str(number))
    with readers.member("ann") as ann, readers.member("bea") as bea:
        ann.commit(ann.fetch(limit=1, wait_seconds=1))
        shards: dict[str, list[int]] = {}
        while [len(of) for of in shards.values()] != [1, 1]:
            for member in (ann, bea):
                read = member.fetch(wait_seconds=0)
                shards[member.name] = list(read.shards)

        members = {member.member: member.assigned for member in readers.details().members}

    assert sorted(shards["ann"] + shards["bea"]) == [0, 1]
    assert members == shards


def test_member_that_leaves_returns_its_shards(clicks, readers):
    clicks.put_many(["a", "b"], key="x")
    with readers.member("ann") as ann:
        texts_of_ann = texts(ann.fetch(wait_seconds=1).records)
    with readers.member("bea") as bea:
        texts_of_bea = texts(bea.fetch(wait_seconds=1).records)

    assert texts_of_ann == texts_of_bea == ["a", "b"]


def test_silent_member_is_removed(backend, millstream, clicks):
    group = millstream.group(clicks.name)
    group.create(clicks.name, session_timeout_seconds=1)
    group.member("ann").fetch(wait_seconds=0)

    backend.advance(2)
    with group.member("bea") as bea:
        while len(bea.fetch(wait_seconds=0).shards) < 2:
            backend.advance(0.1)
        members = [member.member for member in group.details().members]

    assert members == ["bea"]


def test_fetch_after_token_reads_ahead(clicks, readers):
    clicks.put_many(list("abcd"), key="x")
    with readers.member("ann") as ann:
        first = ann.fetch(limit=2, wait_seconds=1)
        second = ann.fetch(wait_seconds=1, after=first.token)
        ann.commit(second)
        rest = ann.fetch(wait_seconds=0)

    assert texts([*first.records, *second.records]) == list("abcd")
    assert rest.records == []


def test_lag_counts_uncommitted_records(clicks, readers):
    clicks.put_many(list("abc"), key="x")
    with readers.member("ann") as ann:
        read = ann.fetch(limit=2, wait_seconds=1)
        ann.commit(read)

    lag = readers.lag()

    left = 3 - len(read.records)
    assert (lag.records, sorted(shard.records for shard in lag.shards)) == (left, [0, left])
    assert lag.lag_seconds >= 0


def test_reset_moves_the_members(clicks, readers):
    clicks.put_many(list("ab"), key="x")
    with readers.member("ann") as ann:
        read = ann.fetch(wait_seconds=1)
        ann.commit(read)
        readers.reset("earliest")

        with pytest.raises((PartlyRefused, Conflict)):
            ann.commit(read)
        again = texts(ann.fetch(wait_seconds=1).records)
        readers.reset("latest")
        latest = texts(ann.fetch(wait_seconds=0).records)

    assert (again, latest) == (["a", "b"], [])


def test_group_starts_at_the_end_or_at_a_time(backend, millstream, clicks, name):
    clicks.put("a", key="x")
    backend.advance(0.01)
    latest, since = millstream.group(f"{name}-latest"), millstream.group(f"{name}-since")
    latest.create(clicks.name, start="latest")
    since.create(clicks.name, start="time", start_time=datetime(2000, 1, 1, tzinfo=UTC))
    clicks.put("b", key="x")

    reads = []
    for group in (latest, since):
        with group.member("ann") as member:
            reads.append(texts(member.fetch(wait_seconds=1).records))

    assert reads == [["b"], ["a", "b"]]


def test_simple_group_reports_offsets_out_of_range(millstream, clicks, name):
    group = millstream.group(name)
    group.create(clicks.name, kind="simple")

    with pytest.raises(Gone) as refused:
        group.commit_positions({0: 5})
    with pytest.raises(PartlyRefused) as partly:
        group.commit_positions({0: 0, 1: 5})

    _, last = partly.value.results
    assert isinstance(last, ItemRefused)
    assert refused.value.code == last.code == "offset_out_of_range"


def test_unknown_stream_and_group_are_not_found(millstream, name):
    codes = []
    for call in (
        lambda: millstream.stream(name).put("x"),
        lambda: millstream.group(name).create(name),
        lambda: millstream.group(name).member("ann").fetch(wait_seconds=0),
        lambda: millstream.group(name).reset(),
    ):
        with pytest.raises(NotFound) as refused:
            call()
        codes.append(refused.value.code)

    assert codes == ["stream_not_found", "stream_not_found", "group_not_found", "group_not_found"]
