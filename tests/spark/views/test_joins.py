"""Joins of two streams: each pair of records once, whatever is interrupted and restarted."""

import asyncio
import json
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from spark_worker.main import HANDLERS
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.fault_points import arm
from storage.domain.jobs import JobKind, JobSlots
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import RING_SIZE, Appended, StreamSpec
from storage.domain.views.progress import RevisionReport
from storage.domain.views.rows import IncludedRecord, RowPage, RowQuery
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.view import BadPolicy, ViewInput, ViewQuery, ViewSpec
from tests.conditions import eventually
from tests.spark.views.test_scan import CHANGES, messages_of, summed, until

pytestmark = pytest.mark.one_store

ORDERS, SHIPMENTS = StreamName("orders"), StreamName("shipments")

VIEW = ViewName("shipped")
WITHIN_S, BEFORE_S = 60, 20
SQL = (
    "select o.page, count(*) as clicks, sum(s.weight) as weight from o join s on o.id = s.id "
    f"and s.event_time between o.event_time - interval {BEFORE_S} seconds and o.event_time + interval {WITHIN_S} seconds "
    "group by o.page"
)
WINDOWED = (
    "select window(s.event_time, '1 minute').start as since, count(*) as n from o join s on o.id = s.id "
    f"and s.event_time between o.event_time and o.event_time + interval {WITHIN_S} seconds group by 1"
)
VIEW_JOBS = {kind: HANDLERS[kind] for kind in HANDLERS if kind.slots is JobSlots.VIEWS}
JITTER_S = 5
IDS = 7


def spec(sql: str = SQL, **fields: Any) -> ViewSpec:
    common = {"watermark_ms": 10_000, "idle_ms": 3_600_000, **fields}
    inputs = {
        "o": ViewInput(stream="orders", columns="id int, page string", **common),
        "s": ViewInput(stream="shipments", columns="id int, weight int", **common),
    }
    return ViewSpec(query=ViewQuery(sql=sql, inputs=inputs))


def record(data: dict[str, Any], second: int) -> Record:
    """Return a record of a time, for a shard by its time."""
    return Record(json.dumps(data).encode(), key=str(second), event_time_ms=second * 1_000)


class Traffic:
    """Orders and shipments in the order of their event times, less a few seconds."""

    def __init__(self, storage: Storage, seed: object) -> None:
        self.storage = storage
        self.random = Random(str(seed))
        self.second = 1_000
        self.orders: list[tuple[int, str, int]] = []
        self.shipments: list[tuple[int, int, int]] = []
        self.offsets: dict[tuple[str, int], int] = {}

    async def put(self, records: int = 40) -> None:
        """Append records of both streams, which the view must include."""
        for _ in range(records):
            self.second += self.random.randrange(4)
            at = self.second - self.random.randrange(JITTER_S)
            id_ = self.random.randrange(IDS)
            if self.random.random() < 0.5:
                page = self.random.choice("ab")
                self.orders.append((id_, page, at))
                await self.append("o", ORDERS, record({"id": id_, "page": page}, at))
            else:
                weight = self.random.randrange(100)
                self.shipments.append((id_, weight, at))
                await self.append("s", SHIPMENTS, record({"id": id_, "weight": weight}, at))

    async def append(self, relation: str, stream: StreamName, *records: Record) -> None:
        """Append records, which the view must include."""
        for appended in await self.storage.streams.append(stream, [*records]):
            assert isinstance(appended, Appended)
            self.offsets[relation, appended.shard] = appended.offset

    async def rows(self) -> RowPage:
        """Read all rows once they include everything."""
        page = None
        for (relation, shard), offset in self.offsets.items():
            included = IncludedRecord(shard, offset, relation)
            query = RowQuery(includes=included, wait_ms=60_000, limit=1_000)
            page = await self.storage.view_rows.read(VIEW, query)
        assert page is not None
        return page

    def expected(self) -> dict[str, tuple[int, int]]:
        """Return the number of pairs of each page, and the sum of their weights."""
        pairs, weights = Counter[str](), Counter[str]()
        for order, page, ordered in self.orders:
            for shipment, weight, shipped in self.shipments:
                if order == shipment and -BEFORE_S <= shipped - ordered <= WITHIN_S:
                    pairs[page] += 1
                    weights[page] += weight
        return {page: (number, weights[page]) for page, number in pairs.items()}


def totals(page: RowPage) -> dict[str, tuple[int, int]]:
    rows = map(json.loads, page.rows)
    return {row["page"]: (row["clicks"], row["weight"]) for row in rows}


@pytest.fixture
async def shop(storage: Storage) -> Storage:
    await storage.catalog.put_stream(ORDERS, StreamSpec(shards=2))
    await storage.catalog.put_stream(SHIPMENTS, StreamSpec())
    return storage


async def has_failed(storage: Storage) -> bool:
    """Return whether an attempt of the scan has failed."""
    job = await storage.jobs.open_of("default", JobKind.VIEW_SCAN, ORDERS.name)
    return job is not None and job.failures > 0


@pytest.mark.parametrize("point", ["view.read", "view.computed", "view.committed"])
async def test_pairs_are_exact_when_a_batch_is_interrupted(point, shop, working):
    traffic = Traffic(shop, point)
    await shop.catalog.put_stream(CHANGES, StreamSpec())
    await traffic.put()
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, replace(spec(), into=(ViewSink(stream=CHANGES.name),)))
        assert totals(await traffic.rows()) == traffic.expected()
        arm(f"{point}:raise")
        try:
            await traffic.put()
            await eventually(partial(has_failed, shop), True)
        finally:
            arm("")
        splitting = shop.streams.resharder.split(ORDERS, 0, RING_SIZE // 4)
        await asyncio.gather(splitting, traffic.put())
        assert totals(await traffic.rows()) == traffic.expected()
    await traffic.put()
    async with working(VIEW_JOBS):  # which reads again what the former worker kept
        page = await traffic.rows()
        await until(shop, VIEW, lambda status: not any(one.pending for one in status.sinks))

    expected = traffic.expected()
    assert totals(page) == expected
    assert await summed(shop) == {name: number for name, (number, _) in expected.items()}
    counts = page.revision.progress.counts
    assert counts.records == len(traffic.orders) + len(traffic.shipments)
    assert (counts.late, counts.bad, counts.gaps) == (0, 0, 0)
    assert (
        page.revision.progress.buffered_from[1] > 0
    )  # orders that no shipment can match are not kept


async def test_streams_are_read_in_the_order_of_arrival(shop, working):
    """Otherwise the shipments of a long history would wait for the orders, which are many more."""
    random = Random(3)
    traffic = Traffic(shop, 3)
    orders = [
        Record(b'{"id": %d, "page": "a"}' % random.randrange(IDS), event_time_ms=second * 1_000)
        for second in range(1_000, 13_000)
    ]
    for first in range(0, len(orders), 500):
        await shop.streams.append(ORDERS, orders[first : first + 500])
        traffic.second = 1_000 + first + 500
        await traffic.put(2)
    traffic.orders += [
        (json.loads(one.data)["id"], "a", (one.event_time_ms or 0) // 1_000) for one in orders
    ]
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec())
        page = await traffic.rows()

    assert totals(page) == traffic.expected()
    assert page.revision.progress.counts.late == 0


async def test_windows_of_pairs_are_final_when_no_pair_can_follow(shop, working):
    traffic = Traffic(shop, 1)
    await shop.catalog.put_stream(CHANGES, StreamSpec())
    final = ViewSink(stream=CHANGES.name, emit=Emit.FINAL)
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, replace(spec(WINDOWED), into=(final,)))
        for _ in range(4):
            await traffic.put()
            page = await traffic.rows()
        await until(shop, VIEW, lambda status: not any(one.pending for one in status.sinks))

    rows = {row["since"]: row["n"] for row in map(json.loads, page.rows)}
    sent = [(one["change"], one["row"]) for one in await messages_of(shop, CHANGES)]
    assert {row["since"]: row["n"] for _, row in sent} == {
        since: rows[since] for since in sorted(rows)[: len(sent)]
    }
    assert {change for change, _ in sent} == {"final"}
    assert 0 < len(sent) < len(rows)


async def test_late_record_is_joined_with_those_that_wait(shop, working):
    def order(id_: int, at: int) -> Record:
        return replace(record({"id": id_, "page": "a"}, at), key="one shard")

    def shipment(id_: int, at: int) -> Record:
        return record({"id": id_, "weight": 1}, at)

    traffic = Traffic(shop, 2)
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec())
        for orders, shipments in (
            ([order(1, 1_000)], [shipment(1, 1_030)]),
            ([order(2, 2_000)], [shipment(2, 2_010)]),  # the watermark is at 1,990
            (  # nothing waits for the first and the last of these
                [order(1, 1_920), order(3, 1_935)],
                [shipment(3, 1_980), shipment(1, 1_960), shipment(2, 1_995)],
            ),
        ):
            await traffic.append("o", ORDERS, *orders)
            await traffic.append("s", SHIPMENTS, *shipments)
            page = await traffic.rows()

    assert [json.loads(row)["clicks"] for row in page.rows] == [4]
    assert page.revision.progress.counts.late == 4


async def test_view_with_more_waiting_records_than_a_worker_keeps_stops(shop, working, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_JOIN_RECORDS_MAX", 20)
    traffic = Traffic(shop, 4)
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec())
        await traffic.put(100)
        await until(shop, VIEW, lambda status: status.active.is_stopped)
        failure = (await shop.views.status(VIEW)).active.failure
        monkeypatch.undo()
        for paused in (True, False):
            await shop.views.pause(VIEW, paused=paused)
        page = await traffic.rows()

    assert "more than 20" in failure
    assert "closer bounds" in failure
    assert totals(page) == traffic.expected()


async def test_unreadable_records_are_skipped_if_asked(shop, working):
    traffic = Traffic(shop, 5)
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec(on_bad=BadPolicy.SKIP))
        await shop.streams.append(
            ORDERS, [Record(text, event_time_ms=1_000_000) for text in (b"{", b"[]")]
        )
        await traffic.put()
        page = await traffic.rows()

    assert totals(page) == traffic.expected()
    assert page.revision.progress.counts.bad == 2


async def test_rebuilt_join_equals_the_former_one(shop, working):
    traffic = Traffic(shop, 6)
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec())
        for _ in range(3):
            await traffic.put()
            await traffic.rows()
        await shop.views.rebuild(VIEW)
        await traffic.put()
        await until(shop, VIEW, lambda status: status.active.report is not None)
        report = (await shop.views.status(VIEW)).active.report
        page = await traffic.rows()

    assert report is not None
    assert report.is_exact
    assert (report.added, report.removed, report.changed) == (0, 0, 0)
    assert totals(page) == traffic.expected()


async def test_back_test_of_a_join_has_its_rows(shop, working, ended):
    traffic = Traffic(shop, 7)
    wider = SQL.replace(f"interval {BEFORE_S} seconds", "interval 200 seconds")
    jobs = VIEW_JOBS | {JobKind.VIEW_BACK_TEST: HANDLERS[JobKind.VIEW_BACK_TEST]}

    async def tested(configuration: ViewSpec) -> RevisionReport:
        submitted = await shop.view_back_tests.submit(VIEW, configuration)
        await ended(submitted.job.job_id)
        done = await shop.view_back_tests.get(VIEW, submitted.job.job_id)
        report: RevisionReport | None = done.result
        assert report is not None, done.job
        return report

    async with working(jobs):
        await shop.views.put(VIEW, spec())
        await traffic.put(80)
        await traffic.rows()
        reports = [await tested(spec()), await tested(spec(wider))]

    assert [report.is_exact for report in reports] == [True, True]
    assert [report.changed for report in reports] == [0, 2]
    assert {report.records for report in reports} == {80}


async def test_view_whose_second_stream_is_deleted_stops(shop, working):
    traffic = Traffic(shop, 8)
    async with working(VIEW_JOBS):
        await shop.views.put(VIEW, spec())
        await traffic.put()
        page = await traffic.rows()
        await shop.catalog.delete_stream(SHIPMENTS)
        await until(shop, VIEW, lambda status: status.active.is_stopped)
        stopped = await shop.view_rows.read(VIEW, RowQuery())

    assert "deleted" in (await shop.views.status(VIEW)).active.failure
    assert totals(stopped) == totals(page) == traffic.expected()
