"""Plans of joins of two streams: bounds of their event times, and rows equal to Spark's own."""

import json
from collections.abc import Mapping
from itertools import zip_longest
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.executor import Executor, JoinSide, MergeInput, Partials, State
from spark_worker.views.inputs.tables import ParsedTables
from spark_worker.views.planning.planner import ViewPlanner
from spark_worker.views.planning.plans import JSON
from spark_worker.views.planning.prepared import PreparedView
from spark_worker.views.planning.records import (
    declared_columns,
    parsed_columns,
    parsed_table,
    raw_table,
    relation,
    visible,
)
from spark_worker.views.sessions import merge_sessions, session_keys
from storage.domain import limits
from storage.domain.streams.stream import LogRecord
from storage.domain.views.row_key import encode_key, key_values
from storage.domain.views.view import ViewInput, ViewQuery, ViewTable
from storage.views.scans import StoredState
from tests.spark.views.records import COLUMNS, clicks, split
from tests.spark.views.test_planner import TABLE_COLUMNS, ordered, same, users

INPUTS = {"a": ViewInput(stream="a", columns=COLUMNS), "b": ViewInput(stream="b", columns=COLUMNS)}
TABLES = {"u": ViewTable(stream="users", columns=TABLE_COLUMNS)}
ON = "on a.person = b.person and b.event_time between a.event_time - interval 1 minute and a.event_time + interval 3 minutes"
QUERIES = {
    "count": f"select a.page, count(*) n, sum(b.ms) ms from a join b {ON} group by a.page",
    "no group": f"select count(*) n, max(a.price + b.price) p from b join a {ON}",
    "where": "select a.page, b.page other, count(*) n from a join b on a.person = b.person where a.event_time <= b.event_time and b.event_time < a.event_time + interval '2' minute and a.ok group by 1, 2",
    "subqueries": "with x as (select person p, event_time t, ms from a where ms > 10) select y.page, avg(x.ms - y.ms) d from x join (select person p, page, ms, event_time from b where ok) y on x.p = y.p and y.event_time between x.t and x.t + interval 5 minutes group by 1",
    "window": f"select window(b.event_time, '10 minutes').start s, a.page, count(*) n from a join b {ON} group by 1, 2",
    "hopping": f"select window(a.event_time, '10 minutes', '5 minutes') w, count(distinct b.page) n from a join b {ON} group by 1",
    "session": f"select a.page, session_window(a.event_time, '4 minutes') w, count(*) n, max(b.ms) m from a join b {ON} group by 1, 2",
    "places": f"select a.page, first(b.person) f, last(b.ms) ignore nulls l, max_by(b.page, b.ms) m from a join b {ON} group by a.page",
    "list": f"select a.person, collect_list(b.ms) l, array_sort(collect_set(a.page)) s from a join b {ON} group by 1",
    "table": f"select u.plan, count(*) n from a join b {ON} left join u on u.key = a.person group by 1",
    "explode": f"select t, count(*) n from (select a.page, b.page other from a join b {ON}) lateral view explode(array(page, other)) as t group by t",
    "records": f"select a.key, count(b.value) n, min(b.offset + a.shard) o, max(b.arrival_time) t from a join b {ON} group by 1",
    "left": f"select a.page, count(*) n, count(b.person) pairs, sum(b.ms) ms, sum(a.ms) own from a left join b {ON} group by 1",
    "right": f"select b.page, count(*) n, count(a.person) pairs, sum(b.ms + a.ms) ms, max(b.offset) o from a right join b {ON} group by 1",
    "left in order": f"select a.page, max_by(b.page, b.ms) p, count(distinct b.page) d, min(b.event_time) t from b right join a {ON} group by 1",
    "without a match": f"select a.page, count(*) n, min(a.event_time) t from a left join b {ON} where b.offset is null group by 1",
    "conditions": f"select a.page, count(*) n, count(b.ms) m from a left join b {ON} and a.ok and b.ms > 20 where a.ms > 10 group by 1",
    "left subqueries": f"with x as (select *, ms * 2 twice from b where ok) select a.person, count(*) n, sum(coalesce(b.twice, -1)) s from (select * from a where ms > 5) a left join x b {ON} group by 1",
    "left window": f"select window(a.event_time, '10 minutes').start s, count(*) n, count_if(b.key is null) alone from a left join b {ON} group by 1",
    "left session": f"select a.page, session_window(a.event_time, '4 minutes') w, count(*) n, count(b.ms) m from a left join b {ON} group by 1, 2",
    "left table": f"select u.plan, count(*) n, count(b.ms) m from a left join b {ON} left join u on u.key = coalesce(b.person, a.person) group by 1",
    "left explode": f"select t, count(*) n from (select a.page, b.page other from a left join b {ON}) lateral view explode(array(page, other)) as t group by t",
    "having": f"select a.page, count(*) n from a join b {ON} group by 1 having count(*) > 20",
}
PLACE = "greatest(a.arrival_time, b.arrival_time), a.arrival_time, a.shard, a.offset, b.arrival_time, b.shard, b.offset"
IN_ORDER = {
    "list": f"select a.person, transform(array_sort(collect_list(struct({PLACE}, b.ms as v)) filter (where b.ms is not null)), x -> x.v) l, array_sort(collect_set(a.page)) s from a join b {ON} group by 1",
    "places": f"select a.page, min_by(b.person, struct({PLACE})) f, max_by(b.ms, struct({PLACE})) filter (where b.ms is not null) l, max_by(b.page, struct(b.ms, {PLACE})) filter (where b.ms is not null) m from a join b {ON} group by a.page",
}
"""Queries whose aggregates name the order that those of a view have by themselves."""
WAITS_MS = {
    "b.event_time between a.event_time and a.event_time + interval 10 minutes": (600_000, 0),
    "a.event_time between b.event_time - interval 1 hour and b.event_time + interval '1' day": (
        3_600_000,
        86_400_000,
    ),
    "b.event_time >= a.event_time + interval 5 minutes and b.event_time < a.event_time + interval 9 minutes": (
        540_000,
        0,
    ),
    "b.event_time = a.event_time": (0, 0),
    "b.event_time > a.event_time and b.event_time < a.event_time + 2 * interval 90 seconds and b.event_time < a.event_time + interval 1 hour": (
        180_000,
        0,
    ),
    "not (b.event_time < a.event_time or b.event_time > a.event_time + interval 3 milliseconds)": (
        3,
        0,
    ),
}
REFUSED = {
    "select a.page, count(*) n from a join b on a.person = b.person group by 1": "bounds of their event times",
    "select a.page, count(*) n from a join b on a.person = b.person and b.event_time > a.event_time group by 1": "bounds of their event times",
    "select a.page, count(*) n from a join b on a.person = b.person and b.event_time between a.event_time and a.event_time + interval 1 month group by 1": "bounds of their event times",
    "select a.page, count(*) n from a join b on a.person = b.person and b.at between a.at and a.at + interval 1 hour group by 1": "bounds of their event times",
    "select a.page, count(*) n from a join b on a.person = b.person and b.event_time between a.event_time and a.event_time + interval 31 days group by 1": "more than 30 days",
    "select a.page, count(*) n from a join b on a.event_time between b.event_time and b.event_time + interval 1 minute group by 1": "without an equality",
    f"select u.plan, count(*) n from a join u on u.key = a.person left join b {ON} group by 1": "a left outer join of streams that are joined with a table",
    f"select a.page, count(*) n from a left anti join b {ON} group by 1": "a left anti join of streams",
    "select a.page, count(*) n from a left join b on a.person = b.person where b.event_time is null or b.event_time between a.event_time and a.event_time + interval 1 minute group by 1": "bounds of their event times",
    f"select a.page, count(*) n from a full join b {ON} group by 1": "a full outer join of streams",
    f"select a.page, count(*) n from a left semi join b {ON} group by 1": "a left semi join of streams",
    f"select a.page, count(*) n from a join b {ON} join a c on c.person = a.person group by 1": "more than two streams",
    f"select page, count(*) n from (select a.page from a join b {ON} union all select page from a) group by 1": "a union of joins",
    "select page, count(*) n from (select page from a union all select page from b) group by 1": "a union of joins",
    "select page, count(*) n from a group by 1": "does not join them",
    f"select a.page, b.page other from a join b {ON}": "without group by",
    f"select a.page, count(*) n from a join b {ON} and false group by 1": "without rows",
}


def query(sql: str) -> ViewQuery:
    return ViewQuery(sql=sql, inputs=INPUTS, tables=TABLES if " u " in sql else {})


class _View:
    """Rows of a view of two streams, none of whose records are late."""

    def __init__(self, executor: Executor, prepared: PreparedView, tables: Mapping[str, Any]):
        self._executor = executor
        self._prepared = prepared
        self._tables = tables
        self._buffered = {name: self._parsed(name, {}) for name in prepared.joined}
        self._states: dict[bytes, StoredState] = {}
        self._rows: dict[bytes, str | None] = {}

    def _parsed(self, name: str, records: dict[int, list[LogRecord]]) -> pa.Table:
        return self._executor.parsed(self._prepared.joined[name], raw_table(records, None))

    def add(
        self, batch: Mapping[str, dict[int, list[LogRecord]]], *, is_last: bool = False
    ) -> None:
        """Add the records of a batch, with which all cease to wait if it is the last."""
        sides = {
            name: JoinSide.of(self._buffered[name], self._parsed(name, records))
            for name, records in sorted(batch.items())
        }
        preserved = self._prepared.plan.join_preserved
        expired = {preserved: sides[preserved].all_records} if preserved and is_last else {}
        partials = self._executor.join(self._prepared, sides, expired, self._tables)
        self._buffered = {name: side.all_records for name, side in sides.items()}
        merge = self._with_stored(partials)
        [merged] = self._executor.merge({0: self._prepared}, {0: merge.states}).values()
        for old in (old for olds in merge.replaced.values() for old in olds):
            del self._rows[old], self._states[old]
        for row in merged:
            key = encode_key(key_values(row.key), self._prepared.plan.key)
            self._rows[key] = row.row
            self._states[key] = StoredState(row.state, {}, row.window_end_ms)

    def _with_stored(self, partials: Partials) -> MergeInput:
        columns = self._prepared.plan.key
        if self._prepared.plan.session_gap_ms is not None:
            keys = session_keys(partials, columns)
            others = {one.others for one in keys}
            stored = {
                key: state for key, state in self._states.items() if key.startswith(tuple(others))
            }
            return merge_sessions(partials, keys, stored, columns)
        keys_of = {encode_key(key_values(one.key), columns): one.key for one in partials.states}
        stored_states = [
            State(keys_of[key], state.state)
            for key, state in self._states.items()
            if key in keys_of
        ]
        return MergeInput([*partials.states, *stored_states])

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows."""
        return [json.loads(row) for row in self._rows.values() if row is not None]


def at_once(
    planner: ViewPlanner, sql: str, records: Mapping[str, dict[int, list[LogRecord]]]
) -> list[dict[str, Any]]:
    """Return the rows of Spark's own evaluation over all records."""
    from pyspark.sql import functions as sf

    for name, of_stream in records.items():
        raw = planner.spark.createDataFrame(raw_table(of_stream, None))
        input_ = INPUTS[name]
        seen = relation(raw, input_, declared_columns(input_), None)
        visible(seen, input_, drops_late=False).createOrReplaceTempView(name)
    frame = planner.spark.sql(sql).selectExpr("struct(*) as row")
    return [json.loads(row[0]) for row in frame.select(sf.to_json("row", JSON)).collect()]


@pytest.mark.parametrize("name", QUERIES)
def test_rows_equal_the_join_of_all_records(planner, executor, name):
    check_rows(planner, executor, name)


@pytest.mark.parametrize("name", ["left", "list", "table"])
def test_rows_are_equal_where_the_tasks_read_the_records(planner, executor, name, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_RELATION_BYTES_MAX", 0)

    check_rows(planner, executor, name)


def check_rows(planner: ViewPlanner, executor: Executor, name: str) -> None:
    """Compare the rows of batches with Spark's own evaluation over all records."""
    random = Random(name)
    asked = query(QUERIES[name])
    prepared = planner.prepare(asked)
    table, parsed = users(random, 20), ParsedTables(planner.plans)
    tables = {
        one: parsed.rows(table, TABLE_COLUMNS, parser) for one, parser in prepared.tables.items()
    }
    view = _View(executor, prepared, tables)
    records = {one: clicks(random, 200) for one in INPUTS}

    batches = [split(random, one) for one in records.values()]
    for own, other in zip_longest(*batches, fillvalue=dict[int, list[LogRecord]]()):
        view.add({"a": own, "b": other})
    view.add({"a": {}, "b": {}}, is_last=True)

    seen = parsed_table(planner.spark.createDataFrame(table.arrow()), parsed_columns(TABLE_COLUMNS))
    seen.createOrReplaceTempView("u")
    rows, expected = [
        ordered(each)
        for each in (view.rows(), at_once(planner, IN_ORDER.get(name, asked.sql), records))
    ]
    for one in ("a", "b", "u"):
        planner.spark.catalog.dropTempView(one)
    assert len(rows) == len(expected) > 0
    for row, other_row in zip(rows, expected, strict=True):
        assert same(row, other_row), (row, other_row)


PRESERVED = {
    f"from a left join b {ON}": "a",
    f"from a right join b {ON}": "b",
    f"from a join b {ON}": "",
    f"from a left join b {ON} where b.ms > 5": "",
    f"from a left join b {ON} where b.ms is null": "a",
}


@pytest.mark.parametrize("relation", PRESERVED)
def test_stream_is_preserved_unless_a_condition_excludes_its_rows(planner, relation):
    plan = planner.prepare(query(f"select a.page, count(*) n {relation} group by 1")).plan

    assert plan.join_preserved == PRESERVED[relation]


@pytest.mark.parametrize("bounds", WAITS_MS)
def test_records_wait_as_long_as_the_bounds_say(planner, bounds):
    sql = f"select a.page, count(*) n from a join b on a.person = b.person and {bounds} group by 1"

    plan = planner.prepare(query(sql)).plan

    waits_ms = WAITS_MS[bounds]
    assert (plan.join_waits_ms["a"], plan.join_waits_ms["b"]) == waits_ms
    assert plan.join_delay_ms == max(waits_ms)


@pytest.mark.parametrize("sql", REFUSED)
def test_join_that_cannot_be_kept_up_to_date_is_refused(planner, sql):
    with pytest.raises(SqlRefused) as caught:
        planner.prepare(query(sql))
    assert REFUSED[sql] in str(caught.value)


def test_records_are_parsed_to_the_columns_that_are_used(planner, executor):
    prepared = planner.prepare(query(QUERIES["count"]))
    records = clicks(Random(1), 50)

    table = executor.parsed(prepared.joined["a"], raw_table(records, None))

    used = {name for name in table.column_names if table.column(name).null_count < 50}
    assert used == {"page", "person", "event_time", "shard", "offset", "_bad"}
