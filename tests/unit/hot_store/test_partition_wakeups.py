"""Wake-ups of callers that wait for the partitions of a queue."""

import asyncio

import pytest

from storage.domain.limits import Limits
from storage.hot_store.wakeups import Wakeups

LOGS = ("a", "b", "c")


async def nothing():
    await asyncio.Event().wait()
    yield None


@pytest.fixture
async def wakeups():
    opened = Wakeups(nothing, Limits())
    yield opened
    await opened.close()


async def test_waiter_is_told_which_logs_woke_it(wakeups):
    with wakeups.waiting(LOGS, alone=True) as waiter:
        wakeups.wake("b")

        await asyncio.wait_for(waiter.wait(20), 1)

        assert waiter.take_woken() == {"b"}
        assert waiter.take_woken() == set()


async def test_wake_up_of_one_who_has_not_read_yet_is_kept(wakeups):
    """Its caller would read the first log alone, and the second one had to wait for the next round."""
    with wakeups.waiting(LOGS, alone=True) as waiter:
        wakeups.wake("b")
        wakeups.wake("c")

        assert waiter.take_woken() == {"b", "c"}


async def test_each_log_wakes_another_waiter(wakeups):
    with (
        wakeups.waiting(LOGS, alone=True) as first,
        wakeups.waiting(LOGS, alone=True) as second,
    ):
        wakeups.wake("b")
        wakeups.wake("c")

        assert (first.take_woken(), second.take_woken()) == ({"b"}, {"c"})


async def test_leaving_passes_on_what_was_not_read(wakeups):
    with wakeups.waiting(LOGS, alone=True) as second:
        first = wakeups.waiting(LOGS, alone=True)
        wakeups.leave(second)
        wakeups.enter(first)
        wakeups.enter(second)
        wakeups.wake("b")
        wakeups.wake("c")  # the second one
        assert second.take_woken() == {"c"}
        second.reset()

        wakeups.leave(first)

        assert second.was_woken
        assert second.take_woken() == {"b"}


async def test_all_logs_are_read_after_a_lost_subscription(wakeups):
    with wakeups.waiting(LOGS, alone=True) as waiter:
        wakeups.wake_all()

        assert waiter.take_woken() == set(LOGS)


async def test_nothing_is_left_of_the_last_waiter(wakeups):
    with wakeups.waiting(LOGS, alone=True):
        wakeups.wake_after("c", 60_000)

    assert (wakeups.count, wakeups._waiters, wakeups._first_logs, wakeups._timers) == (
        0,
        {},
        {},
        {},
    )


async def test_readers_of_a_partition_are_woken_with_its_receivers(wakeups):
    with (
        wakeups.waiting(LOGS, alone=True) as receiver,
        wakeups.waiting(["c"], alone=False) as reader,
    ):
        wakeups.wake("c")

        assert reader.was_woken
        assert receiver.take_woken() == {"c"}
