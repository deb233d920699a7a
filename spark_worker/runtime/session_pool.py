"""The worker's one Spark session, started on demand and recycled when worn or ended."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from spark_worker.runtime.cluster import ExecutorsUnavailable
from spark_worker.runtime.jvm import END_S
from spark_worker.runtime.spark_session import Session
from storage.concurrency.tasks import end
from storage.domain import limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

OpenSession = Callable[[], Coroutine[Any, Any, Session]]


def _ignore_loss(_failure: str) -> None:
    """Ignore a loss: the default of `on_lost`."""


class SessionPool:
    """Provider of the session.

    `jobs_max`: the number of jobs after which it is worn, because of what a JVM leaks in a long life. `on_lost` is called with the
    reason when a session loses its cluster, before it is closed; the next one is opened after a pause, which doubles.
    """

    def __init__(self, open_session: OpenSession, jobs_max: int) -> None:
        self._open = open_session
        self._jobs_max = jobs_max
        self._jobs = 0
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._turn = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._backoff = _Backoff()
        self.on_lost: Callable[[str], None] = _ignore_loss

    @property
    def log(self) -> str:
        """Text about the session's log and application; empty if there is none."""
        return "" if self._session is None else self._session.log

    @property
    def running(self) -> bool:
        """Return whether there is a session whose JVM runs."""
        return self._session is not None and self._session.alive

    @property
    def jvm_pid(self) -> int | None:
        """The process id of the session's JVM."""
        return None if self._session is None else self._session.jvm_pid

    @property
    def needs_recycling(self) -> bool:
        """Return whether the session should be replaced once it is idle."""
        return self._session is not None and self._jobs >= self._jobs_max

    async def get(self) -> "SparkSession":
        """Return the session, starting it if necessary.

        Raises SparkFailed, JavaMissing, ExecutorsUnavailable.
        """
        async with self._turn:
            if self._session is not None and not await asyncio.to_thread(self._session.answers):
                logger.warning("jvm_restarted")
                await self._close()
            if self._session is None:
                self._backoff.check()
                try:
                    self._session = await self._open_one()
                except ExecutorsUnavailable as error:
                    logger.warning("spark_executors_unavailable", extra={"reason": str(error)})
                    self._backoff.note(str(error))
                    raise
                if self._session.has_cluster:
                    self._watch = asyncio.create_task(self._watch_cluster(self._session))
            return self._session.spark

    async def _open_one(self) -> Session:
        self._opening = asyncio.create_task(self._open())
        try:
            return await self._opening
        finally:
            self._opening = None

    async def _watch_cluster(self, session: Session) -> None:
        """Close a session once its cluster has no executors for it."""
        loop = asyncio.get_running_loop()
        opened = loop.time()
        while True:
            await asyncio.sleep(limits.SPARK_WATCH_MS / limits.SECOND_MS)
            reason = await asyncio.to_thread(session.lost_reason)
            if reason is not None:
                break
            if loop.time() - opened >= limits.SPARK_BACKOFF_MS_MAX / limits.SECOND_MS:
                self._backoff.reset()
        logger.warning("spark_executors_lost", extra={"reason": reason})
        self._backoff.note(reason)
        self.on_lost(reason)
        async with self._turn:
            if self._session is session:
                await self._close(within_s=0.0)

    def count_job(self) -> None:
        """Count a job that used the session and has ended."""
        self._jobs += 1

    async def cancel(self, group: str) -> None:
        """Cancel the Spark jobs of a group."""
        if self._session is not None:
            await asyncio.to_thread(self._session.cancel, group)

    async def close(self) -> None:
        """End the session, also while it starts; the next `get` starts another."""
        if self._opening is not None:
            self._opening.cancel()
        async with self._turn:
            await self._close()

    async def _close(self, within_s: float = END_S) -> None:
        watch, self._watch = self._watch, None
        if watch is not None and watch is not asyncio.current_task():
            await end(watch)
        session, self._session, self._jobs = self._session, None, 0
        if session is not None:
            await asyncio.to_thread(session.close, within_s=within_s)


class _Backoff:
    """Pause before a cluster is tried again: what is wrong there is seldom mended at once."""

    def __init__(self) -> None:
        self._failures = 0
        self._reason = ""
        self._until_s = 0.0

    def check(self) -> None:
        """Raise ExecutorsUnavailable with the last reason until the pause is over."""
        if asyncio.get_running_loop().time() < self._until_s:
            raise ExecutorsUnavailable(self._reason)

    def note(self, reason: str) -> None:
        """Begin a pause, twice as long as the one before."""
        pause_ms = min(limits.SPARK_BACKOFF_MS << self._failures, limits.SPARK_BACKOFF_MS_MAX)
        self._failures = min(self._failures + 1, _DOUBLINGS_MAX)
        self._reason = reason
        self._until_s = asyncio.get_running_loop().time() + pause_ms / limits.SECOND_MS

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._failures = 0


_DOUBLINGS_MAX = 10
