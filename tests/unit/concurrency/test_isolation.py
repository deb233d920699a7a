"""Objects that fail by themselves delay no others, and are visited again after a back-off."""

from functools import partial

import pytest

from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.clock import ManualClock
from storage.domain.errors import OutcomeUnknown, QueueNotFound, StorageBusy, StorageUnavailable

NAMES = ["queues/a", "queues/b", "queues/c"]


class Objects:
    """Objects of which some fail; `visits` counts what reached them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.isolation = Isolation(self.clock)
        self.errors: dict[str, Exception] = {}
        self.visits: list[str] = []

    async def visit(self, name: str) -> int:
        self.visits.append(name)
        if name in self.errors:
            raise self.errors[name]
        return 1

    async def round(self, *names: str) -> list[int]:
        return [
            await self.isolation.visit("queues", name, partial(self.visit, name), 0)
            for name in names or NAMES
        ]


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.mark.parametrize("error", [ValueError("a bug"), QueueNotFound("no queue")])
async def test_failing_object_does_not_stop_round(objects, error):
    objects.errors["queues/b"] = error

    assert await objects.round() == [1, 0, 1]
    [failing] = objects.isolation.failing
    assert (failing.task, failing.object, failing.failures) == ("queues", "queues/b", 1)
    assert str(error) in failing.reason or error.detail in failing.reason


async def test_failure_is_logged_once_until_object_recovers(objects, caplog):
    caplog.set_level("INFO")
    objects.errors["queues/b"] = ValueError("a bug")
    for _ in range(5):
        await objects.round()
        objects.clock.advance(limits.HOUR_MS)
    del objects.errors["queues/b"]
    await objects.round()

    assert caplog.messages == ["object_failed", "object_recovered"]
    assert objects.isolation.failing == ()


async def test_failing_object_is_visited_with_growing_backoff(objects):
    objects.errors["queues/b"] = ValueError("a bug")
    for _ in range(60):
        await objects.round("queues/b")
        objects.clock.advance(limits.SECOND_MS)

    assert len(objects.visits) == 6  # after 0, 1, 3, 7, 15 and 31 seconds


async def test_backoff_is_limited(objects):
    objects.errors["queues/b"] = ValueError("a bug")
    day = limits.DAY_MS // limits.MINUTE_MS
    for _ in range(day):
        await objects.round("queues/b")
        objects.clock.advance(limits.MINUTE_MS)

    assert len(objects.visits) >= day // 6


STORE_FAILURES = [StorageUnavailable("down"), StorageBusy("busy"), OutcomeUnknown("late")]


@pytest.mark.parametrize("error", STORE_FAILURES)
async def test_store_failure_is_not_the_objects(objects, caplog, error):
    """Moves and rebalances would have waited for minutes after an outage of the store."""
    objects.errors["queues/b"] = error

    for _ in range(20):
        assert await objects.round() == [1, 0, 1]
        objects.clock.advance(limits.SECOND_MS)
    del objects.errors["queues/b"]

    assert await objects.round() == [1, 1, 1]
    assert (objects.isolation.failing, caplog.messages) == ((), [])


async def test_lasting_outage_of_store_ends_round(objects):
    objects.errors = {name: StorageUnavailable("down") for name in NAMES}

    assert await objects.round() == [0, 0, 0]
    objects.clock.advance(limits.ISOLATED_STORE_OUTAGE_MS)
    objects.visits.clear()
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            await objects.round()

    assert objects.visits == ["queues/a", "queues/a"]
    objects.errors.clear()
    assert await objects.round() == [1, 1, 1]


async def test_partial_outage_of_store_ends_no_round(objects):
    """One server of a cluster was down: the objects of the others are served."""
    names = [f"queues/{number}" for number in range(20)]
    objects.errors = {name: StorageUnavailable("down") for name in names[:12]}

    for _ in range(10):
        assert sum(await objects.round(*names)) == 8
        objects.clock.advance(limits.SECOND_MS)


async def test_longest_failing_object_is_first(objects):
    for name in ("queues/c", "queues/a"):
        objects.errors[name] = ValueError("a bug")
        await objects.round()
        objects.clock.advance(limits.MINUTE_MS)
    await objects.round()

    assert [failing.object for failing in objects.isolation.failing] == ["queues/c", "queues/a"]


async def test_deleted_object_leaves_failing_list(objects):
    objects.errors["queues/b"] = ValueError("a bug")
    await objects.round()

    objects.clock.advance(limits.ISOLATED_FAILURE_AGE_MS)

    assert objects.isolation.failing == ()


async def test_remembered_failures_are_bounded(objects):
    names = [f"queues/{number}" for number in range(limits.ISOLATED_FAILURES_MAX + 5)]
    objects.errors = {name: ValueError("a bug") for name in names}

    await objects.round(*names)

    assert len(objects.isolation.failing) == limits.ISOLATED_FAILURES_MAX
    assert {failing.object for failing in objects.isolation.failing} == set(names[5:])


async def test_clock_set_back_does_not_extend_backoff(objects):
    objects.errors["queues/b"] = ValueError("a bug")
    await objects.round("queues/b")
    objects.clock.advance(-limits.HOUR_MS)
    await objects.round("queues/b")

    assert len(objects.visits) == 2
