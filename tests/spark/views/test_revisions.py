"""Revisions of views while their stream goes on: rebuilds, rollbacks, and the records at which they change."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.sink import ViewSink
from storage.domain.views.view import LatePolicy
from storage.views.engine import ViewStatus
from tests.conditions import eventually
from tests.spark.views.test_scan import (
    CHANGES,
    CLICKS,
    COUNT,
    VIEW,
    VIEW_JOBS,
    Clicks,
    by_page,
    click,
    has_sent_all,
    put_clicks,
    rows_at,
    spec,
    summed,
    until,
)

pytestmark = pytest.mark.one_store

MINUTES = "select window(event_time, '1 minute').start s, count(*) n from c group by 1"
UPPER = "select upper(page) as page, count(*) as clicks from c group by 1"


@pytest.fixture
async def clicks(storage: Storage) -> Storage:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.catalog.put_stream(CHANGES, StreamSpec())
    return storage


@asynccontextmanager
async def appending(clicks: Clicks) -> AsyncIterator[None]:
    """Append clicks for the length of the block."""

    ended = asyncio.Event()

    async def append() -> None:
        while not ended.is_set():
            await clicks.put()
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(append())
        try:
            yield
        finally:
            ended.set()  # a call that was cancelled may have appended


def has_revision(number: int) -> Callable[[ViewStatus], bool]:
    return lambda status: status.active.number == number


async def test_rebuild_is_compared_at_the_same_records_under_load(clicks, working):
    some = Clicks(clicks, "rebuild")
    async with working(VIEW_JOBS):
        with_sink = replace(spec(), into=(ViewSink(stream=CHANGES.name),))
        await clicks.views.put(VIEW, with_sink)
        await some.put()
        await rows_at(clicks, some.offsets)
        async with appending(some):
            for number in (2, 3):
                await clicks.views.rebuild(VIEW)
                await until(clicks, VIEW, has_revision(number))
                report = (await clicks.views.status(VIEW)).active.report
                assert report.is_exact
                assert report.records == report.former_records > 0
                assert (report.added, report.removed, report.changed) == (0, 0, 0)
        page = await rows_at(clicks, some.offsets)
        await eventually(partial(has_sent_all, clicks), True)

    assert by_page(page) == some.expected == await summed(clicks)


async def test_rebuild_over_idle_shards_waits_for_each(clicks, working, monkeypatch):
    """Records of a shard are not late because those of another one were read first."""
    monkeypatch.setattr(limits, "VIEW_BACKLOG_RECORDS", 0)

    def at(key: str, second: int) -> Record:
        return Record(b'{"page": "a"}', key=key, event_time_ms=second * 1_000)

    shards = {}
    for key in "abcdefgh":
        shards[next(iter(await put_clicks(clicks, at(key, 1_000))))] = key
    [quick, slow] = shards.values()
    offsets = await put_clicks(clicks, at(quick, 99_000))
    for second in range(1_000, 2_000 + limits.READ_RECORDS_MAX, 500):
        records = [at(slow, one) for one in range(second, second + 500)]
        offsets |= await put_clicks(clicks, *records)
    dropping = spec(MINUTES, watermark_ms=1_000, idle_ms=1_000)
    dropping = replace(dropping, query=replace(dropping.query, late=LatePolicy.DROP))
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, dropping)
        counts = (await rows_at(clicks, offsets)).revision.progress.counts
        await asyncio.sleep(1.5)
        await clicks.views.rebuild(VIEW)
        await until(clicks, VIEW, has_revision(2))
        active = (await clicks.views.status(VIEW)).active

    assert counts.late == active.progress.counts.late == 0
    assert (active.report.added, active.report.removed, active.report.changed) == (0, 0, 0)


async def test_rollback_returns_to_the_former_rows_under_load(clicks, working):
    some = Clicks(clicks, "rollback")
    into = (ViewSink(stream=CHANGES.name),)
    keeps = replace(spec(), into=into, keep_former_ms=limits.DAY_MS)
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, keeps)
        await some.put()
        async with appending(some):
            await clicks.views.put(VIEW, replace(keeps, query=spec(UPPER).query))
            await until(clicks, VIEW, has_revision(2))
            upper = by_page(await rows_at(clicks, some.offsets))
            await clicks.views.roll_back(VIEW)
            await until(clicks, VIEW, has_revision(3))
        page = await rows_at(clicks, some.offsets)
        await eventually(partial(has_sent_all, clicks), True)
        status = await clicks.views.status(VIEW)

    assert upper.keys() == {*"ABCDEF"}
    assert status.view.spec.query.sql == COUNT
    assert (status.former.number, status.former.query.sql) == (2, UPPER)
    assert by_page(page) == some.expected == await summed(clicks)


async def test_rebuild_reports_what_retention_deleted(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, spec())
        offsets = await put_clicks(clicks, *[click("a")] * 4)
        await rows_at(clicks, offsets)
        [shard] = offsets
        await clicks.streams.truncate(CLICKS, shard, 3)

        await clicks.views.rebuild(VIEW)
        await until(clicks, VIEW, has_revision(2))
        report = (await clicks.views.status(VIEW)).active.report

    assert (report.is_exact, report.records, report.former_records) == (True, 1, 4)
    assert (report.added, report.removed, report.changed) == (0, 0, 1)
    assert '"clicks":4' in report.samples[0].before
    assert '"clicks":1' in report.samples[0].after
