"""Sources of rows: ranges after any split into batches, and the records that they are made of."""

from collections import defaultdict
from itertools import cycle
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.planning.records import raw_table
from storage.domain.views.row_key import encode_key, key_values
from storage.domain.views.sources import SourceMode, SourceRange, Sources, merge_sources
from storage.domain.views.view import ViewQuery, ViewTable
from tests.spark.views.records import clicks, split
from tests.spark.views.test_planner import TABLE_COLUMNS, at_once, both_forms, query, users

pytestmark = pytest.mark.one_store

# Each with a query over all records that has a row for each key and shard
TRACKED = {
    "key": (
        "select page, count(*) n from c group by page",
        "select page k, shard, offset from c",
    ),
    "no group": (
        "select sum(ms) s from c where ok",
        "select 1 k, shard, offset from c where ok",
    ),
    "window": (
        "select person, window(event_time, '10 minutes').start s, count(*) n from c group by 1, 2",
        "select struct(person, window(event_time, '10 minutes') w) k, shard, offset from c",
    ),
    "hopping": (
        "select window(event_time, '10 minutes', '5 minutes').end as until, count(*) n from c group by 1",
        "select window(event_time, '10 minutes', '5 minutes') k, shard, offset from c",
    ),
    "signed zeros": (
        "select if(ok, 0.0D, -0.0D) z, count(*) n from c group by 1",
        "select if(ok is null, 0, 0) k, shard, offset from c",
    ),
    "renamed": (
        "select length(v) size, stddev(o) d from (select value v, shard s, offset o from c where key = 'ann') group by 1",
        "select length(value) k, shard, offset from c where key = 'ann'",
    ),
    "common": (
        "with a as (select page, offset, shard from c where ms > 10) select page, count(*) n from a group by page",
        "select page k, shard, offset from c where ms > 10",
    ),
    "nested": (
        "select t, count(*) n from c lateral view explode(array(page, person)) as t group by t",
        "select explode(array(page, person)) k, shard, offset from c",
    ),
    "union": (
        "select p, count(*) n from (select page p, shard, offset from c union all select person, shard, offset from c where ok) group by p",
        "select page k, shard, offset from c union all select person, shard, offset from c where ok",
    ),
    "having": (
        "select page, count(*) n from c group by page having count(*) > 1000",
        "select page k, shard, offset from c",
    ),
}


def tracked(sql: str, **fields: Any) -> ViewQuery:
    return replace(query(sql, **fields), sources=SourceMode.RANGE)


def expected(rows: list[dict[str, Any]]) -> list[tuple[Sources, set[tuple[int, int]]]]:
    """Return the sources of each key, and its records, from rows with key, shard and offset."""
    places = defaultdict(list)
    for row in rows:
        places[str(row["k"])].append((row["shard"], row["offset"]))
    return [
        (
            {
                shard: SourceRange(min(offsets), max(offsets), len(offsets))
                for shard, offsets in _by_shard(each).items()
            },
            {*each},
        )
        for each in places.values()
    ]


def _by_shard(places: list[tuple[int, int]]) -> dict[int, list[int]]:
    offsets = defaultdict(list)
    for shard, offset in places:
        offsets[shard].append(offset)
    return offsets


def ordered(sources: list[tuple[Sources, set[tuple[int, int]]]]) -> list[Any]:
    return sorted((sorted(one.items()), sorted(contributors)) for one, contributors in sources)


@pytest.mark.parametrize("name", TRACKED)
def test_sources_equal_records_after_any_batches(planner, executor, name):
    random = Random(name)
    sql, records_sql = TRACKED[name]
    views = both_forms(planner, tracked(sql))
    view = views[1]
    records = clicks(random, 300)
    batches = split(random, records)

    sources: dict[bytes, Sources] = {}
    for form, batch in zip(cycle(views), batches, strict=False):
        [result] = executor.partials({0: form}, {0: raw_table(batch, None)}).values()
        for key, one in result.sources.items():
            encoded = encode_key(key_values(key), view.plan.key)
            sources[encoded] = merge_sources([sources.get(encoded, {}), one])
    contributors = defaultdict[bytes, set[tuple[int, int]]](set)
    for each in executor.contributors(view, raw_table(records, None)):
        place = each.shard, each.offset
        assert place not in contributors[encode_key(key_values(each.key), view.plan.key)]
        contributors[encode_key(key_values(each.key), view.plan.key)].add(place)

    every = expected(at_once(planner, query(records_sql), batches))
    assert len(every) > 0
    assert ordered([(one, contributors[key]) for key, one in sources.items()]) == ordered(every)
    assert contributors.keys() == sources.keys()


def test_join_counts_each_row_of_a_record(planner, executor):
    random = Random(5)
    table = ViewTable(stream="users", columns=TABLE_COLUMNS)
    sql = "select c.page, count(*) n from c join u on length(c.person) = length(u.key) group by 1"
    view = planner.prepare(replace(tracked(sql), tables={"u": table}))
    known = users(random, 12)
    parsed = _rows(planner, known, view)

    [result] = executor.partials(
        {0: view}, {0: raw_table(clicks(random, 100), None)}, {0: {"u": parsed}}
    ).values()
    merged = executor.merge({0: view}, {0: result.states})[0]

    counted = {row.key: int((row.row or "").rpartition(":")[2].rstrip("}")) for row in merged}
    totals = {
        key: sum(one.records for one in sources.values()) for key, sources in result.sources.items()
    }
    assert totals == counted
    assert max(totals.values()) > 100


def _rows(planner, table, view):
    from spark_worker.views.inputs.tables import ParsedTables

    parsed = ParsedTables(planner.plans)
    return parsed.rows(table, TABLE_COLUMNS, view.tables["u"])


@pytest.mark.parametrize(
    "sql",
    [
        "select page, count(*) n from (select page from c) group by page",
        "select page, count(*) n from (select page, shard, 1 as offset from c) group by page",
        "select p, count(*) n from (select page p, shard, offset from c union all select person, 1, 2L from c) group by p",
        "select p, count(*) n from (select page p, shard, offset from c union all select person, offset, shard from c) group by p",
    ],
)
def test_query_that_hides_the_place_of_a_record_is_refused(planner, sql):
    with pytest.raises(SqlRefused, match="shard and offset"):
        planner.prepare(tracked(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "select page, first(ms) f from (select page, ms, arrival_time, shard, 1 as offset from c) group by page",
        "select page, last(ms) f from (select page, ms, event_time as arrival_time, shard, offset from c) group by page",
    ],
)
def test_column_that_has_only_the_name_is_no_order_of_arrival(planner, sql):
    """`first` followed a column of a subquery that was called offset, so batches did not add up."""
    with pytest.raises(SqlRefused, match="arrival_time, shard and offset"):
        planner.prepare(query(sql))


def test_untracked_view_has_no_sources(planner, executor):
    view = planner.prepare(query("select page, count(*) n from c group by page"))

    [result] = executor.partials({0: view}, {0: raw_table(clicks(Random(1), 50), None)}).values()

    assert (view.sources, view.contributors, result.sources) == (None, None, {})
