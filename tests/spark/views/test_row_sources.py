"""Sources of rows: the records that a worker finds for a row, page by page."""

import json
from random import Random

import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import ValidationFailed, ViewSourcesUntracked
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import GapReason, StreamSpec
from storage.domain.views.source_search import RecordLocation
from storage.domain.views.view import ViewTable
from storage.views.sources import RowSources
from tests.spark.views.test_scan import (
    CLICKS,
    VIEW,
    VIEW_JOBS,
    anyone,
    check_sources,
    click,
    put_clicks,
    rows_at,
    spec,
    tracked,
)

pytestmark = pytest.mark.one_store


@pytest.fixture
async def clicks(storage: Storage) -> Storage:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    return storage


async def pages_of(storage: Storage, key: str, limit: int) -> list[RowSources]:
    """Read all pages of a row's sources."""
    pages, after = list[RowSources](), None
    while not pages or after is not None:
        page = await storage.view_sources.read(
            VIEW, [key], limit=limit, after=after, authorise=anyone
        )
        pages.append(page)
        after = page.next
    return pages


def places_of(pages: list[RowSources]) -> list[RecordLocation]:
    return [RecordLocation(shard, one.offset) for page in pages for shard, one in page.records]


async def test_pages_have_each_record_of_a_row_once(clicks, working, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_SOURCES_BATCH", 20)
    monkeypatch.setattr(limits, "VIEW_SOURCES_SEARCHED_MAX", 40)
    random, count = Random(4), "select length(page) n, count(*) clicks from c group by 1"
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec(count)))
        words = [random.choice(("a", "bb", "cc", "ddd")) for _ in range(200)]
        for first in range(0, 200, 50):
            offsets = await put_clicks(clicks, *map(click, words[first : first + 50]))
        await rows_at(clicks, offsets)

        for limit in (40, 1_000):
            pages = await pages_of(clicks, "2", limit)
            records = [one for page in pages for _, one in page.records]
            assert all(len(page.records) <= limit for page in pages)
            assert {len(json.loads(one.record.data)["page"]) for one in records} == {2}
            assert len(records) == sum(len(word) == 2 for word in words)
            assert places_of(pages) == sorted({*places_of(pages)})


async def test_page_ends_before_its_bytes(clicks, working, monkeypatch):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec()))
        await rows_at(clicks, await put_clicks(clicks, *map(click, "aaaaa")))
        monkeypatch.setattr(limits, "VIEW_SOURCES_BYTES_MAX", 50)

        pages = await pages_of(clicks, "a", 10)

    assert [len(page.records) for page in pages] == [2, 2, 1]


async def test_sources_follow_a_reshard(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec()))
        await rows_at(clicks, await put_clicks(clicks, *map(click, "abcabc")))
        await clicks.streams.resharder.set_shard_count(CLICKS, 3)
        await rows_at(clicks, await put_clicks(clicks, *map(click, "abcabcd")))

        await check_sources(clicks, {"a": 4, "b": 4, "c": 4, "d": 1})


async def test_deleted_records_are_gaps(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec()))
        [shard, offset] = (await put_clicks(clicks, *map(click, "aaaa"))).popitem()
        await rows_at(clicks, {shard: offset})
        await clicks.streams.truncate(CLICKS, shard, 2)

        [page] = await pages_of(clicks, "a", 10)

    assert places_of([page]) == [(shard, 2), (shard, 3)]
    assert page.ranges[shard].records == 4
    [(gap_shard, gap)] = page.gaps
    assert (gap_shard, gap.first, gap.next, gap.reason) == (shard, 0, 2, GapReason.EXPIRED)


USERS = StreamName("users")
BY_PLAN = "select u.plan, count(*) as clicks from c join u on c.page = u.key group by u.plan"


async def put_user(storage: Storage, plan: str) -> None:
    await storage.streams.append(USERS, [Record(b'{"plan": "%b"}' % plan.encode(), key="a")])


async def test_search_joins_with_the_table_as_it_is_now(clicks, working):
    """A worker keeps the plan of a search, and must not keep the rows of its tables with it."""
    await clicks.catalog.put_stream(USERS, StreamSpec())
    await put_user(clicks, "pro")
    plain = tracked(spec(BY_PLAN))
    users = {"u": ViewTable(stream="users", columns="plan string")}
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, replace(plain, query=replace(plain.query, tables=users)))
        await rows_at(clicks, await put_clicks(clicks, click("a")))
        before = await pages_of(clicks, "pro", 10)
        await put_user(clicks, "free")
        await clicks.streams.truncate(USERS, 0, 1)  # a reader has seen one record, as before

        after = await pages_of(clicks, "pro", 10)

    assert len(places_of(before)) == 1
    assert places_of(after) == []


async def test_row_that_is_not_there_has_no_sources(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec()))

        sources = await clicks.view_sources.read(VIEW, ["none"], authorise=anyone)

    assert (sources.row, sources.ranges, sources.records) == (None, {}, ())


@pytest.mark.parametrize("key", [[], ["a", "b"]])
async def test_key_of_no_single_row_is_refused(clicks, working, key):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, tracked(spec()))

        with pytest.raises(ValidationFailed, match="all 1 columns"):
            await clicks.view_sources.read(VIEW, key, authorise=anyone)


async def test_untracked_view_says_what_to_set(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(VIEW, spec())

        with pytest.raises(ViewSourcesUntracked, match="`sources` to `range`"):
            await clicks.view_sources.read(VIEW, ["a"], authorise=anyone)
