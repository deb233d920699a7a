"""The worker's one Spark session, started on demand and recycled when worn or ended."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from spark_worker.runtime.spark_session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

OpenSession = Callable[[], Coroutine[Any, Any, Session]]


class SessionPool:
    """Provider of the session.

    `jobs_max`: the number of jobs after which it is worn, because of what a JVM leaks in a long life.
    """

    def __init__(self, open_session: OpenSession, jobs_max: int) -> None:
        self._open = open_session
        self._jobs_max = jobs_max
        self._jobs = 0
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._turn = asyncio.Lock()

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

        Raises SparkFailed, JavaMissing.
        """
        async with self._turn:
            if self._session is not None and not await asyncio.to_thread(self._session.answers):
                logger.warning("jvm_restarted")
                await self._close()
            if self._session is None:
                self._session = await self._open_one()
            return self._session.spark

    async def _open_one(self) -> Session:
        self._opening = asyncio.create_task(self._open())
        try:
            return await self._opening
        finally:
            self._opening = None

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

    async def _close(self) -> None:
        session, self._session, self._jobs = self._session, None, 0
        if session is not None:
            await asyncio.to_thread(session.close)
