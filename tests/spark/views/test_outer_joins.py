"""Left and right joins of two streams: a record without a match is in the rows once its wait ends."""

import asyncio
import json
from collections import Counter
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from spark_worker.main import HANDLERS
from storage.domain.fault_points import arm
from storage.domain.jobs import JobKind
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from storage.domain.views.progress import RevisionReport
from storage.domain.views.rows import RowPage, RowQuery
from storage.domain.views.sink import ViewSink
from storage.domain.views.view import ViewSpec
from tests.conditions import SPARK_S, eventually
from tests.spark.views.test_joins import (
    BEFORE_S,
    ORDERS,
    SHIPMENTS,
    VIEW,
    VIEW_JOBS,
    WITHIN_S,
    Traffic,
    has_failed,
    record,
    shop,  # noqa: F401  fixture
    spec,
)
from tests.spark.views.test_scan import CHANGES, summed, until

pytestmark = pytest.mark.one_store

ON = (
    "o.id = s.id and s.event_time between o.event_time - interval {before} seconds "
    "and o.event_time + interval {within} seconds"
)
COLUMNS = "o.page, count(*) as clicks, count(s.id) as pairs, sum(s.weight) as weight"
LEFT = f"select {COLUMNS} from o left join s on {ON.format(before=BEFORE_S, within=WITHIN_S)} group by o.page"
RIGHT = LEFT.replace("o left join s", "s right join o")
ALONE = LEFT.replace("group by", "where s.id is null group by")
SOON = f"select {COLUMNS} from o left join s on {ON.format(before=1, within=2)} group by o.page"
FLUSH_S = 1_000
"""Event time from the last record to one behind which nothing waits."""


async def flush(traffic: Traffic) -> None:
    """Append a record to each shard with which all others cease to wait."""
    traffic.second += FLUSH_S
    order = {"id": -1, "page": "flush"}
    for number in range(16):  # some for each shard
        one = replace(record(order, traffic.second), key=f"flush {number}")
        await traffic.append("o", ORDERS, one)
    await traffic.append("s", SHIPMENTS, record({"id": -2, "weight": 0}, traffic.second))


def expected(traffic: Traffic) -> dict[str, tuple[int, int, int | None]]:
    """Return the number of rows of each page, of the pairs among them, and the sum of weights."""
    clicks, pairs, weights = Counter[str](), Counter[str](), dict[str, int | None]()
    for order, page, ordered in traffic.orders:
        matching = [
            weight
            for shipment, weight, shipped in traffic.shipments
            if order == shipment and -BEFORE_S <= shipped - ordered <= WITHIN_S
        ]
        clicks[page] += max(1, len(matching))
        pairs[page] += len(matching)
        if matching:
            weights[page] = (weights.get(page) or 0) + sum(matching)
    return {page: (clicks[page], pairs[page], weights.get(page)) for page in clicks}


def totals(page: RowPage) -> dict[str, tuple[int, int, int | None]]:
    rows = map(json.loads, page.rows)
    return {row["page"]: (row["clicks"], row["pairs"], row["weight"]) for row in rows}


@pytest.mark.parametrize(
    ("point", "sql"), [("view.read", LEFT), ("view.computed", RIGHT), ("view.committed", LEFT)]
)
async def test_rows_are_exact_when_a_batch_is_interrupted(point, sql, shop, working):  # noqa: F811
    traffic = Traffic(shop, f"outer {point}")
    await shop.catalog.put_stream(CHANGES, StreamSpec())
    await traffic.put()
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, replace(spec(sql), into=(ViewSink(stream=CHANGES.name),)))
        await traffic.rows()
        arm(f"{point}:raise")
        try:
            await traffic.put()
            await eventually(partial(has_failed, shop), True)
        finally:
            arm("")
        splitting = shop.streams.resharder.split(ORDERS, 0, RING_SIZE // 4)
        await asyncio.gather(splitting, traffic.put())
        await traffic.rows()
    await traffic.put()
    async with working(VIEW_JOBS):  # which has to know what the orders that wait have matched
        await traffic.rows()
        await flush(traffic)
        page = await traffic.rows()
        await until(shop, VIEW, lambda status: not any(one.pending for one in status.sinks))

    assert totals(page) == expected(traffic)
    assert await summed(shop) == {page: n for page, (n, _, _) in expected(traffic).items()}
    counts = page.revision.progress.counts
    assert (counts.late, counts.bad, counts.gaps) == (0, 0, 0)
    assert any(pairs < clicks for clicks, pairs, _ in totals(page).values())


async def test_rows_without_a_match_are_told_once(shop, working):  # noqa: F811
    traffic = Traffic(shop, "alone")
    await shop.catalog.put_stream(CHANGES, StreamSpec())
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, replace(spec(ALONE), into=(ViewSink(stream=CHANGES.name),)))
        for _ in range(3):
            await traffic.put()
            await traffic.rows()
        await flush(traffic)
        await traffic.rows()
        await until(shop, VIEW, lambda status: not any(one.pending for one in status.sinks))

    alone = {page: clicks - pairs for page, (clicks, pairs, _) in expected(traffic).items()}
    assert await summed(shop) == {page: n for page, n in alone.items() if n}


def soon(sql: str = SOON) -> ViewSpec:
    return spec(sql, watermark_ms=1_000, idle_ms=1_000)


async def has_rows(storage: Any, rows: dict[str, tuple[int, int, int | None]]) -> bool:
    return totals(await storage.view_rows.read(VIEW, RowQuery())) == rows


async def test_waits_end_while_nothing_arrives(shop, working, ended):  # noqa: F811
    """Also after a restart; and a rebuild and a back-test have the rows that the clock has added."""
    traffic = Traffic(shop, "idle")
    jobs = VIEW_JOBS | {JobKind.VIEW_BACK_TEST: HANDLERS[JobKind.VIEW_BACK_TEST]}
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, soon())
        await traffic.append("o", ORDERS, record({"id": 1, "page": "a"}, 1_000))
        await traffic.append("s", SHIPMENTS, record({"id": 1, "weight": 5}, 1_001))
        await traffic.append("o", ORDERS, record({"id": 2, "page": "a"}, 1_001))
        before = await traffic.rows()
        await eventually(partial(has_rows, shop, {"a": (2, 1, 5)}), True, within_s=SPARK_S)
        await traffic.append("o", ORDERS, record({"id": 3, "page": "b"}, 2_000))
        await traffic.rows()
    async with working(jobs):
        await eventually(
            partial(has_rows, shop, {"a": (2, 1, 5), "b": (1, 0, None)}), True, within_s=SPARK_S
        )
        submitted = await shop.view_back_tests.submit(VIEW, soon())
        await ended(submitted.job.job_id)
        tested = (await shop.view_back_tests.get(VIEW, submitted.job.job_id)).result
        await shop.views.rebuild(VIEW)
        await until(shop, VIEW, lambda status: status.active.report is not None)
        rebuilt = (await shop.views.status(VIEW)).active.report
        batches = [(await shop.views.status(VIEW)).active.progress.batch]
        await asyncio.sleep(3)
        batches.append((await shop.views.status(VIEW)).active.progress.batch)

    assert totals(before) == {"a": (1, 1, 5)}
    for report in (tested, rebuilt):
        assert isinstance(report, RevisionReport)
        assert report.is_exact
        assert (report.added, report.removed, report.changed) == (0, 0, 0)
    assert len({*batches}) == 1  # nothing waits, so nothing is computed


async def test_records_that_arrive_after_the_wait_are_late(shop, working):  # noqa: F811
    traffic = Traffic(shop, "late")
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec(LEFT))
        await traffic.append("o", ORDERS, record({"id": 1, "page": "a"}, 1_000))
        await traffic.append("s", SHIPMENTS, record({"id": 0, "weight": 5}, 1_000))
        await flush(traffic)
        await traffic.rows()
        await traffic.append("s", SHIPMENTS, record({"id": 1, "weight": 5}, 1_001))
        await traffic.append("o", ORDERS, record({"id": 2, "page": "a"}, 1_002))
        page = await traffic.rows()

    assert totals(page) == {"a": (1, 0, None)}
    assert page.revision.progress.counts.late == 2
