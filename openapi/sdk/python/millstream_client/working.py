"""Queue workers: concurrent handlers whose messages stay hidden until they are settled.

    receive as many as there is capacity for ─▶ handler ─┬─ returns ──────▶ ack, with its value as reply to a request
              ▲                                          ├─ raises Retry ─▶ nack, after its delay
              │ capacity                                 ├─ raises Reject ▶ reject: dead-lettered
              └──────────────────────────────────────────┴─ raises ───────▶ nack, with the queue's back-off

    every third of the lease: extend all messages in progress, in one call

Messages in progress when the worker dies are redelivered after their lease. A handler can see a message twice, as any
consumer of a queue can.
"""

import asyncio
import logging
import signal
import threading
import traceback
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from millstream_client.aio.transport import AsyncTransport
from millstream_client.errors import ItemRefused, MillstreamError
from millstream_client.messages import Delivery, Settlement, Verdict, receive, settle
from millstream_client.retries import Retries

log = logging.getLogger("millstream_client")

T = TypeVar("T")

WAIT_S = 20.0
PAUSE_S = 1.0  # after a receive that failed for good reasons, however often it was tried
LAST_RECEIVE_S = 0.5  # a receive that is to end may still bring what it has taken
TOGETHER_MAX = 1_000  # verdicts or messages in one call
REASON_CHARACTERS_MAX = 1_024
DETAILS_CHARACTERS_MAX = 4_096
_PACKAGE = Path(__file__).parent


class Retry(Exception):
    """Raised by a handler to retry the message after `delay_seconds`."""

    def __init__(self, delay_seconds: float | None = None, reason: str = "") -> None:
        self.delay_seconds = delay_seconds
        super().__init__(reason)


class Reject(Exception):
    """Raised by a handler for a permanent failure.

    The message is dead-lettered with the reason.
    """

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


Handle = Callable[[Delivery], Awaitable[Settlement | None]]
"""Handler of one message, which returns its acknowledgement unless it has settled it."""


@dataclass(frozen=True)
class Pace:
    """Settings of a worker.

    `concurrency`: maximum messages in progress. `lease_seconds`: how long a message stays hidden without an extension.
    `grace_seconds`: how long messages in progress may take once the worker is stopped; then they are released.
    """

    concurrency: int = 1
    lease_seconds: float = 30.0
    grace_seconds: float = 25.0


class Work:
    """One worker's loop. It can run once."""

    def __init__(self, transport: AsyncTransport, queue: str, handle: Handle, pace: Pace) -> None:
        self._transport = transport
        self._queue = queue
        self._handle = handle
        self._pace = pace
        self._hands: dict[asyncio.Task[None], Delivery] = {}
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()
        self._verdicts = _Verdicts(transport, queue)

    def stop(self) -> None:
        """Stop receiving, finish the messages in progress, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped. Raises MillstreamError if the queue was deleted or cannot be read."""
        keeping = asyncio.create_task(self._keep_leases())
        settling = asyncio.create_task(self._verdicts.run())
        try:
            await self._receive_until_stopped()
        finally:
            await self._finish()
            self._verdicts.end()
            await settling
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    # ── Taking ──

    async def _receive_until_stopped(self) -> None:
        while not self._stopping.is_set():
            room = self._pace.concurrency - len(self._hands)
            if room > 0:
                for delivery in await self._unless_stopped(self._receive(room)) or ():
                    self._begin(delivery)
            else:
                self._room.clear()
                await self._unless_stopped(self._room.wait())

    async def _receive(self, room: int) -> list[Delivery]:
        asked = receive(
            self._queue,
            min(room, TOGETHER_MAX),
            WAIT_S,
            self._pace.lease_seconds,
            uuid.uuid4().hex,
        )
        try:
            return await self._transport.call(asked)
        except MillstreamError as error:
            if not error.retryable:
                raise
            log.warning("receiving from %s failed: %s", self._queue, error)
            await asyncio.sleep(PAUSE_S)
            return []

    async def _unless_stopped(self, waiting: Awaitable[T]) -> T | None:
        """Return the result, or None if the worker is stopped and the result does not follow soon."""
        task = asyncio.ensure_future(waiting)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=LAST_RECEIVE_S)
            return task.result() if task.done() else None
        finally:
            for one in (task, stopping):
                one.cancel()
            await asyncio.gather(task, stopping, return_exceptions=True)

    def _begin(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._work_on(delivery))
        self._hands[task] = delivery
        task.add_done_callback(self._put_down)

    def _put_down(self, task: asyncio.Task[None]) -> None:
        del self._hands[task]
        self._room.set()

    # ── Working ──

    async def _work_on(self, delivery: Delivery) -> None:
        verdict = await self._verdict_on(delivery)
        if verdict is not None:
            await self._verdicts.give(verdict)

    async def _verdict_on(self, delivery: Delivery) -> Settlement | None:
        handle = delivery.receipt_handle
        try:
            return await self._handle(delivery)
        except Retry as retry:
            return Settlement(
                handle,
                Verdict.NACK,
                delay_seconds=retry.delay_seconds,
                reason=_reason(str(retry)),
                details=_cause(retry),
            )
        except Reject as reject:
            return Settlement(
                handle, Verdict.REJECT, reason=_reason(reject.reason), details=_cause(reject)
            )
        except asyncio.CancelledError:
            return Settlement(handle, Verdict.RELEASE)
        except Exception as error:
            log.exception("message %s of %s failed", delivery.id, self._queue)
            reason = _reason(f"{type(error).__name__}: {error}")
            return Settlement(handle, Verdict.NACK, reason=reason, details=_traceback(error))

    async def _keep_leases(self) -> None:
        """Extend the messages in progress; only the handler ends a delivery that is over."""
        lease_s = self._pace.lease_seconds
        while True:
            await asyncio.sleep(lease_s / 3)
            extensions = [
                Settlement(
                    delivery.receipt_handle, Verdict.EXTEND, visibility_timeout_seconds=lease_s
                )
                for delivery in self._hands.values()
            ]
            for start in range(0, len(extensions), TOGETHER_MAX):
                call = settle(self._queue, extensions[start : start + TOGETHER_MAX])
                try:
                    await self._transport.call(call, Retries(seconds=lease_s / 3))
                except MillstreamError as error:
                    log.warning("extending leases of %s failed: %s", self._queue, error)

    async def _finish(self) -> None:
        """Wait for the messages in progress, and release those that take too long."""
        if self._hands:
            await asyncio.wait([*self._hands], timeout=self._pace.grace_seconds)
        unfinished = [*self._hands]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


class _Verdicts:
    """Batcher of settlements: those that arrive during a call leave together in the next."""

    def __init__(self, transport: AsyncTransport, queue: str) -> None:
        self._transport = transport
        self._queue = queue
        self._waiting: list[tuple[Settlement, asyncio.Future[None]]] = []
        self._news = asyncio.Event()
        self._ended = False

    async def give(self, verdict: Settlement) -> None:
        """Submit a settlement; return when it has been sent, successfully or not."""
        given = asyncio.get_running_loop().create_future()
        self._waiting.append((verdict, given))
        self._news.set()
        await given

    def end(self) -> None:
        """Send the waiting settlements, and end."""
        self._ended = True
        self._news.set()

    async def run(self) -> None:
        while self._waiting or not self._ended:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
                continue
            batch, self._waiting = self._waiting[:TOGETHER_MAX], self._waiting[TOGETHER_MAX:]
            try:
                await self._give([verdict for verdict, _ in batch])
            finally:
                for _, given in batch:
                    if not given.done():
                        given.set_result(None)

    async def _give(self, verdicts: list[Settlement]) -> None:
        try:
            results = await self._transport.call(settle(self._queue, verdicts))
        except MillstreamError as error:
            log.error("%d settlements on %s failed: %s", len(verdicts), self._queue, error)
            return
        for verdict, result in zip(verdicts, results, strict=True):
            if isinstance(result, ItemRefused):
                log.warning("%s on a message of %s: %s", verdict.action, self._queue, result)
            elif result.reply_error is not None:
                log.warning("reply to a request of %s: %s", self._queue, result.reply_error)


def _reason(text: str) -> str:
    return text[:REASON_CHARACTERS_MAX]


def _cause(verdict: Exception) -> str:
    """Return the traceback of the exception that led to a verdict; empty without one."""
    cause = verdict.__cause__ if verdict.__suppress_context__ else verdict.__context__
    return "" if cause is None else _traceback(cause)


def _traceback(error: BaseException) -> str:
    """Return the end of a traceback, from the handler on."""
    frames = error.__traceback__
    while frames is not None and Path(frames.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    return text[-DETAILS_CHARACTERS_MAX:]


# ── Signals ──

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@asynccontextmanager
async def stopped_by_signals(stop: Callable[[], None], wanted: bool) -> AsyncGenerator[None]:
    """Call `stop` on SIGTERM and SIGINT inside the block, if this is the main thread."""
    loop = asyncio.get_running_loop()
    heard: list[signal.Signals] = []
    if wanted and threading.current_thread() is threading.main_thread():
        with suppress(NotImplementedError):  # not on every platform
            for one in SIGNALS:
                loop.add_signal_handler(one, stop)
                heard.append(one)
    try:
        yield
    finally:
        _no_longer(loop, heard)


def _no_longer(loop: asyncio.AbstractEventLoop, heard: Iterable[signal.Signals]) -> None:
    for one in heard:
        loop.remove_signal_handler(one)
