"""One Spark session per test run: started on first use, and lent to each test."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from spark_worker.runtime.spark_session import Session, open_session
from spark_worker.settings import WorkerSettings
from storage.settings import StorageSettings

MASTER = "local[2]"
MEMORY_MB = 1024


class SparkOfTheRun:
    """The shared session, replaced when a test has killed its JVM."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self.started = 0

    def lender(self, storage: StorageSettings) -> "Callable[[], Coroutine[Any, Any, Lent]]":
        """Return a session factory for a test; closing the lent session keeps it open."""

        async def lend() -> Lent:
            if self._session is None or not await asyncio.to_thread(self._session.answers):
                self.close()
                self._session = await open_session(worker_settings(storage))
                self.started += 1
            return Lent(self._session)

        return lend

    def close(self) -> None:
        """End the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


class Lent(Session):
    """A session whose close has no effect."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.spark, session._jvm, session._folder, session._settings)

    def close(self, *, within_s: float = 0.0) -> None:
        """Leave the session open."""


def worker_settings(storage: StorageSettings) -> WorkerSettings:
    """Worker settings for tests."""
    return WorkerSettings(storage=storage, spark_master=MASTER, spark_memory_mb=MEMORY_MB)
