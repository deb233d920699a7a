"""Timers of those who wait, on the event loop that serves."""

import asyncio
from typing import Any, cast

import uvloop

from storage.domain.limits import Limits
from storage.redis.transport.wakeups import Wakeups

LOG = "0123456789abcdef"


class Away:
    """A store that nobody can listen to."""

    def __call__(self) -> Any:
        raise ConnectionError


def test_two_callers_whose_message_is_due_at_once_are_woken():
    """The second one's receive was answered 500: on uvloop a timer of no time has no time."""

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
