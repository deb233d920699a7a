"""Timers of waiting callers, on the event loop used in production."""

import asyncio
from typing import Any, cast

import uvloop

from storage.domain.errors import StorageUnavailable
from storage.domain.limits import Limits
from storage.hot_store.wakeups import Wakeups

LOG = "0123456789abcdef"


class Away:
    """A store that cannot be listened to."""

    def __call__(self) -> Any:
        raise StorageUnavailable


def test_two_waiters_due_immediately_are_both_woken():
    """The second receive was answered 500: on uvloop, a timer without delay has no due time."""

    async def work() -> bool:
        wakeups = Wakeups(cast(Any, Away()), Limits())
        with wakeups.waiting([LOG], alone=True) as first:
            wakeups.wake_after(LOG, 0)
            wakeups.wake_after(LOG, 0)
            wakeups.wake_after(LOG, 60_000)
            await asyncio.sleep(0.01)
            woken = first.was_woken
        await wakeups.close()
        return woken

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(work())
