"""Progress of a router whose answers are lost, in part before the report is stored."""

import random
from contextlib import suppress
from typing import Any

import pytest

from consumers.routing.copies import Copy, SourceRecord
from consumers.routing.delivery_counts import DeliveryCounts
from consumers.routing.stored_progress import StoredProgress
from storage.bootstrap import Storage
from storage.domain.errors import StaleGeneration, StorageUnavailable
from storage.domain.log.record_batch import Record
from storage.domain.names import RouteName
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.routing import RouteCounts, TopicPositions
from tests.integration.topics.routing import BILLING, ORDERS

pytestmark = pytest.mark.one_store
NAME = RouteName(ORDERS, "billing")


class LateRows:
    """Positions whose reports can be lost, and stored later."""

    def __init__(self, storage: Storage) -> None:
        rows = storage.topic_routing.positions
        self.read, self.reports, self._save = rows.read, rows.reports, rows.save
        self.lost = ""
        self._waiting: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    async def save(self, *arguments, **options) -> bool:
        if self.lost == "before":
            self._waiting.append((arguments, options))
            raise StorageUnavailable("lost")
        is_saved = await self._save(*arguments, **options)
        if self.lost == "after":
            raise StorageUnavailable("lost")
        return is_saved

    async def store_late(self) -> None:
        """Store what waits, as a transaction ends whose commit was delayed."""
        for arguments, options in self._waiting:
            await self._save(*arguments, **options)
        self._waiting.clear()


@pytest.fixture
async def route(topics, put_route):
    return await put_route("billing", BILLING)


@pytest.fixture
def rows(topics) -> LateRows:
    return LateRows(topics)


@pytest.fixture
def begin(topics, rows, route):
    """Begin the progress of a router."""

    async def begin(fence: int = 1) -> StoredProgress:
        routing = type("Routing", (), {"positions": rows})()
        stream = await topics.topics.get(ORDERS)
        progress = StoredProgress(routing, stream.stream_id, fence, lambda _: None)
        await progress.read()
        return progress

    return begin


async def save(progress: StoredProgress, positions: TopicPositions) -> None:
    await progress.save(lambda: positions)


def count(counts: DeliveryCounts, number: int, copies: int) -> None:
    counts.restore({number: RouteCounts(delivered=copies)})


async def delivered(topics) -> int:
    return int((await topics.topic_routes.get(NAME)).delivered)


@pytest.mark.parametrize("lost", ["after", "before"])
async def test_report_whose_answer_is_lost_is_counted_once(topics, rows, route, begin, lost):
    progress = await begin()
    count(progress.counts, route.number, 3)
    rows.lost = lost
    with pytest.raises(StorageUnavailable):
        await save(progress, TopicPositions({0: 3}))
    rows.lost = ""

    count(progress.counts, route.number, 2)
    await save(progress, TopicPositions({0: 5}))
    await rows.store_late()

    assert await delivered(topics) == 5
    assert progress.is_saved(await rows.read(route.stream_id))


async def test_report_that_is_stored_after_it_was_given_up_is_counted_once(
    topics, rows, route, begin
):
    progress = await begin()
    count(progress.counts, route.number, 3)
    rows.lost = "before"
    for _ in range(2):  # the second one finds the first one missing, and is lost too
        with pytest.raises(StorageUnavailable):
            await save(progress, TopicPositions({0: 3}))
    await progress._confirm()
    rows.lost = ""
    await rows.store_late()

    count(progress.counts, route.number, 2)
    await save(progress, TopicPositions({0: 5}))
    await save(progress, TopicPositions({0: 5}))

    assert await delivered(topics) == 5
    assert await rows.read(route.stream_id) == progress.saved == TopicPositions({0: 5})


async def test_router_that_read_too_early_stores_nothing(topics, rows, route, begin):
    """The report of its predecessor was stored after it began: it has sent, and would count, the same copies."""
    former = await begin()
    count(former.counts, route.number, 3)
    rows.lost = "before"
    with pytest.raises(StorageUnavailable):
        await save(former, TopicPositions({0: 3}))
    rows.lost = ""
    progress = await begin(fence=2)
    await rows.store_late()

    count(progress.counts, route.number, 3)
    with pytest.raises(StaleGeneration):
        await save(progress, TopicPositions({0: 3}))

    assert await delivered(topics) == 3


async def test_router_with_an_older_lease_stores_nothing(topics, rows, route, begin):
    former, progress = await begin(), await begin(fence=2)
    await save(progress, TopicPositions({0: 1}))

    with pytest.raises(StaleGeneration):
        await save(former, TopicPositions({0: 2}))

    assert await rows.read(route.stream_id) == TopicPositions({0: 1})


@pytest.mark.parametrize("seed", range(10))
async def test_counts_add_up_whatever_is_lost(topics, rows, route, begin, seed):
    """T10, with answers that are lost before and after the report, and reports that are stored late."""
    random_, position = random.Random(seed), 0
    progress = await begin()
    for _ in range(30):
        copies = random_.randrange(4)
        position += copies
        count(progress.counts, route.number, copies)
        rows.lost = random_.choice(("", "", "before", "after"))
        with suppress(StorageUnavailable):
            await save(progress, TopicPositions({0: position}))
        if random_.random() < 0.3:
            await rows.store_late()
    rows.lost = ""
    for _ in range(2):
        await save(progress, TopicPositions({0: position}))
        await rows.store_late()

    assert await delivered(topics) == position


async def test_late_report_of_other_shards_stores_nothing(topics, rows, route, begin):
    """After a split no shard of a report is among those that another one has stored."""
    former = await begin()
    await save(former, TopicPositions({0: 3}))
    count(former.counts, route.number, 4)
    rows.lost = "before"
    with pytest.raises(StorageUnavailable):
        await save(former, TopicPositions({1: 2, 2: 2}))
    rows.lost = ""
    progress = await begin(fence=2)
    count(progress.counts, route.number, 2)
    await save(progress, TopicPositions({0: 5}))

    await rows.store_late()

    assert await delivered(topics) == 2
    assert progress.is_saved(await rows.read(route.stream_id))


async def test_shard_that_ends_while_a_report_is_confirmed_is_counted_with_its_children(
    topics, rows, route, begin, monkeypatch
):
    """A child without a position was taken for a shard that is read to its end, and a successor reads it again (T10)."""
    progress, positions = await begin(), {0: 3}
    rows.lost = "before"
    with pytest.raises(StorageUnavailable):
        await save(progress, TopicPositions(positions))
    rows.lost = ""
    branch = route.branches[0]
    reports = rows.reports

    async def reports_later(stream_id):
        nonlocal positions
        positions = {1: 1, 2: 0}
        copies = [
            Copy(SourceRecord.of(shard, LogRecord(offset, 0, Record(b"x"))), route, branch)
            for shard, offset in ((1, 0), (2, 0))
        ]
        progress.counts.add_delivered(copies)
        return await reports(stream_id)

    monkeypatch.setattr(rows, "reports", reports_later)
    await progress.save(lambda: TopicPositions(positions))

    assert await rows.read(route.stream_id) == TopicPositions({1: 1, 2: 0})
    assert await delivered(topics) == 1
