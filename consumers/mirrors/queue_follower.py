"""Follower of the origin's queues: creates them here, paused, and copies each in a task.

    discover, every few seconds ──▶ matching queues ──▶ one task each: begin ─▶ copy, copy, …   all partitions at once
    every second: store the progress

A queue is reported before its first message is added: a promotion ends the copies that were reported.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from consumers.mirrors.origin import OriginClient, OriginFailed, failure_text, queue_spec_of
from consumers.mirrors.pull_times import MirrorTimes, PullBackoff
from consumers.mirrors.queue_copier import CopyRefused, CopySuperseded, QueueCopier
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    AlreadyExists,
    MillstreamError,
    QueueNotFound,
    StorageBusy,
    StorageUnavailable,
)
from storage.domain.mirrors.mirror import Mirror
from storage.domain.mirrors.progress import QueueProgress
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueType

logger = logging.getLogger(__name__)

_GONE = "The other deployment has no queue of this name any more; the copy is kept"


class QueueFollower:
    """Follower of the queues that a mirror copies.

    `note_failure` is called with the reason why they cannot be listed, empty if they can be.
    """

    def __init__(
        self,
        mirror: Mirror,
        client: OriginClient,
        storage: Storage,
        clock: Clock,
        *,
        times: MirrorTimes,
        note_failure: Callable[[str], None],
    ) -> None:
        self._mirror = mirror
        self._client = client
        self._storage = storage
        self._clock = clock
        self._times = times
        self._note_failure = note_failure
        self._progress: dict[str, QueueProgress] = {}
        self._unreported: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._current: set[str] = set()
        self._paused: dict[str, bool] = {}
        self._has_progress = asyncio.Event()

    async def run(self, progress: Iterable[QueueProgress]) -> None:
        """Follow until cancelled, from the progress that was stored."""
        self._progress.update({queue.queue: queue for queue in progress})
        reports = asyncio.create_task(self._report_forever())
        try:
            while True:
                await self._discover_once()
                await asyncio.sleep(self._times.discovery_ms / limits.SECOND_MS)
        finally:
            await end(reports, *self._tasks.values())
            await self._report()

    async def wait_until_current(self, queues: Collection[str]) -> None:
        """Wait until each of these was copied whole since the start."""
        while not self._current.issuperset(queues):
            self._has_progress.clear()
            await self._has_progress.wait()

    async def _discover_once(self) -> None:
        try:
            await self._discover()
        except (OriginFailed, MillstreamError) as error:
            self._note_failure(f"Queues: {failure_text(error)}")
        except Exception as error:  # it must not keep queues from being copied
            logger.exception("mirror_failed", extra={"mirror": str(self._mirror.name)})
            self._note_failure(f"Queues: internal error: {error!r}")
        else:
            self._note_failure("")

    async def _discover(self) -> None:
        """Start to copy queues that are new, and stop for those that are gone."""
        matching = self._mirror.spec.matches_queue
        queues = {one["name"]: one async for one in self._client.queues() if matching(one["name"])}
        logs = sum(_partitions(fields) for fields in queues.values())
        if logs > limits.MIRROR_QUEUES_MAX:
            most = limits.MIRROR_QUEUES_MAX
            counted = "" if logs == len(queues) else f" with {logs} partitions"
            raise OriginFailed(f"{len(queues)} queues{counted} match; a mirror copies {most}")
        for name in self._tasks.keys() - queues.keys():
            await end(self._tasks.pop(name))
        for name in self._progress.keys() - queues.keys():
            self._set(replace(self._progress[name], failure=_GONE))
        # Dead-letter queues first: a queue that names one can be created once that exists.
        for name in sorted(queues, key=lambda name: queues[name].get("dead_letters") is not None):
            self._paused[name] = queues[name]["paused"]
            try:
                await self._define(name, queues[name])
            except (StorageUnavailable, StorageBusy):
                raise
            except (OriginFailed, MillstreamError) as error:  # not a failure of the others
                self._note(name, failure_text(error))
            else:
                if name not in self._tasks:
                    self._tasks[name] = asyncio.create_task(self._copy_forever(name))

    async def _define(self, name: str, fields: dict[str, Any]) -> None:
        """Create the copy of a queue, or apply the origin's settings to it, if that is wanted."""
        target, spec = self._target(name), queue_spec_of(fields)
        catalog = self._storage.catalog
        try:
            current = (await catalog.queue(target)).spec
        except QueueNotFound:
            try:
                await catalog.put_queue(target, spec, create_only=True)
            except AlreadyExists:  # by another
                return
        else:
            spec = replace(spec, paused=current.paused, annotations=current.annotations)
            is_own = name in self._current
            if self._mirror.spec.follow_definitions and is_own and spec != current:
                await catalog.put_queue(target, spec)

    def _target(self, name: str) -> QueueName:
        return QueueName(name, self._mirror.name.namespace)

    async def _copy_forever(self, name: str) -> None:
        backoff = PullBackoff(self._times.backoff_ms)

        def reset_backoff() -> None:
            nonlocal backoff
            backoff = PullBackoff(self._times.backoff_ms)

        while True:
            try:
                await self._copy(name, reset_backoff)
            except (OriginFailed, MillstreamError) as error:
                self._note(name, failure_text(error))
            except CopyRefused as error:
                self._note(name, str(error))
            except CopySuperseded:  # by a promotion, or a process that has the lease now
                pass
            except Exception as error:  # it must not keep other queues from being copied
                logger.exception("mirror_failed", extra={"mirror": str(self._mirror.name)})
                self._note(name, f"Internal error: {error!r}")
            await backoff.pause()

    async def _copy(self, name: str, on_round: Callable[[], None]) -> None:
        """Copy the partitions of a queue until one fails; a round is over when all had one."""
        await self._reserve(name)
        target, copies = self._target(name), self._storage.queue_copies
        first = QueueCopier(name, target, self._client, copies)
        await first.begin()
        await self._provide_partitions(target, first.partitions)
        others = [
            QueueCopier(name, target, self._client, copies, partition)
            for partition in range(1, first.partitions)
        ]
        for copier in others:
            await copier.begin()
        copiers = [first, *others]
        before, waiting_for = self._progress[name].copied, set(range(len(copiers)))

        async def copy_partition(partition: int) -> None:
            wait_ms = 0
            while True:
                await copiers[partition].copy(wait_ms)
                wait_ms = self._times.wait_ms
                waiting_for.discard(partition)
                if not waiting_for:
                    self._current.add(name)
                    self._set(self._progress_of(name, copiers, before))
                    on_round()

        try:
            async with asyncio.TaskGroup() as tasks:
                for partition in range(len(copiers)):
                    tasks.create_task(copy_partition(partition))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _provide_partitions(self, target: QueueName, count: int) -> None:
        """Give a copy as many partitions as its queue has, with closed ones.

        Raises CopyRefused if it cannot have that number.
        """
        queue = await self._storage.catalog.fresh_queue(target)
        here = len(queue.logs)
        if here < count and queue.spec.type is QueueType.STANDARD:
            await self._storage.catalog.put_queue(target, replace(queue.spec, partitions=count))
            if queue.spec.partitions != count:
                await self._storage.catalog.put_queue(target, queue.spec)
        elif here != count:
            raise CopyRefused(
                f"Queue '{target.name}' has {here} partitions here and {count} there: delete it to have it copied"
            )

    def _progress_of(
        self, name: str, copiers: Sequence[QueueCopier], copied_before: int
    ) -> QueueProgress:
        return QueueProgress(
            queue=name,
            paused=self._paused[name],
            next_offset=sum(copier.next_offset for copier in copiers),
            tip=sum(copier.tip for copier in copiers),
            behind_ms=max(copier.behind_ms for copier in copiers),
            checked_at_ms=self._clock.now_ms(),
            copied=copied_before + sum(copier.added for copier in copiers),
        )

    async def _reserve(self, name: str) -> None:
        """Report a queue before it is copied. Raises CopyRefused if another mirror copies it."""
        other = await self._storage.mirrors.other_mirror_of(self._mirror, name)
        if other is not None:
            raise CopyRefused(f"Mirror '{other}' copies this queue")
        progress = self._progress.get(name) or QueueProgress(
            queue=name, paused=self._paused[name], checked_at_ms=self._clock.now_ms()
        )
        await self._storage.mirrors.report_queues(self._mirror, [progress])
        self._progress[name] = progress

    # ── Reports ──

    def _set(self, progress: QueueProgress) -> None:
        if self._progress.get(progress.queue) != progress:
            self._progress[progress.queue] = progress
            self._unreported.add(progress.queue)
        self._has_progress.set()

    def _note(self, name: str, failure: str) -> None:
        now_ms = self._clock.now_ms()
        progress = self._progress.get(name) or QueueProgress(queue=name, checked_at_ms=now_ms)
        self._set(replace(progress, failure=failure))

    async def _report_forever(self) -> None:
        while True:
            await asyncio.sleep(self._times.report_ms / limits.SECOND_MS)
            await self._report()

    async def _report(self) -> None:
        """Store the progress that has changed, or later if it cannot be stored now."""
        names, self._unreported = self._unreported, set()
        if not names:
            return
        try:
            await self._storage.mirrors.report_queues(
                self._mirror, [self._progress[name] for name in names]
            )
        except MillstreamError:
            self._unreported |= names


def _partitions(fields: dict[str, Any]) -> int:
    """Return the number of partitions of a queue of the origin; earlier versions have one."""
    return int(fields.get("partitions", 1))
