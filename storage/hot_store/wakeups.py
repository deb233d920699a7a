"""Long polls that cost nothing while they wait.

A read that finds nothing sets a flag in the log; the next append, release or due move publishes the log's id once and
clears it. One subscription per process receives all of them:

    publish ──▶ Wakeups ──▶ queue: its longest waiting caller; one that found something passes the wake-up on
                       ├──▶ stream: every caller that reads its end
                       └──▶ its watcher, which is called and has no coroutine

After a lost subscription, and periodically anyway, every log with waiting callers is read again, and watchers are told to
read theirs: a missed publish costs time, never a message.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from math import inf
from typing import Protocol

from storage.concurrency.tasks import end
from storage.domain.errors import StorageBusy, StorageUnavailable
from storage.domain.limits import SECOND_MS, Limits
from storage.domain.names import LogId

_RESUBSCRIBE_S = 0.2

Subscribe = Callable[[], AsyncIterator[LogId | None]]
"""Subscribes to published wake-ups, with None first: earlier ones may have been missed.

Each iteration is a subscription of its own, which ends by StorageUnavailable.
"""


class LogWatcher(Protocol):
    """Object that is called when one of its logs changes; a log has at most one in a process."""

    @property
    def log_ids(self) -> tuple[LogId, ...]: ...

    def wake(self) -> None:
        """Read the logs soon: one was published."""
        ...


class Waiter:
    """One caller that waits for logs to change. Small: there are thousands, and most are idle."""

    __slots__ = ("_alone", "_wakeup", "_wakeups", "_woken", "log_ids", "satisfied")

    def __init__(self, wakeups: "Wakeups", log_ids: tuple[LogId, ...], alone: bool) -> None:
        self._wakeups = wakeups
        self.log_ids = log_ids
        self._alone = alone
        self._wakeup: asyncio.Future[bool] | None = None  # True: woken; False: the time is up
        self.satisfied = False
        self._woken: set[LogId] | None = set() if alone and len(log_ids) > 1 else None

    @property
    def keys(self) -> tuple[LogId, ...]:
        """Logs under which it is registered: one for all partitions of a queue."""
        return self.log_ids if self._woken is None else self.log_ids[:1]

    def __enter__(self) -> "Waiter":
        self._wakeups.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._wakeups.leave(self)

    async def wait(self, seconds: float) -> None:
        """Return when woken, or after `seconds`; infinity needs no timer."""
        loop = asyncio.get_running_loop()
        if self._wakeup is None:
            self._wakeup = loop.create_future()
        if seconds == inf:
            await self._wakeup
            return
        timer = loop.call_later(seconds, self._resolve, False)
        try:
            await self._wakeup
        finally:
            timer.cancel()

    def reset(self) -> None:
        """Discard an earlier wake-up: the caller is about to read."""
        self._wakeup = None

    @property
    def was_woken(self) -> bool:
        """True if it was woken, and has not read since."""
        wakeup = self._wakeup
        return wakeup is not None and wakeup.done() and not wakeup.cancelled() and wakeup.result()

    @property
    def shares(self) -> bool:
        """True if others are woken at the same time."""
        return not self._alone

    def note(self, log_id: LogId) -> None:
        """Note that a log may have something for a caller that waits for several."""
        if self._woken is not None:
            self._woken.add(log_id)

    def take_woken(self) -> set[LogId]:
        """Return the logs noted since the last call."""
        woken = self._woken
        if woken:
            self._woken = set()
        return woken or set()

    def passes_on(self, log_id: LogId) -> bool:
        """Return whether another caller should read a log when this one leaves."""
        if self._woken is None:
            return self.satisfied or self.was_woken
        return log_id in self._woken

    def wake(self, log_id: LogId) -> None:
        """End the wait, now or when it starts."""
        self.note(log_id)
        if self._wakeup is None:
            self._wakeup = asyncio.get_running_loop().create_future()
        self._resolve(True)

    def _resolve(self, woken: bool) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(woken)


class Wakeups:
    """Registry of the waiting callers of each log, in this process."""

    def __init__(self, subscribe: Subscribe, limits: Limits) -> None:
        self._subscribe = subscribe
        self._limits = limits
        self._waiters: dict[LogId, dict[Waiter, None]] = {}
        self._first_logs: dict[
            LogId, LogId
        ] = {}  # of the queue of a partition, while one waits for it
        self._timers: dict[LogId, tuple[float, asyncio.Handle]] = {}  # by loop time
        self._watchers: dict[LogId, LogWatcher] = {}
        self.on_missed: list[Callable[[], object]] = []
        """Called when wake-ups of any log may have been missed, and periodically."""
        self._count = 0
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._recheck())]

    async def close(self) -> None:
        """Stop listening; all waiting callers are woken."""
        await end(*self._tasks)
        for _, timer in self._timers.values():
            timer.cancel()
        self.wake_all()

    @property
    def count(self) -> int:
        """Number of waiting callers."""
        return self._count

    def waiting(self, log_ids: Iterable[LogId], *, alone: bool) -> Waiter:
        """Register before reading, so that no wake-up is lost between the read and the wait.

        To be used as `with wakeups.waiting(...) as waiter`. `alone`: a wake-up is for one caller, which passes it on when it
        found something. Raises StorageBusy when too many wait.
        """
        if self._count >= self._limits.waiters_max:
            raise StorageBusy("Too many callers are waiting.")
        return Waiter(self, tuple(log_ids), alone)

    def enter(self, waiter: Waiter) -> None:
        """Start waking this caller."""
        self._count += 1
        for key in waiter.keys:
            self._waiters.setdefault(key, {})[waiter] = None
        if len(waiter.keys) < len(waiter.log_ids):
            self._first_logs.update(dict.fromkeys(waiter.log_ids, waiter.log_ids[0]))

    def leave(self, waiter: Waiter) -> None:
        """Stop waking this caller.

        If it was woken, or found something, the next one is woken: there may be more.
        """
        self._count -= 1
        for key in waiter.keys:
            waiters = self._waiters[key]
            del waiters[waiter]
            if not waiters:
                del self._waiters[key]
        for log_id in waiter.log_ids:
            if self._first_logs.get(log_id, log_id) not in self._waiters:
                self._first_logs.pop(log_id, None)
                if timed := self._timers.pop(log_id, None):
                    timed[1].cancel()
            elif waiter.passes_on(log_id):
                self.wake(log_id)

    def watch(self, watcher: LogWatcher) -> None:
        """Call the watcher for published wake-ups of its logs, until `unwatch`."""
        self._watchers.update(dict.fromkeys(watcher.log_ids, watcher))

    def unwatch(self, watcher: LogWatcher) -> None:
        """Stop calling the watcher."""
        for log_id in watcher.log_ids:
            if self._watchers.get(log_id) is watcher:
                del self._watchers[log_id]

    def wake(self, log_id: LogId) -> None:
        """Wake the next caller, or all that share."""
        self._wake(log_id, log_id)
        first = self._first_logs.get(log_id, log_id)
        if first != log_id:
            self._wake(first, log_id)

    def _wake(self, key: LogId, log_id: LogId) -> None:
        about_to_read: Waiter | None = None
        for waiter in self._waiters.get(key, ()):
            if waiter.shares:
                waiter.wake(log_id)
            elif not waiter.was_woken:
                waiter.wake(log_id)
                return
            else:
                about_to_read = about_to_read or waiter
        if about_to_read is not None:
            about_to_read.note(log_id)

    def wake_all(self) -> None:
        """Wake a reader of every log, and tell those with watchers."""
        for log_id in (*self._waiters, *self._first_logs):
            self.wake(log_id)
        for notify in self.on_missed:
            notify()

    def wake_after(self, log_id: LogId, delay_ms: int) -> None:
        """Schedule a wake-up for when something is due; the earliest time given counts."""
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0, delay_ms) / SECOND_MS
        timed = self._timers.get(log_id)
        if timed is not None:
            if timed[0] <= when:
                return
            timed[1].cancel()
        # An immediate handle has no time on uvloop: handle.when() is not available.
        self._timers[log_id] = (when, loop.call_at(when, self._due, log_id))

    def _due(self, log_id: LogId) -> None:
        self._timers.pop(log_id, None)
        self.wake(log_id)

    async def _listen(self) -> None:
        while True:
            try:
                async for log_id in self._subscribe():
                    if log_id is None:
                        self.wake_all()
                    else:
                        self._publish(log_id)
            except StorageUnavailable:
                await asyncio.sleep(_RESUBSCRIBE_S)

    def _publish(self, log_id: LogId) -> None:
        self.wake(log_id)
        if watcher := self._watchers.get(log_id):
            watcher.wake()

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(self._limits.waiter_recheck_ms / SECOND_MS)
            self.wake_all()
