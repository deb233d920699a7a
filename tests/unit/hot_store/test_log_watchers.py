"""Watchers of logs: called for what is published, and told of what may have been missed."""

import asyncio

import pytest

from storage.domain.limits import Limits
from storage.hot_store.wakeups import Wakeups
from tests.conditions import PATIENCE_S


class Watcher:
    """Watcher that counts its calls."""

    def __init__(self, *log_ids: str) -> None:
        self.log_ids = log_ids
        self.calls = 0

    def wake(self) -> None:
        self.calls += 1


class Store:
    """Store whose publications a test makes."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[str | None] = asyncio.Queue()

    async def __call__(self):
        while True:
            yield await self.published.get()
            self.published.task_done()

    async def publish(self, *log_ids: str | None) -> None:
        for log_id in log_ids:
            self.published.put_nowait(log_id)
        async with asyncio.timeout(PATIENCE_S):
            await self.published.join()


@pytest.fixture
def store():
    return Store()


@pytest.fixture
async def wakeups(store):
    opened = Wakeups(store, Limits())
    yield opened
    await opened.close()


async def test_watcher_is_called_for_each_of_its_logs(wakeups, store):
    watcher = Watcher("a", "b")
    wakeups.watch(watcher)

    await store.publish("a", "c", "b")

    assert watcher.calls == 2


async def test_watcher_is_not_called_after_unwatch(wakeups, store):
    watcher, successor = Watcher("a", "b"), Watcher("a")
    wakeups.watch(watcher)
    wakeups.watch(successor)

    wakeups.unwatch(watcher)
    await store.publish("a", "b")

    assert (watcher.calls, successor.calls) == (0, 1)


async def test_missed_wake_ups_are_told_once_for_all_logs(wakeups, store):
    watcher, missed = Watcher("a", "b"), []
    wakeups.watch(watcher)
    wakeups.on_missed.append(lambda: missed.append(True))

    await store.publish(None)

    assert (watcher.calls, missed) == (0, [True])
