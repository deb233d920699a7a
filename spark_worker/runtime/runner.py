"""Job runner: each handler in a thread, each lease renewed until its handler has ended.

    claim ──▶ handler runs ──┬─ returns ───────────▶ finish
       ▲        │ heartbeats ├─ raises ────────────▶ fail: again after a while, or never
       │        ▼            └─ is to stop ───────▶ give back
       └── room for another         (paused, cancelled, the lease lost, the worker ends)

Of an attempt whose lease is lost nothing more is written; its thread may take a while to notice, and is harmless,
since all it could still write is rejected by its claim.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import attrs

from spark_worker.runtime.cluster import cause_of
from spark_worker.runtime.job_context import (
    Handler,
    JobContext,
    JobStopped,
    PermanentFailure,
    StopReason,
    TransientFailure,
)
from spark_worker.runtime.requirements import SparkRequirement
from spark_worker.runtime.session_pool import SessionPool
from spark_worker.settings import WorkerSettings
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain.errors import MillstreamError
from storage.domain.jobs import Job, JobKind, JobSlots, JobState, LeaseLost
from storage.domain.limits import (
    QUERIES_AT_ONCE,
    REPLAYS_SMALL_AT_ONCE,
    SECOND_MS,
    VIEW_JOBS_AT_ONCE,
    Limits,
)

logger = logging.getLogger(__name__)

STOP_S = (
    4.0  # time for handlers to stop at the worker's end; then their jobs are returned without them
)
REPORT_RETRY_S = 1.0  # between attempts to store the end of a job

_EXPECTED_ERRORS = (JobStopped, LeaseLost, PermanentFailure, TransientFailure, MillstreamError)
"""Expected ends of a handler: the log has the lost lease, or the job its failure, and neither needs a traceback."""

OnEnd = Callable[[JobKind, JobState, float, Mapping[str, int]], object]
"""Called for every attempt that ended: the job's kind and state then, its seconds, and by how much the numbers
of its progress have increased."""


def _ignore_end(*_: object) -> None:
    """Ignore the end of an attempt: the default of `on_end`."""


@attrs.define(eq=False, slots=False, kw_only=True)
class Runner:
    """Runner of one worker's jobs.

    `worker` names this process, permanently.
    """

    _worker: str
    _storage: Storage
    _settings: WorkerSettings
    _handlers: Mapping[JobKind, Handler]
    _session_pool: SessionPool
    _limits: Limits
    _on_end: OnEnd = _ignore_end
    _spark: SparkRequirement = attrs.field(factory=SparkRequirement)
    _long_slots: threading.Semaphore = attrs.field(init=False)
    _contexts: dict[asyncio.Task[None], JobContext] = attrs.field(factory=dict, init=False)
    _is_unavailable: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._long_slots = threading.Semaphore(self._settings.jobs_at_once)
        self._session_pool.on_lost = self._stop_work_of_lost_session

    async def run(self) -> None:
        """Run jobs until cancelled; then return unfinished ones, and end Spark."""
        try:
            while True:
                if not await self._take_one():
                    await self._wait()
        finally:
            await self._end()

    async def _take_one(self) -> bool:
        """Start a job if there is capacity and one is due; return whether to try again at once."""
        uses_spark = any(work.used_spark for work in self._contexts.values())
        if self._session_pool.needs_recycling and not uses_spark:
            await self._session_pool.close()
        await self._spark.check()
        kinds = self._kinds_with_capacity()
        if not kinds:
            return False
        try:
            job = await self._storage.jobs.claim(self._worker, kinds)
        except MillstreamError as error:
            self._note_outage(error)
            return False
        self._is_unavailable = False
        if job is None:
            return False
        self._begin(job)
        return True

    def _kinds_with_capacity(self) -> list[JobKind]:
        """Return the kinds of which another job may start.

        Of long jobs more are claimed than there are slots: small ones need none (`JobContext.acquire_long_slot`).
        """
        running = Counter(work.job.kind.slots for work in self._contexts.values())
        most = self._settings.jobs_at_once
        has_room = {
            JobSlots.SHORT: self._can_use_spark and running[JobSlots.SHORT] < most,
            JobSlots.LONG: running[JobSlots.LONG] < most + REPLAYS_SMALL_AT_ONCE,
            JobSlots.VIEWS: self._can_use_spark and running[JobSlots.VIEWS] < VIEW_JOBS_AT_ONCE,
            JobSlots.QUERIES: self._can_use_spark and running[JobSlots.QUERIES] < QUERIES_AT_ONCE,
        }
        return [kind for kind in self._handlers if has_room[kind.slots]]

    @property
    def _can_use_spark(self) -> bool:
        """Return whether a job may use Spark now: a worn session is left to those that have it."""
        return self._spark.is_met and not self._session_pool.needs_recycling

    def _note_outage(self, error: MillstreamError) -> None:
        """Log an outage once."""
        if not self._is_unavailable:
            logger.warning("job_claim_failed", extra={"reason": error.detail})
        self._is_unavailable = True

    async def _wait(self) -> None:
        """Wait until a job has ended, or it is time to poll again."""
        pause_s = self._limits.job_poll_ms / SECOND_MS
        if self._contexts:
            await asyncio.wait(self._contexts, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(pause_s)

    def _begin(self, job: Job) -> None:
        work = JobContext(
            job,
            self._storage,
            self._settings,
            self._session_pool,
            self._limits,
            long_slots=self._long_slots,
            spark=self._spark,
        )
        task = asyncio.create_task(self._do(work), name=job.job_id)
        self._contexts[task] = work
        task.add_done_callback(self._contexts.pop)

    async def _do(self, work: JobContext) -> None:
        started = time.monotonic()
        beats = asyncio.create_task(self._renew_lease(work))
        try:
            ended = await _in_thread(self._handlers[work.job.kind], work)
        finally:
            await end(beats)
            work.release_long_slot()
        if work.used_spark:
            self._session_pool.count_job()
        state = await self._report_outcome(work, ended)
        if state is not None:
            gained = _gained(work.job.progress, ended.progress or work.progress)
            self._on_end(work.job.kind, state, time.monotonic() - started, gained)

    # The lease

    async def _renew_lease(self, work: JobContext) -> None:
        """Renew the lease until cancelled.

        Stops the handler when the lease is lost, or at its owner's request; with each beat again, since Spark may have submitted stages
        of the jobs that were cancelled.
        """
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(self._limits.job_heartbeat_ms / SECOND_MS)
            try:
                requested = await self._storage.jobs.heartbeat(work.claim, work.progress)
            except LeaseLost:
                await self._stop(work, StopReason.LEASE_LOST)
                continue
            except MillstreamError as error:
                facts = {**_facts(work), "reason": error.detail}
                logger.warning("job_lease_renewal_failed", extra=facts)
                if time.monotonic() - renewed >= self._limits.job_lease_ms / SECOND_MS:
                    await self._stop(work, StopReason.LEASE_LOST)
                continue
            renewed = time.monotonic()
            if (reason := StopReason.of(requested)) is not None:
                await self._stop(work, reason)

    async def _stop(self, work: JobContext, reason: StopReason) -> None:
        work.stop(reason)
        if work.used_spark:
            await self._session_pool.cancel(work.group)

    def _stop_work_of_lost_session(self, failure: str) -> None:
        for work in self._contexts.values():
            if work.used_spark:
                work.lose_executors(failure)

    # The end of an attempt

    async def _report_outcome(self, work: JobContext, ended: "_Ended") -> JobState | None:
        """Store the end of an attempt, retrying until it succeeds; None if the lease is lost."""
        while work.stop_reason is not StopReason.LEASE_LOST:
            try:
                return await self._report_once(work, ended)
            except LeaseLost:
                break
            except MillstreamError as error:
                facts = {**_facts(work), "reason": error.detail}
                logger.warning("job_outcome_report_failed", extra=facts)
                await asyncio.sleep(REPORT_RETRY_S)
        logger.warning("job_lease_lost", extra=_facts(work))
        return None

    async def _report_once(self, work: JobContext, ended: "_Ended") -> JobState:
        jobs, claim = self._storage.jobs, work.claim
        if ended.error is None:
            return await jobs.finish(claim, progress=ended.progress or work.progress)
        if work.stopping:
            return await jobs.release(claim, work.progress, work.wait_ms, work.failure)
        failure, retry = self._describe(ended.error), _may_help(ended.error)
        state = await jobs.fail(claim, failure, retry=retry, progress=work.progress)
        facts = {**_facts(work), "state": state.value, "reason": failure}
        logger.warning("job_failed", extra=facts)
        return state

    def _describe(self, error: BaseException) -> str:
        if isinstance(error, MillstreamError):
            return error.detail
        if isinstance(error, PermanentFailure | TransientFailure):
            return str(error)
        ended = (
            ""
            if self._session_pool.jvm_pid is None or self._session_pool.running
            else "The JVM ended. "
        )
        log = f" ({self._session_pool.log})" if self._session_pool.log else ""
        return f"{ended}{cause_of(error)}{log}"

    # The worker's end

    async def _end(self) -> None:
        """Stop every handler, return their jobs immediately, and end Spark."""
        works = dict(self._contexts)
        await asyncio.gather(*(self._stop(work, StopReason.ENDING) for work in works.values()))
        if works:
            _, late = await asyncio.wait(works, timeout=STOP_S)
            await end(*late)
            for task in late:
                with suppress(LeaseLost, MillstreamError):
                    await self._storage.jobs.release(works[task].claim, works[task].progress)
        await self._session_pool.close()


class _Ended:
    """The end of a handler: the progress that it returned, or the error that it raised."""

    def __init__(
        self, progress: Mapping[str, Any] | None = None, error: BaseException | None = None
    ) -> None:
        self.progress = progress
        self.error = error


async def _in_thread(handler: Handler, work: JobContext) -> _Ended:
    """Run a handler in its own thread, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Ended] = loop.create_future()

    def resolve(ended: _Ended) -> None:
        if not done.done():
            done.set_result(ended)

    def run() -> None:
        try:
            ended = _Ended(progress=handler(work))
        except BaseException as error:
            if not work.stopping and not isinstance(error, _EXPECTED_ERRORS):
                logger.warning("job_handler_failed", extra=_facts(work), exc_info=True)
            ended = _Ended(error=error)
        with suppress(RuntimeError):  # the loop is closed: nothing waits any longer
            loop.call_soon_threadsafe(resolve, ended)

    threading.Thread(target=run, name=work.group, daemon=True).start()
    return await done


def _gained(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """Return by how much the whole numbers of a progress have increased."""
    numbers = {name: value for name, value in after.items() if isinstance(value, int)}
    return {
        name: value - was
        for name, value in numbers.items()
        if isinstance(was := before.get(name, 0), int) and value > was
    }


def _may_help(error: BaseException) -> bool:
    """Return whether another attempt may succeed."""
    if isinstance(error, MillstreamError):
        return error.code.retryable
    return not isinstance(error, PermanentFailure)


def _facts(work: JobContext) -> dict[str, str | int]:
    """Return the fields of a job's log events."""
    return {"job": work.job.job_id, "kind": work.job.kind.value, "attempt": work.job.attempt}
