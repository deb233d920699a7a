"""Plans of views: rows after any split into batches equal the query over all records."""

import json
import math
import threading
from collections.abc import Mapping, Sequence
from itertools import cycle
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]

from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.executor import NO_TABLES, Executor, State
from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.tables import ParsedTables, StreamTable
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
from storage.domain import limits
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import LogRecord
from storage.domain.views.plan import KeyColumn, ViewColumn
from storage.domain.views.view import BadPolicy, ViewInput, ViewQuery, ViewTable
from tests.spark.views.records import COLUMNS, START_MS, clicks, split

Batches = list[dict[int, list[LogRecord]]]

QUERIES = {
    "count": "select page, count(*) as clicks from c group by page",
    "no group": "select count(*) n, sum(ms) s, min(ms) low, max(ms) high from c",
    "no aggregate": "select page, person from c group by page, person",
    "window": "select page, window(event_time, '5 minutes').start as since, count(*) n from c group by 1, 2",
    "whole window": "select window(event_time, '10 minutes') w, count(ms) n from c group by 1",
    "hopping": "select window(event_time, '10 minutes', '5 minutes').end as until, sum(ms) s from c group by 1",
    "having": "select page, count(*) n from c group by page having count(*) > 40 and avg(ms) > 100",
    "above": "select upper(page) p, n / 2 half from (select page, count(*) n from c group by page) where n > 30",
    "below": "select length(v) size, count(*) n from (select value v from c where key = 'ann') group by 1",
    "mean": "select person, avg(ms) m, avg(price) p, sum(price) s, sum(ms) / count(ms) r from c group by person",
    "spread": "select page, stddev(ms) a, stddev_pop(ms) b, variance(ms) d, var_pop(price) e from c group by page",
    "logic": "select person, bool_and(ok) a, bool_or(ok) o, count_if(ok) n, every(ms > 3) e from c group by person",
    "extremes": "select page, max_by(person, arrival_time) a, min_by(struct(person, price).price, offset + shard / 2) b from c where ms is not null group by page",
    "places": "select key, first(person) f, last(person) l, first(ms) ignore nulls g, any_value(offset) a from c group by key",
    "filter": "select page, count(*) filter (where ok) n, avg(ms) filter (where ms > 500) m, sum(price) filter (where ok) p from c group by page",
    "filtered places": "select page, first(person) filter (where ok) f, last(ms) filter (where ms > 500) l, any_value(ok) filter (where ms < 9) ignore nulls a, max_by(person, ms) filter (where ok) m from c group by page",
    "types": "select ok, cast(at as date) d, price, max(at) t, min(cast(ms as double)) f, max(data) b from c group by 1, 2, 3",
    "nested": "select t, count(*) n from c lateral view explode(array(page, person)) as t group by t",
    "union": "select p, count(*) n from (select page p from c union all select person p from c where ok) group by p",
    "common": "with a as (select page, ms from c where ms > 10), b as (select page, sum(ms) s from a group by page) select * from b where s > 0",
    "lambda": "select transform(array(max(ms)), x -> x + 1) t, person from c group by person",
    "headers": "select cast(headers['source'] as string) s, count(*) n from c group by 1",
    "twice": "select page, count(*) n, count(*) + 1 m, page as again from c group by page",
    "distinct": "select page, count(distinct person) n, count(distinct person, ok) b, count(distinct price) filter (where ok) p, count(distinct at) a, min(distinct ms) m from c group by page",
    "set": "select page, array_sort(collect_set(person)) p, size(collect_set(price)) n, array_sort(collect_set(data)) d from c where page = '/' group by page",
    "set of structs": "select ok, array_sort(collect_set(struct(page, price, at))) s, count(distinct struct(page, ok)) n, count(distinct data) d, count(distinct page, at, data) filter (where ms > 9) m from c group by ok",
    "list": "select page, slice(collect_list(ms), -3, 3) l, array_agg(struct(person, ok)) filter (where ms > 900) a from c where ms is not null group by page having size(collect_list(page)) > 3",
    "case": "select case when ms > 100 then 'slow' else 'fast' end speed, count(*) n from c group by 1",
}


def query(sql: str, **fields: Any) -> ViewQuery:
    return ViewQuery(sql=sql, inputs={"c": ViewInput(stream="clicks", columns=COLUMNS, **fields)})


def both_forms(planner: ViewPlanner, asked: ViewQuery) -> list[PreparedView]:
    """Plan a query over parsed records, as for many, and over raw ones."""
    view = planner.prepare(asked)
    return [view, planner.over_raw(view)]


def incremental(
    executor: Executor,
    views: Sequence[PreparedView],
    batches: Batches,
    tables: Mapping[str, Any] = NO_TABLES,
) -> list[dict[str, Any]]:
    """Return the rows of a view after its batches, which its forms compute in turn."""
    stored: dict[str, State] = {}
    rows: dict[str, str | None] = {}
    for view, batch in zip(cycle(views), batches, strict=False):
        [partials] = executor.partials({0: view}, {0: raw_table(batch, None)}, {0: tables}).values()
        before = [stored[one.key] for one in partials.states if one.key in stored]
        [merged] = executor.merge({0: view}, {0: [*partials.states, *before]}).values()
        for row in merged:
            stored[row.key] = State(row.key, row.state)
            rows[row.key] = row.row
    return [json.loads(row) for row in rows.values() if row is not None]


def at_once(planner: ViewPlanner, asked: ViewQuery, batches: Batches) -> list[dict[str, Any]]:
    """Return the rows of Spark's own evaluation over all records."""
    every: dict[int, list[LogRecord]] = {}
    for batch in batches:
        for shard, records in batch.items():
            every.setdefault(shard, []).extend(records)
    spark = planner.spark
    raw = spark.createDataFrame(raw_table(every, None))
    seen = relation(raw, asked.input, declared_columns(asked.input), None)
    visible(seen, asked.input, drops_late=False).orderBy(
        "arrival_time", "shard", "offset"
    ).coalesce(1).createOrReplaceTempView("c")
    frame = spark.sql(asked.sql)
    encoded = frame.selectExpr("struct(*) as row").select(_to_json("row")).collect()
    return [json.loads(row[0]) for row in encoded]


def _to_json(column: str) -> Any:
    from pyspark.sql import functions as sf

    return sf.to_json(column, JSON)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    return bool(left == right)


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        rows,
        key=lambda row: json.dumps(
            {
                name: round(value, 3) if isinstance(value, float) else value
                for name, value in row.items()
            }
        ),
    )


@pytest.mark.parametrize("name", QUERIES)
def test_rows_equal_the_query_over_all_records(planner, executor, name):
    random = Random(name)
    asked = query(QUERIES[name])
    views = both_forms(planner, asked)

    batches = split(random, clicks(random, 300))
    rows, expected = incremental(executor, views, batches), at_once(planner, asked, batches)

    assert len(rows) == len(expected) > 0
    for row, other in zip(ordered(rows), ordered(expected), strict=True):
        assert same(row, other), (row, other)


JOINS = {
    "left": "select u.plan, count(*) n, sum(ms) ms from c left join u on c.person = u.key group by u.plan",
    "inner": "select plan, u.born, count(ms) n from u join c on person = u.key and ms > 10 group by 1, 2",
    "right": "select plan, count(*) n from u right join c on person = u.key group by plan",
    "semi": "select page, count(*) n from c left semi join u on person = u.key group by page",
    "anti": "select page, count(*) n from c left anti join u on person = u.key group by page",
    "value": "select u.value, count(*) n from c join u on person = u.key group by 1",
    "aggregated": "select p.users, count(*) n from c join u on person = u.key join (select plan, count(*) users from u group by plan) p on p.plan = u.plan group by 1",
    "twice": "select a.plan, b.plan as other, count(*) n from c join u a on person = a.key left join u b on a.born = b.born and a.key > b.key group by 1, 2",
    "window": "select window(event_time, '10 minutes').start s, plan, max(page) f from c join u on person = u.key group by 1, 2",
    "renamed": "with known as (select key as id, upper(plan) as plan from u where born is not null) select plan, max(price) p from c join known on id = person group by plan",
}
TABLE_COLUMNS = "plan string, born date, ids array<decimal(5,1)>"


def users(random: Random, count: int) -> StreamTable:
    """Return a table of users, some of whom are not JSON."""
    table = StreamTable(StreamName("users"))
    for number in range(count):
        fields = {
            "plan": random.choice(("free", "pro", None)),
            "born": f"19{random.randrange(70, 99)}-01-02",
            "ids": [1.5, None],
        }
        data = json.dumps(fields).encode()
        table.put(f"u{number}", data if random.random() < 0.9 else b"not JSON")
    return table


@pytest.mark.parametrize("name", JOINS)
def test_rows_equal_the_join_over_all_records(planner, executor, name):
    random = Random(name)
    users_table = ViewTable(stream="users", columns=TABLE_COLUMNS)
    asked = replace(query(JOINS[name]), tables={"u": users_table})
    views, table = both_forms(planner, asked), users(random, 20)
    parsed = ParsedTables(planner.plans)

    batches = split(random, clicks(random, 300))
    rows = incremental(
        executor, views, batches, {"u": parsed.rows(table, TABLE_COLUMNS, views[0].tables["u"])}
    )
    records = planner.spark.createDataFrame(table.arrow())
    parsed_table(records, parsed_columns(TABLE_COLUMNS)).createOrReplaceTempView("u")
    expected = at_once(planner, asked, batches)
    planner.spark.catalog.dropTempView("u")

    assert len(rows) == len(expected) > 0
    for row, other in zip(ordered(rows), ordered(expected), strict=True):
        assert same(row, other), (row, other)


def test_table_has_the_newest_record_of_each_key():
    table = StreamTable(StreamName("users"))
    for data in (b'{"plan": "free"}', b'{"plan": "pro"}', b"", b"null", b" null\n", b"{}"):
        table.put("ann", data)
        table.put("bob", data or b"1")

    assert table.arrow().to_pydict() == {"key": ["ann", "bob"], "data": [b"{}", b"{}"]}


def test_table_above_its_limits_fails(monkeypatch):
    table = StreamTable(StreamName("users"))
    monkeypatch.setattr(limits, "VIEW_TABLE_ROWS_MAX", 2)
    monkeypatch.setattr(limits, "VIEW_TABLE_BYTES_MAX", 10)
    for key in ("a", "b", "a", "b"):
        table.put(key, b"12345")
    table.check_size()
    table.put("a", b"123456")
    with pytest.raises(ViewFailed, match="bytes"):
        table.check_size()
    for key in ("a", "b", "c"):
        table.put(key, b"1")
    with pytest.raises(ViewFailed, match="keys"):
        table.check_size()


def test_sketches_estimate_within_their_error(planner, executor):
    sql = "select approx_count_distinct(person) n, approx_percentile(ms, 0.5) m, approx_count_distinct(price) p from c"
    views = both_forms(planner, query(sql))
    random = Random(5)

    [row] = incremental(executor, views, split(random, clicks(random, 2_000)))

    assert row["n"] == 30
    assert 450 < row["m"] < 550
    assert 1_500 < row["p"] < 1_800


def test_percentile_of_filtered_records(planner, executor):
    views = both_forms(
        planner, query("select approx_percentile(ms, 0.5) filter (where ok) m from c")
    )
    random = Random(6)

    [row] = incremental(executor, views, split(random, clicks(random, 2_000)))

    assert 420 < row["m"] < 580


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select page, count(*) n from c where 1 = 0 group by page", []),
        ("select count(*) n, max(ms) m from c where cast(null as boolean)", [{"n": 0, "m": None}]),
    ],
)
def test_query_whose_filter_is_always_false_has_no_records(planner, executor, sql, rows):
    records = clicks(Random(8), 20)
    for view in both_forms(planner, query(sql)):
        assert incremental(executor, [view], [records]) == rows
        [partials] = executor.partials({0: view}, {0: raw_table(records, None)}).values()
        assert sum(each.records for each in partials.stats.values()) == 20


def test_event_time_that_a_key_cannot_store_is_bad(planner, executor):
    """Milliseconds as a JSON number are read as seconds: the year is far away."""
    asked = query(
        "select window(event_time, '1 minute') w, count(*) n from c group by 1", event_time="at"
    )
    times = (b'"2026-11-29T10:00:00Z"', b"1796000000000", b'"0000-01-01T00:00:00Z"', b"null")
    records = [
        LogRecord(nth, START_MS, Record(b'{"at": %b}' % time)) for nth, time in enumerate(times)
    ]

    for view in both_forms(planner, asked):
        [partials] = executor.partials({0: view}, {0: raw_table({0: records}, None)}).values()

        starts = {json.loads(one.key)["k0"]["start"][:4] for one in partials.states}
        assert starts == {"2026"}
        assert partials.stats[0].bad == 2


def test_types_of_many_fields_are_stored(planner, executor):
    fields = ", ".join(f"'f{nth}', ms + {nth}" for nth in range(40))
    sql = f"select page, max(named_struct({fields})) m, size(collect_set(struct(ms as `a b`))) n from c group by page"
    random = Random(9)
    batches = split(random, clicks(random, 60))

    rows = incremental(executor, both_forms(planner, query(sql)), batches)

    expected = at_once(planner, query(sql), batches)
    assert [*map(str, ordered(rows))] == [*map(str, ordered(expected))]


def test_plan_names_columns_key_and_window(planner):
    plan = planner.prepare(
        query(
            "select window(event_time, '10 minutes', '5 minutes').start as since, count(*) n, page from c group by 1, page, ok"
        )
    ).plan

    assert plan.columns == (
        ViewColumn("since", "timestamp"),
        ViewColumn("n", "bigint"),
        ViewColumn("page", "string"),
    )
    assert plan.key == (
        KeyColumn("page", "string"),
        KeyColumn("", "boolean"),
        KeyColumn("since", "timestamp", True),
    )
    assert plan.window_ms == (600_000, 300_000)
    assert plan.aggregates == ("count(1)",)


REFUSED = {
    "select page from c": "a query without group by",
    "select distinct page from c": "select distinct",
    "select page, sum(distinct ms) from c group by page": "sum(distinct",
    "select page, count(distinct cast(ms as double)) from c group by page": "count(distinct double)",
    "select page, collect_set(struct(price, cast(ms as float) as f)) from c group by page": "collect_set(distinct float)",
    "select page, listagg(person) from c group by page": "listagg",
    "select v, collect_list(v) from (select value v from c) group by v": "without arrival_time, shard and offset",
    "select a.page, count(*) n from c a join c b on a.key = b.key group by 1": "a join of the stream with itself",
    "select plan, count(*) n from u group by plan": "does not read the stream",
    "select plan, count(*) n from c right join u on person = u.key group by 1": "a right outer join",
    "select plan, count(*) n from u left join c on person = u.key group by 1": "a left outer join",
    "select plan, count(*) n from c full join u on person = u.key group by 1": "a full outer join",
    "select plan, count(*) n from c join u on person > u.key group by 1": "without an equality",
    "select plan, count(*) n from c cross join u group by 1": "without a condition",
    "select key, count(*) n from (select key from c union all select key from u) group by 1": "a union with a table",
    "select u.shard, count(*) n from c join u on person = u.key group by 1": "shard",
    "select max(n) from (select page, count(*) n from c group by page)": "a second group by",
    "select window(at, '5 minutes').start s, count(*) n from c group by 1": "event_time",
    "select page, count(*) page from c group by page": "two columns",
    "select page, nothing from c group by page": "nothing",
    "select page, ms from c group by page": "non-aggregating",
    "select headers, count(*) n from c group by headers": "map",
    "select count(*) n, percentile(ms, 0.5) p from c": "percentile",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_query_that_cannot_be_kept_up_to_date_is_refused(planner, sql):
    tables = {"u": ViewTable(stream="users", columns=TABLE_COLUMNS)}
    with pytest.raises(SqlRefused) as caught:
        planner.prepare(replace(query(sql), tables=tables))
    assert REFUSED[sql] in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"columns": "page strin"}, "STRIN"),
        ({"columns": "key string"}, "'key'"),
        ({"columns": "a int, A int"}, "'a'"),
        ({"event_time": "page"}, "not a declared timestamp"),
    ],
)
def test_invalid_input_is_refused(planner, fields, problem):
    asked = ViewInput(stream="clicks", **{"columns": COLUMNS, **fields})
    with pytest.raises(SqlRefused) as caught:
        planner.prepare(ViewQuery(sql="select count(*) n from c", inputs={"c": asked}))
    assert problem in str(caught.value)


def test_bad_records_are_counted_and_skipped_on_request(planner, executor):
    random = Random(3)
    records = clicks(random, 200)
    sql = "select count(*) n from c"
    counted, skipping = (
        planner.prepare(query(sql)),
        planner.prepare(query(sql, on_bad=BadPolicy.SKIP), 1),
    )

    results = executor.partials(
        {0: counted, 1: skipping}, dict.fromkeys((0, 1), raw_table(records, None))
    )
    merged = executor.merge(
        {0: counted, 1: skipping}, {n: each.states for n, each in results.items()}
    )

    bad = sum(each.bad for each in results[0].stats.values())
    assert 0 < bad == sum(each.bad for each in results[1].stats.values())
    assert json.loads(merged[0][0].row or "")["n"] == 200
    assert json.loads(merged[1][0].row or "")["n"] == 200 - bad


def test_late_records_are_counted_by_their_last_window(planner, executor):
    sql = (
        "select window(event_time, '10 minutes', '5 minutes').start s, count(*) n from c group by 1"
    )
    view = planner.prepare(query(sql))
    records = clicks(Random(1), 300)
    watermark_ms = 1_790_000_000_000 + 1_800_000

    [result] = executor.partials({0: view}, {0: raw_table(records, watermark_ms)}).values()

    slide, late = 300_000, 0
    for each in (one for shard in records.values() for one in shard):
        own = each.record.event_time_ms
        time_ms = each.arrival_ms if own is None else own
        late += time_ms // slide * slide + 600_000 <= watermark_ms
    assert sum(each.late for each in result.stats.values()) == late > 0


def test_equal_queries_share_the_code_that_is_compiled(planner, executor):
    """The number of a view was a part of its code, so the JVM compiled that of each anew."""
    metrics = planner.spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
    raw = raw_table({0: _many(limits.VIEW_CODEGEN_RECORDS)}, None)
    compiled = []
    for number in range(3):
        view = planner.prepare(query(QUERIES["window"]), number)
        partials = executor.partials({number: view}, {number: raw})[number]
        executor.merge({number: view}, {number: partials.states * 40})
        compiled.append(metrics.METRIC_COMPILATION_TIME().getCount())

    assert compiled[0] == compiled[1] == compiled[2] > 0


def _many(count: int) -> list[LogRecord]:
    data = b'{"page": "/", "ms": 1}'
    return [LogRecord(offset, START_MS + 60_000 * offset, Record(data)) for offset in range(count)]


def test_calls_of_the_jvm_are_bounded(planner, executor, monkeypatch):
    """A plan took 10,000 calls, since each look at a node was one, and a batch of a view 60."""
    calls = 0
    send = ClientServerConnection.send_command
    thread = threading.get_ident()

    def counted(connection, command, *args):
        nonlocal calls
        calls += threading.get_ident() == thread  # others say what Python has forgotten
        return send(connection, command, *args)

    planner.prepare(query(QUERIES["window"]))
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    views = {number: planner.prepare(query(QUERIES["window"]), number) for number in range(5)}
    planned, calls = calls / len(views), 0
    over_raw = {number: planner.over_raw(view) for number, view in views.items()}
    raw = raw_table({0: _many(10)}, None)
    calls = 0
    partials = executor.partials(over_raw, dict.fromkeys(over_raw, raw))
    executor.merge(over_raw, {number: one.states for number, one in partials.items()})

    assert planned < 2_000
    assert calls / len(views) < 50
