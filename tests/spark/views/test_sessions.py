"""Sessions: rows after any split into batches equal Spark's own sessions over all records."""

import json
import math
from itertools import cycle
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.executor import Executor
from spark_worker.views.planning.planner import ViewPlanner
from spark_worker.views.planning.records import raw_table
from spark_worker.views.sessions import is_in_session, merge_sessions, session_keys
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import LogRecord
from storage.domain.views.plan import KeyColumn, ViewColumn
from storage.domain.views.row_key import WINDOW, encode_key, key_values, session_key
from storage.domain.views.sources import SourceMode, SourceRange
from storage.domain.views.view import ViewQuery
from storage.views.scans import StoredState
from tests.spark.views.records import START_MS, clicks, split
from tests.spark.views.test_planner import Batches, at_once, both_forms, ordered, query, same

pytestmark = pytest.mark.one_store

QUERIES = {
    "key": "select page, session_window(event_time, '40 seconds').start s, count(*) n, max(ms) m from c group by page, session_window(event_time, '40 seconds')",
    "whole": "select session_window(event_time, '5 seconds') w, count(distinct person) n, avg(ms) a from c group by 1",
    "parts": "select person, w.end - w.start as length, min_by(page, struct(arrival_time, shard, offset)) f from (select person, page, arrival_time, shard, offset, session_window(event_time, '3 minutes') w from c) group by person, w",
    "spread": "select page, session_window(event_time, '90 seconds') w, stddev(ms) d, var_pop(price) v, avg(price) a from c group by 1, 2",
    "having": "select session_window(event_time, '2 minutes').end e, ok, price, sum(ms) t from c group by 2, 3, session_window(event_time, '2 minutes') having count(*) > 1",
    "decimal": "select cast(ms / 100 as decimal(9,1)) d, page p, session_window(event_time, '8 minutes') w, count(*) n from c group by 1, 2, 3",
}


class _Store:
    """Rows of a view of sessions, and their states."""

    def __init__(self, planner: ViewPlanner, asked: ViewQuery, executor: Executor) -> None:
        self.rows: dict[bytes, str | None] = {}
        self.states: dict[bytes, StoredState] = {}
        views = both_forms(planner, asked)
        self.columns = views[0].plan.key
        self._views = cycle(views)
        self._executor = executor

    def add(self, batch: dict[int, list[LogRecord]]) -> None:
        view = next(self._views)
        [partials] = self._executor.partials({0: view}, {0: raw_table(batch, None)}).values()
        keys = session_keys(partials, self.columns)
        stored = {
            key: state
            for key, state in self.states.items()
            for own in [session_key(key)]
            if any(
                own.others == one.others and own.start <= one.end and one.start <= own.end
                for one in keys
            )
        }
        merge = merge_sessions(partials, keys, stored, self.columns)
        for old in (old for olds in merge.replaced.values() for old in olds):
            del self.rows[old], self.states[old]
        [merged] = self._executor.merge({0: view}, {0: merge.states}).values()
        for row in merged:
            key = encode_key(key_values(row.key), self.columns)
            self.rows[key] = row.row
            self.states[key] = StoredState(row.state, merge.sources[key], row.window_end_ms)

    def shown(self) -> list[dict[str, Any]]:
        return [json.loads(row) for row in self.rows.values() if row is not None]


@pytest.mark.parametrize("name", QUERIES)
def test_sessions_equal_those_of_all_records(planner, executor, name):
    random = Random(name)
    asked = query(QUERIES[name])
    store = _Store(planner, asked, executor)

    batches = split(random, clicks(random, 300))
    for batch in batches:
        store.add(batch)

    expected = at_once(planner, asked, batches)
    assert len(store.shown()) == len(expected) > 0
    for row, other in zip(ordered(store.shown()), ordered(expected), strict=True):
        assert same(row, other), (row, other)


def _at(*times_ms: int) -> list[LogRecord]:
    return [
        LogRecord(nth, START_MS + nth, Record(b"{}", event_time_ms=START_MS + time_ms))
        for nth, time_ms in enumerate(times_ms)
    ]


@pytest.mark.parametrize(
    ("times_ms", "sessions"),
    [
        ((0, 60_000), 1),  # one that begins where another one ends continues it, as in Spark
        ((0, 60_001), 2),
        ((0, 100_000, 50_000), 1),
        ((0, 130_000, 65_000), 3),
        ((0, 0), 1),
    ],
)
def test_record_joins_the_sessions_that_it_touches(planner, executor, times_ms, sessions):
    asked = query("select session_window(event_time, '1 minute') w, count(*) n from c group by 1")
    store = _Store(planner, asked, executor)
    records = _at(*times_ms)
    for record in records:
        store.add({0: [record]})

    batches: Batches = [{0: records}]
    assert len(store.shown()) == sessions
    assert ordered(store.shown()) == ordered(at_once(planner, asked, batches))


def test_sources_of_a_session_are_those_of_its_parts(planner, executor):
    asked = query("select session_window(event_time, '1 minute') w, count(*) n from c group by 1")
    asked = replace(asked, sources=SourceMode.RANGE)
    view, store = planner.over_raw(planner.prepare(asked)), _Store(planner, asked, executor)
    records = _at(0, 200_000, 100_000, 50_000)
    store.add({0: records[:2], 1: records[:1]})
    store.add({0: records[2:]})

    long, short = sorted(store.states.items())
    assert long[1].sources == {0: SourceRange(0, 3, 3), 1: SourceRange(0, 0, 1)}
    assert short[1].sources == {0: SourceRange(1, 1, 1)}
    found = [
        (one.shard, one.offset)
        for one in executor.contributors(view, raw_table({0: records}, None))
        if is_in_session(one.key, long[0], view.plan.key)
    ]
    assert sorted(found) == [(0, 0), (0, 2), (0, 3)]


def test_variance_of_a_session_that_joins_several(planner, executor):
    """Three states merge at once, where a batch joins two stored sessions."""
    asked = query(
        "select session_window(event_time, '1 minute') w, var_pop(ms) v, stddev(ms) d from c group by 1"
    )
    store = _Store(planner, asked, executor)
    records = [
        LogRecord(nth, START_MS, Record(b'{"ms": %d}' % ms, event_time_ms=START_MS + at_ms))
        for nth, (at_ms, ms) in enumerate([(0, 0), (100_000, 10), (50_000, 5)])
    ]
    for record in records:
        store.add({0: [record]})

    batches: Batches = [{0: records}]
    [row], [expected] = store.shown(), at_once(planner, asked, batches)
    assert same(row, expected)
    assert math.isclose(row["v"], 50 / 3)


def test_plan_of_sessions_names_their_start(planner):
    plan = planner.prepare(query(QUERIES["key"])).plan

    assert plan.columns[1] == ViewColumn("s", "timestamp")
    assert plan.key == (KeyColumn("page", "string"), KeyColumn("s", WINDOW, True))
    assert (plan.window_ms, plan.session_gap_ms) == (None, 40_000)


def test_late_records_are_those_whose_own_session_has_ended(planner, executor):
    view = planner.prepare(query(QUERIES["whole"]))
    records = {0: _at(0, 4_999, 5_000, 5_001)}

    [result] = executor.partials({0: view}, {0: raw_table(records, START_MS + 10_000)}).values()

    assert result.stats[0].late == 3


REFUSED = {
    "select session_window(event_time, '1 minute').start s, count(*) n from c group by 1": "a part of a session",
    "select session_window(at, '1 minute') s, count(*) n from c group by 1": "event_time",
    "select session_window(event_time, '1 minute') s, window(event_time, '1 minute') w, count(*) n from c group by 1, 2": "several windows",
    "select session_window(event_time, concat(page, ' minutes')) s, count(*) n from c group by 1": "duration of this form",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_sessions_that_cannot_be_kept_up_to_date_are_refused(planner: ViewPlanner, sql: str):
    with pytest.raises(SqlRefused) as caught:
        planner.prepare(query(sql))
    assert REFUSED[sql] in str(caught.value)
