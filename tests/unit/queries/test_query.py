"""Queries: faults of what is requested, and the pieces of what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.queries.query import QueryStream, SqlQuery, StreamRanges
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.start_at import StartAt
from storage.domain.views.view import ViewTable

CLICKS = QueryStream(stream="clicks")
QUERY = SqlQuery(sql="select 1 from c", streams={"c": CLICKS})
TOO_MANY = {f"c{nth}": CLICKS for nth in range(limits.QUERY_RELATIONS_MAX + 1)}


def test_query_of_every_kind_of_relation_is_valid():
    query = replace(QUERY, tables={"u": ViewTable(stream="users")}, views={"v": "rows"})

    query.check()
    assert query.relations == ("c", "u", "v")
    assert [*query.sources()] == [("c", "stream", "clicks"), ("u", "table", "users")]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        (replace(QUERY, sql=" "), "/sql"),
        (replace(QUERY, sql="x" * (limits.SQL_CHARACTERS_MAX + 1)), "/sql"),
        (replace(QUERY, streams={}), "/from"),
        (replace(QUERY, streams=TOO_MANY), "/from"),
        (replace(QUERY, streams={"C": CLICKS}), "/from"),
        (replace(QUERY, streams={"c": replace(CLICKS, stream="a b")}), "/from/c/stream"),
        (replace(QUERY, streams={"c": replace(CLICKS, start=StartAt.LATEST)}), "/from/c/start"),
        (replace(QUERY, streams={"c": replace(CLICKS, start_time_ms=1)}), "/from/c/start_time"),
        (replace(QUERY, views={"v": ""}), "/from/v/view"),
        (replace(QUERY, rows_max=limits.QUERY_ROWS_MAX + 1), "/rows_max"),
        (replace(QUERY, time_limit_ms=limits.QUERY_MS_MAX + 1), "/seconds_max"),
    ],
)
def test_faults_have_pointers(query, pointer):
    with pytest.raises(ValidationFailed) as refused:
        query.check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**8)), max_size=6),
)
def test_pieces_have_each_offset_once(sizes):
    ranges = [OffsetRange(nth, first, first + size) for nth, (first, size) in enumerate(sizes)]
    pieces = StreamRanges("s", tuple(ranges)).pieces()

    for within in ranges:
        cuts = [piece for piece in pieces if piece.shard == within.shard]
        edges = [within.first, *(piece.end for piece in cuts)]
        assert [piece.first for piece in cuts] == edges[:-1]
        assert edges[-1] == within.end
    assert all(piece.first < piece.end for piece in pieces)
    assert len(pieces) <= limits.QUERY_PIECES_MAX + len(ranges) + 1
