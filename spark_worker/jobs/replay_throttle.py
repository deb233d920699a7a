"""Throttle of a replay: due times, backpressure, retries, and the request to stop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TypeVar

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import ErrorCode, MillstreamError
from storage.domain.replays.pacing import AdaptiveThrottle, ReplaySpeed

T = TypeVar("T")

_POLL_S = 0.2  # between checks whether a target's readers have caught up

_PRESSURE = frozenset({ErrorCode.QUEUE_FULL, ErrorCode.ARCHIVE_BEHIND, ErrorCode.STORAGE_BUSY})
"""The target has no capacity now: a replay waits for it indefinitely."""


class ReplayHalted(Exception):
    """The owner requested that the job stops, or another attempt has it."""


class ReplayThrottle:
    """Waits of one task, each of which ends at the request to stop.

    `is_lagging`: the target's readers have too large a backlog. `waits`: how many lanes wait for that, for room in the
    target, or for the time of their next record.
    """

    def __init__(self, speed: ReplaySpeed | None, clock: Clock) -> None:
        self.is_lagging = False
        self.waits = 0
        self._speed = speed
        self._clock = clock
        self._adaptive = AdaptiveThrottle()
        self._halt = asyncio.Event()

    def halt(self) -> None:
        """Request the task to stop."""
        self._halt.set()

    @property
    def is_due(self) -> Callable[[int], bool] | None:
        """Predicate on an arrival in ms: the record may be sent now. None: all may."""
        speed = self._speed
        if speed is None:
            return None
        now_ms = self._clock.now_ms()
        return lambda arrival_ms: speed.due_ms(arrival_ms) <= now_ms

    async def wait_until_due(self, arrival_ms: int | None) -> None:
        """Wait until a record that arrived then may be sent. Raises ReplayHalted."""
        if arrival_ms is not None and self._speed is not None:
            wait_ms = self._speed.due_ms(arrival_ms) - self._clock.now_ms()
            with self._counted():
                await self.wait(max(1, wait_ms))

    async def wait_for_readers(self) -> None:
        """Wait while the target's readers have too large a backlog. Raises ReplayHalted."""
        if self._halt.is_set():
            raise ReplayHalted
        with self._counted():
            while self.is_lagging:
                await self.wait(_POLL_S * limits.SECOND_MS)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1

    async def wait(self, ms: float) -> None:
        """Wait, but not longer than until the task is to stop.

        Raises ReplayHalted.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(ms / limits.SECOND_MS):
                await self._halt.wait()
        if self._halt.is_set():
            raise ReplayHalted

    async def measure(self, work: Awaitable[T]) -> T:
        """Await a call of the target, whose latency decides the pauses."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        result = await work
        self._adaptive.note((loop.time() - begun) * limits.SECOND_MS)
        return result

    async def pause(self) -> None:
        """Pause after a batch, which is counted even if the task is to stop."""
        if self._adaptive.pause_ms:
            with suppress(ReplayHalted):
                await self.wait(self._adaptive.pause_ms)

    async def retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry `work` until it succeeds.

        Raises immediately errors that another attempt would not cure, and others after many tries; ReplayHalted.
        """
        wait_ms: float = limits.REPLAY_RETRY_MS_MIN
        tries = 0
        while True:
            try:
                return await work()
            except MillstreamError as error:
                has_no_room = error.code in _PRESSURE
                tries += not has_no_room
                if not error.code.retryable or tries > limits.REPLAY_RETRIES_MAX:
                    raise
            with self._counted() if has_no_room else nullcontext():
                await self.wait(wait_ms)
            wait_ms = min(2 * wait_ms, limits.REPLAY_RETRY_MS_MAX)
