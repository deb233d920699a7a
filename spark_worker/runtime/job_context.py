"""Context of a job's handler: the job, Spark, the engines, and the request to stop.

A handler is an ordinary function in its own thread:

    def run(work: JobContext) -> Mapping[str, Any] | None:
        spec = work.spec(ArchiveSpec)
        files = work.spark.createDataFrame(spec.ranges).mapInArrow(copy, SCHEMA).collect()
        work.check()
        return work.call(work.storage.archive_committer.commit(work.claim, files))

Its return value is the job's progress at its end. It raises PermanentFailure where another attempt would not succeed either.
When it must stop, its Spark jobs are cancelled and `check` raises JobStopped; whatever it raises then, the job is
returned, to continue where its parts are. A thread of the handler's own that uses Spark is a
`pyspark.InheritableThread`.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from spark_worker.runtime.cluster import ExecutorsUnavailable
from spark_worker.runtime.requirements import SparkRequirement
from spark_worker.runtime.spark_session import set_call_site
from spark_worker.settings import WorkerSettings
from storage.domain.errors import MillstreamError
from storage.domain.jobs import WAITING_FOR, Job, JobLease, LeaseLost, RequestedState, WaitReason
from storage.domain.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage.bootstrap import Storage

Answer = TypeVar("Answer")
Spec = TypeVar("Spec")


class PermanentFailure(Exception):
    """The job cannot be done, and another attempt would fail too; the text is its failure."""


class TransientFailure(Exception):
    """A dependency of the job is unavailable, and another attempt may succeed.

    The text is this attempt's failure.
    """


class JobStopped(Exception):
    """The handler was requested to stop."""


class StopReason(StrEnum):
    """Reasons why a handler must stop."""

    PAUSE = "pause"
    CANCEL = "cancel"
    LEASE_LOST = "lease_lost"
    ENDING = "ending"
    """The worker ends."""
    WAITING = "waiting"
    """The job waits for something, and gives its place to another."""

    @classmethod
    def of(cls, requested: RequestedState) -> "StopReason | None":
        """Return the stop reason for an owner's request."""
        match requested:
            case RequestedState.NONE:
                return None
            case RequestedState.PAUSE:
                return cls.PAUSE
            case RequestedState.CANCEL:
                return cls.CANCEL


class SessionProvider(Protocol):
    """Provider of a handler's Spark session."""

    @property
    def running(self) -> bool: ...

    @property
    def needs_recycling(self) -> bool: ...

    async def get(self) -> "SparkSession": ...

    async def cancel(self, group: str) -> None: ...


class JobContext:
    """One attempt at a job, as its handler sees it.

    Its methods are for the handler's threads.
    """

    def __init__(
        self,
        job: Job,
        storage: "Storage",
        settings: WorkerSettings,
        sparks: SessionProvider,
        limits: Limits,
        *,
        long_slots: threading.Semaphore | None = None,
        spark: SparkRequirement | None = None,
    ) -> None:
        self.job = job
        self.storage = storage
        self.settings = settings
        self.limits = limits
        self.used_spark = False
        self.stop_reason: StopReason | None = None
        self.progress: Mapping[str, Any] = {
            name: value for name, value in job.progress.items() if name != WAITING_FOR
        }
        self.wait_ms = 0
        self.failure = ""
        self._sparks = sparks
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._stopped = asyncio.Event()
        self._long_slots = long_slots or threading.Semaphore(settings.jobs_at_once)
        self._has_long_slot = False
        self._spark = spark or SparkRequirement()

    @property
    def claim(self) -> JobLease:
        """The claim that this attempt's writes need."""
        return self.job.claim

    @property
    def group(self) -> str:
        """The group of its Spark jobs."""
        return f"{self.job.job_id}-{self.job.attempt}"

    def spec(self, kind: type[Spec]) -> Spec:
        """Return the job's specification.

        Raises PermanentFailure where it is of another kind.
        """
        try:
            return msgspec.convert(self.job.spec, kind)
        except msgspec.ValidationError as error:
            raise PermanentFailure(f"Invalid job specification: {error}") from None

    @property
    def spark(self) -> "SparkSession":
        """The worker's Spark session, started at first use.

        What this thread runs there belongs to the job. Its settings are shared: change them on a `newSession()`. Raises
        SparkFailed, JavaMissing, Stopped.
        """
        self.check()
        self.used_spark = True
        try:
            with self._waiting_for_spark():
                spark = self.call(self._sparks.get())
        except ExecutorsUnavailable as error:
            self._requeue(WaitReason.EXECUTORS, str(error))
            raise JobStopped from error
        name = f"{self.job.kind} {self.job.subject}"
        spark.sparkContext.setJobGroup(self.group, name, True)
        set_call_site(spark, name)
        # Pools share the slots; within one, a job would wait for those before it.
        pool = f"{self.job.namespace}/{self.job.kind}"
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        self.check()  # a job that is cancelled before it has begun would run
        return spark

    def check_spark(self) -> None:
        """Raise TransientFailure if the JVM of the session has ended."""
        if self.used_spark and not self._sparks.running:
            raise TransientFailure("The JVM of Spark ended.")

    def require_spark(self) -> None:
        """Requeue the job for a while unless Spark can run here, with a session that is not worn.

        Raises JobStopped.
        """
        if not self._spark.is_met:
            self._requeue(WaitReason.SPARK)
        if self._sparks.needs_recycling:
            self._requeue(WaitReason.CAPACITY)

    def acquire_long_slot(self) -> None:
        """Acquire one of the worker's slots for long jobs, or requeue the job for a while.

        Raises JobStopped.
        """
        self._has_long_slot = self._has_long_slot or self._long_slots.acquire(blocking=False)
        if not self._has_long_slot:
            self._requeue(WaitReason.CAPACITY)

    def release_long_slot(self) -> None:
        """Release the slot at the attempt's end."""
        if self._has_long_slot:
            self._has_long_slot = False
            self._long_slots.release()

    def _requeue(self, reason: WaitReason, failure: str = "") -> None:
        self.failure = failure
        self.call(self.yield_slot(reason, self.limits.job_wait_ms))
        self.check()

    @contextmanager
    def _waiting_for_spark(self) -> Iterator[None]:
        """Show in the job that Spark starts, which takes up to a minute or two."""
        if self._sparks.running:
            yield
            return
        self._save({**self.progress, WAITING_FOR: WaitReason.SPARK.value})
        try:
            yield
        finally:
            if self.progress.get(WAITING_FOR) == WaitReason.SPARK:
                self._save(
                    {name: self.progress[name] for name in self.progress if name != WAITING_FOR}
                )

    def _save(self, progress: Mapping[str, Any]) -> None:
        """Report the progress, and store it now; a lost lease shows at the next heartbeat."""
        self.report(progress)
        with suppress(LeaseLost, MillstreamError):
            self.call(self.storage.jobs.heartbeat(self.claim, self.progress))

    def call(self, answer: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for an engine's coroutine, which runs in the worker's event loop."""
        return asyncio.run_coroutine_threadsafe(answer, self._loop).result()

    async def wait_for_stop(self) -> None:
        """Wait, in the worker's event loop, until the handler should stop."""
        await self._stopped.wait()

    @contextmanager
    def background(self, work: Coroutine[Any, Any, None]) -> Iterator[None]:
        """Run a coroutine in the worker's event loop while the block runs; raise its error."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            yield
        finally:
            future.cancel()
        if not future.cancelled():
            future.result()

    def report(self, progress: Mapping[str, Any]) -> None:
        """Set the job's progress, in JSON; it is stored with the next heartbeat."""
        self.progress = dict(progress)

    @property
    def stopping(self) -> bool:
        """Return whether the handler should stop soon."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise Stopped when it is time to stop."""
        if self._stop.is_set():
            raise JobStopped(self.stop_reason)

    def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until it is time to stop.

        Raises JobStopped.
        """
        self._stop.wait(seconds)
        self.check()

    async def yield_slot(self, reason: WaitReason, wait_ms: int) -> None:
        """Stop the attempt, so that another job gets its place; it continues after `wait_ms`."""
        self._wait(reason, wait_ms)
        if self.used_spark:
            await self._sparks.cancel(self.group)

    def lose_executors(self, failure: str) -> None:
        """Stop the attempt, whose Spark session is lost; it continues after a while with another."""
        self.failure = failure
        self._wait(WaitReason.EXECUTORS, self.limits.job_wait_ms)

    def _wait(self, reason: WaitReason, wait_ms: int) -> None:
        self.report({**self.progress, WAITING_FOR: reason.value})
        self.wait_ms = wait_ms
        self.stop(StopReason.WAITING)

    def stop(self, reason: StopReason) -> None:
        """Request the handler to stop, from the worker's event loop.

        The first reason stands, unless the lease is lost.
        """
        if self.stop_reason in (None, StopReason.WAITING) or reason is StopReason.LEASE_LOST:
            self.stop_reason = reason
        self._stop.set()
        self._stopped.set()


Handler = Callable[[JobContext], Mapping[str, Any] | None]
"""Runs a job of one kind; see the module's docstring."""
