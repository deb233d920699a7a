"""Replay engine: submission, inspection, and the calls of a replay's worker.

`storage.domain.replays.replay` defines what a replay is.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import attrs
import msgspec

from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    GroupNotFound,
    JobNotFound,
    JobRefused,
    ShardNotFound,
    ValidationFailed,
)
from storage.domain.jobs import Job, JobKind, JobLease, JobPart, JobState
from storage.domain.names import GroupName, QueueName, StreamName, check_name
from storage.domain.replays.replay import (
    PLANNED,
    PartProgress,
    ReplayRequest,
    ReplaySpec,
    parts_of,
    producer_of,
)
from storage.groups.engine import Groups
from storage.hot_store.rates import PaceStore
from storage.jobs import Jobs
from storage.queues.engine import Queues
from storage.replays.planner import Plan, ReplayPlanner
from storage.replays.window import WindowResolver
from storage.streams.arrow_reader import ArrowReader
from storage.streams.column_source import ColumnSource
from storage.streams.engine import Streams
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource

T = TypeVar("T")

Place = tuple[int, str]


class Replay(msgspec.Struct, frozen=True):
    """A replay and its job; `parts` are empty until it has started."""

    job: Job
    spec: ReplaySpec
    parts: tuple[PartProgress, ...] = ()


@attrs.define(eq=False, slots=False, kw_only=True)
class Replays:
    """The replays of a deployment.

    Raises JobNotFound for a replay that does not exist.
    """

    _windows: WindowResolver
    _planning: ReplayPlanner
    _streams: Streams
    _reader: RecordReader
    _column_reader: ArrowReader
    _queues: Queues
    _groups: Groups
    _jobs: Jobs
    _shared_rate: PaceStore
    _clock: Clock
    _isolation: Isolation
    _retired: set[str] = attrs.field(factory=set, init=False)

    # Owner's calls

    async def submit(
        self, namespace: str, request: ReplayRequest, replay_id: str | None = None
    ) -> Replay:
        """Submit a replay; with an id from the caller, the call may be repeated.

        Raises ValidationFailed, StreamNotFound, QueueNotFound, ShardNotFound, GroupNotFound, BookmarkNotFound;
        JobRefused where another replay has the id.
        """
        request.check()
        known_as = replay_id or secrets.token_hex(8)
        check_name(known_as)
        before = await self._repeated(namespace, known_as, request) if replay_id else None
        if before is not None:
            return before
        source = await self._windows.source(namespace, request)
        target_id = await self._windows.target_id(namespace, request)
        _check_own_queue(source.is_view, request)
        await self._windows.reaches(source, request)
        spec = ReplaySpec(
            replay_id=known_as, request=request, stream_id=source.stream_id, target_id=target_id
        )
        job = await self._jobs.submit(
            namespace,
            JobKind.REPLAY,
            known_as,
            msgspec.to_builtins(spec),
            job_id=_job_id(namespace, known_as),
        )
        return _checked_same(Replay(job, spec_of(job)), request)

    async def _repeated(
        self, namespace: str, replay_id: str, request: ReplayRequest
    ) -> Replay | None:
        try:
            replay = _checked_same(await self.get(namespace, replay_id), request)
        except JobNotFound:
            return None
        ids = replay.spec.stream_id, replay.spec.target_id
        if await self._windows.is_recreated(namespace, request, *ids):
            detail = "A replay with this id exists; its source or target was deleted and recreated."
            raise JobRefused(detail, reason="id_taken")
        return replay

    async def plan(self, namespace: str, request: ReplayRequest, *, exact: bool = False) -> Plan:
        """Plan a replay without submitting it.

        Raises as `submit`, and `ReplayPlanner.plan`.
        """
        request.check()
        source = await self._windows.source(namespace, request)
        _check_own_queue(source.is_view, request)
        return await self._planning.plan(namespace, request, exact=exact)

    async def get(self, namespace: str, replay_id: str) -> Replay:
        """Return a replay with the progress of its parts."""
        try:
            job = await self._jobs.get(_job_id(namespace, replay_id))
        except JobNotFound:
            raise JobNotFound(f"Replay '{replay_id}' does not exist.") from None
        return Replay(job, spec_of(job), tuple(await self.parts(job.job_id)))

    async def page(
        self,
        namespace: str,
        *,
        state: JobState | None = None,
        after: Place | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[Replay]:
        """Return replays without their parts, the newest first, strictly after `after`.

        Pages are those of `Jobs.list`.
        """
        jobs = await self._jobs.list(
            namespace=namespace, kind=JobKind.REPLAY, state=state, after=after, limit=limit
        )
        return [Replay(job, spec_of(job)) for job in jobs]

    async def pause(self, namespace: str, replay_id: str) -> Replay:
        """Pause a replay at its current position.

        Raises JobRefused where it is over or being cancelled.
        """
        return await self._command(namespace, replay_id, self._jobs.pause)

    async def resume(self, namespace: str, replay_id: str) -> Replay:
        """Resume a paused replay.

        Raises as `pause`.
        """
        return await self._command(namespace, replay_id, self._jobs.resume)

    async def cancel(self, namespace: str, replay_id: str) -> Replay:
        """Cancel a replay; records that it has sent stay.

        Raises JobRefused where it is done or has failed.
        """
        replay = await self._command(namespace, replay_id, self._jobs.cancel)
        if replay.job.state is JobState.CANCELLED:
            await self.retire_producers(replay.job, replay.spec)
        return replay

    async def retry(self, namespace: str, replay_id: str) -> Replay:
        """Restart a failed replay at its current position.

        Raises JobRefused where it has not failed.
        """
        return await self._command(namespace, replay_id, self._jobs.retry)

    async def _command(
        self, namespace: str, replay_id: str, command: Callable[[str], Awaitable[Job]]
    ) -> Replay:
        replay = await self.get(namespace, replay_id)
        return msgspec.structs.replace(replay, job=await command(replay.job.job_id))

    # Worker's calls

    async def prepare(self, claim: JobLease, job: Job, spec: ReplaySpec) -> list[PartProgress]:
        """Return the parts of a replay, after its first attempt has fixed the window.

        Nothing is sent before all of the window is stored. Raises LeaseLost, StreamNotFound where source or target are not the
        same any longer, and what `submit` does.
        """
        source = await self._windows.check_same(
            job.namespace, spec.request, spec.stream_id, spec.target_id
        )
        stored = await self._jobs.parts(job.job_id)
        if PLANNED not in stored:
            reaches = await self._windows.reaches(source, spec.request)
            parts = [part.to_job() for part in parts_of(reaches, spec.request.order)]
            for portion in _in_portions([*parts, JobPart(PLANNED, len(parts), True, {})]):
                await self._jobs.save_parts(claim, portion)
        return await self.parts(job.job_id)

    async def parts(self, job_id: str) -> list[PartProgress]:
        """Return a replay's parts, by shard; empty before its window is fixed."""
        stored = await self._jobs.parts(job_id)
        if PLANNED not in stored:
            return []
        return [
            PartProgress.from_job(part) for name, part in sorted(stored.items()) if name != PLANNED
        ]

    async def save(self, claim: JobLease, parts: Sequence[PartProgress]) -> None:
        """Store the progress of parts, in one call if they fit.

        Raises LeaseLost.
        """
        for portion in _in_portions([part.to_job() for part in parts]):
            await self._jobs.save_parts(claim, portion)

    def source(self, namespace: str, spec: ReplaySpec) -> RecordSource:
        """Return the records that a replay reads."""
        name = StreamName(spec.request.stream, namespace)
        return RecordSource(self._reader, name, spec.stream_id, spec.request.filter)

    def column_source(self, namespace: str, spec: ReplaySpec) -> ColumnSource:
        """Return the records that a replay sends, in columns."""
        name = StreamName(spec.request.stream, namespace)
        return ColumnSource(self._column_reader, name, spec.stream_id, spec.request.filter)

    async def oldest_arrival(
        self, namespace: str, spec: ReplaySpec, parts: Sequence[PartProgress]
    ) -> int | None:
        """Return the arrival time in ms of the oldest record left to read; None for none."""
        source = self.source(namespace, spec)
        arrivals: list[int] = []
        for part in parts:
            with suppress(ShardNotFound):
                read = await source.read(part.reach.shard, part.position, records_max=1)
                arrivals += [record.arrival_ms for record in read.records]
        return min(arrivals, default=None)

    async def reserve(self, job: Job, spec: ReplaySpec, records: int, size_bytes: int) -> int:
        """Reserve time at the replay's rate, shared by all senders; return the ms to wait first."""
        pacing = spec.request.pacing
        return await self._shared_rate.reserve(
            job.namespace, job.job_id, pacing, records, size_bytes
        )

    async def is_lagging(self, namespace: str, spec: ReplaySpec) -> bool:
        """Return whether the target's readers have a larger backlog than the replay allows."""
        most, target = spec.request.pacing.lag_records_max, spec.request.target
        if most is None:
            return False
        if target.queue is not None:
            return (await self._queues.stats(QueueName(target.queue, namespace))).ready > most
        for group in await self._readers(namespace, spec):
            with suppress(GroupNotFound):  # deleted in the meantime
                lags = await self._groups.lags.by_shard(group)
                if sum(one.records for one in lags) > most:
                    return True
        return False

    async def check_target(self, namespace: str, spec: ReplaySpec) -> None:
        """Raise StreamNotFound or QueueNotFound unless the target is still the same."""
        await self._windows.check_target(namespace, spec.request, spec.target_id)

    async def _readers(self, namespace: str, spec: ReplaySpec) -> list[GroupName]:
        """Return the consumer groups of the target stream."""
        groups: list[GroupName] = []
        after = ""
        while page := await self._groups.list_groups(namespace, after=after):
            groups += [group.name for group in page if group.stream_id == spec.target_id]
            after = page[-1].name.name
        return groups

    async def retire_producers(self, job: Job, spec: ReplaySpec) -> None:
        """Retire the producers of a replay that is over from its target.

        May be repeated.
        """
        target = spec.request.target
        producers = [producer_of(job.job_id, part.part) for part in await self.parts(job.job_id)]
        for portion in _in_portions(producers):
            if target.queue is not None:
                await self._queues.retire_writers(QueueName(target.queue, job.namespace), portion)
            elif target.stream is not None:
                await self._streams.retire_writers(
                    StreamName(target.stream, job.namespace), portion
                )

    # For the sweep

    async def sweep(self) -> int:
        """Retire the producers of replays that ended without a worker; return their number.

        They were cancelled while no worker had them, or failed and were never retried.
        """
        failed_before_ms = (
            self._clock.now_ms() - limits.JOB_RETENTION_MS + limits.REPLAY_RETRY_MARGIN_MS
        )
        done = 0
        for state, before_ms in ((JobState.CANCELLED, None), (JobState.FAILED, failed_before_ms)):
            for job in await self._ended(state, before_ms):
                subject = f"replays/{job.namespace}/{job.job_id}"
                done += await self._isolation.visit(
                    "replays", subject, partial(self._retire, job), 0
                )
        return done

    async def _retire(self, job: Job) -> int:
        await self.retire_producers(job, spec_of(job))
        self._retired.add(job.job_id)
        return 1

    async def _ended(self, state: JobState, before_ms: int | None) -> list[Job]:
        ended: list[Job] = []
        after: Place | None = None
        while page := await self._jobs.list(kind=JobKind.REPLAY, state=state, after=after):
            ended += [job for job in page if job.job_id not in self._retired]
            after = (page[-1].created_at_ms, page[-1].job_id)
        return [job for job in ended if before_ms is None or (job.ended_at_ms or 0) < before_ms]


def spec_of(job: Job) -> ReplaySpec:
    """Return the specification of a replay's job."""
    return msgspec.convert(job.spec, ReplaySpec)


def _job_id(namespace: str, replay_id: str) -> str:
    return f"replay:{namespace}:{replay_id}"


def _checked_same(replay: Replay, request: ReplayRequest) -> Replay:
    if replay.spec.request != request:
        raise JobRefused("A different replay with this id exists.", reason="id_taken")
    return replay


def _check_own_queue(is_view: bool, request: ReplayRequest) -> None:
    if is_view and request.target.queue == request.stream and not request.allow_same_stream:
        detail = (
            "The target is the queue whose stream view is the source; set "
            "allow_same_stream to permit duplicates"
        )
        raise ValidationFailed.at("/target/queue", detail, "same_stream")


def _in_portions(items: Sequence[T]) -> list[Sequence[T]]:
    most = limits.JOB_PARTS_PER_CALL
    return [items[nth : nth + most] for nth in range(0, len(items), most)]
