"""Puller of one mirror: copies shards of the origin's streams in order, and its queues.

    discover, every few seconds ──▶ shards whose parents have ended ──▶ one task each
        task: read at next_offset ─▶ append as a monotonic producer ─▶ next_offset
        every second: write what changed

An attempt begins at a stored position, behind which everything was added (`storage.streams.idempotent_append`). So a puller
that dies, is suspended, or runs beside its successor adds nothing twice and leaves nothing out.
"""

import asyncio
import logging
from collections.abc import Collection, Container, Iterable, Mapping

from msgspec.structs import replace

from consumers.mirrors.copy_tips import CopyTips
from consumers.mirrors.group_follower import GroupFollower
from consumers.mirrors.origin import (
    OriginClient,
    OriginFailed,
    OriginRead,
    OriginShard,
    failure_text,
    spec_of,
)
from consumers.mirrors.pull_times import MirrorTimes, PullBackoff
from consumers.mirrors.queue_follower import QueueFollower
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    AlreadyExists,
    FenceMismatch,
    MillstreamError,
    StorageBusy,
    StorageUnavailable,
    StreamNotFound,
)
from storage.domain.log.record_batch import CONTENT_TYPE, Record
from storage.domain.mirrors.mirror import MIRROR_FENCE, Mirror
from storage.domain.mirrors.offsets import OffsetTable
from storage.domain.mirrors.progress import MIRROR_ORIGIN, ShardKey, ShardProgress
from storage.domain.names import StreamName
from storage.domain.replays.replay import ORIGIN_HEADERS
from storage.domain.streams.stream import hash_key

logger = logging.getLogger(__name__)

_OWN_HEADERS = ORIGIN_HEADERS | {CONTENT_TYPE, MIRROR_ORIGIN}
_S = limits.SECOND_MS


class Puller:
    """Puller of one mirror, until it is cancelled."""

    def __init__(
        self,
        mirror: Mirror,
        client: OriginClient,
        storage: Storage,
        clock: Clock,
        times: MirrorTimes,
    ) -> None:
        self._times = times
        self._mirror = mirror
        self._client = client
        self._storage = storage
        self._clock = clock
        self._progress: dict[ShardKey, ShardProgress] = {}
        self._tasks: dict[ShardKey, asyncio.Task[None]] = {}
        self._unreported: set[ShardKey] = set()
        self._offsets: dict[ShardKey, OffsetTable] = {}
        self._tips = CopyTips(storage.record_reader, clock, times.report_ms)
        self._follower = GroupFollower(mirror, client, storage, self._progress, self._offsets)
        self._failure = ""
        self._listing_failure = ""
        self._groups_failure = ""
        self._queues_failure = ""
        self._queues = QueueFollower(
            mirror, client, storage, clock, times=times, note_failure=self._note_queues_failure
        )
        self._has_news = False
        self._listed_at_ms: int | None = None
        self._changed = asyncio.Event()
        self._has_progress = asyncio.Event()
        self._fences: dict[ShardKey, str] = {}

    async def run(self) -> None:
        """Copy until cancelled. Raises StorageUnavailable at the start only."""
        status = await self._storage.mirrors.status(self._mirror)
        self._progress.update({shard.key: shard for shard in status.shards})
        self._offsets.update(await self._storage.mirrors.offsets(self._mirror))
        self._follower.begin(status.groups)
        self._has_progress.set()
        self._failure = status.failure
        background = [asyncio.create_task(self._report_forever())]
        if self._mirror.spec.groups:
            background.append(asyncio.create_task(self._follow_forever()))
        if self._mirror.spec.queues:
            background.append(asyncio.create_task(self._queues.run(status.queues)))
        try:
            if self._mirror.spec.streams:
                await self._discover_forever()
            await asyncio.gather(*background)
        finally:
            await end(*background, *self._tasks.values())
            await self._client.close()
            await self._report()

    async def wait_until_copied(self, ends: Mapping[ShardKey, int]) -> None:
        """Wait until every record before these offsets of the origin's shards is here."""
        while True:
            self._has_progress.clear()
            if all(self._next_offset(key) >= offset for key, offset in ends.items()):
                return
            await self._has_progress.wait()

    def _note_queues_failure(self, failure: str) -> None:
        self._note_failure(queues=failure)
        if not failure and not self._mirror.spec.streams:
            self._listed_at_ms, self._has_news = self._clock.now_ms(), True

    async def wait_until_queues_are_copied(self, queues: Collection[str]) -> None:
        """Wait until each of these queues of the origin was copied whole since the start."""
        await self._queues.wait_until_current(queues)

    def _next_offset(self, key: ShardKey) -> int:
        progress = self._progress.get(key)
        return 0 if progress is None else progress.next_offset

    async def follow_groups(self) -> None:
        """Move the groups of the origin once, if they are mirrored.

        Raises OriginFailed, MillstreamError.
        """
        if self._mirror.spec.groups:
            await self._follower.follow()

    # ── Discovery ──

    async def _discover_forever(self) -> None:
        backoff = PullBackoff(self._times.backoff_ms)
        while True:
            self._changed.clear()
            try:
                failures = await self._discover()
            except (OriginFailed, MillstreamError) as error:
                self._note_failure(listing=failure_text(error))
                await backoff.pause()
            else:
                self._note_failure(
                    listing="; ".join(failures)[: limits.MIRROR_FAILURE_CHARACTERS_MAX]
                )
                self._listed_at_ms, self._has_news = self._clock.now_ms(), True
                backoff = PullBackoff(self._times.backoff_ms)
                await _wait(self._changed, self._times.discovery_ms)

    async def _follow_forever(self) -> None:
        """Move groups as those of the origin move."""
        while True:
            await asyncio.sleep(self._times.groups_ms / _S)
            try:
                await self._follower.follow()
            except (OriginFailed, MillstreamError) as error:
                self._note_failure(groups=f"Groups: {failure_text(error)}")
            except Exception as error:  # it must not keep records from being copied
                logger.exception("mirror_failed", extra={"mirror": str(self._mirror.name)})
                self._note_failure(groups=f"Groups: internal error: {error!r}")
            else:
                self._note_failure(groups="")

    async def _discover(self) -> list[str]:
        """Start what is to be copied, and stop what the origin no longer has.

        Returns why streams cannot be created here, which does not keep the others from being copied.
        """
        matching = self._mirror.spec.matches
        streams = {
            one["name"]: one async for one in self._client.streams() if matching(one["name"])
        }
        shards: dict[ShardKey, OriginShard] = {}
        failures: dict[str, str] = {}
        for name, fields in streams.items():
            origin_id, items = await self._client.shards(name)
            try:
                await self._define(name, fields)
            except (StorageUnavailable, StorageBusy):
                raise
            except MillstreamError as error:
                failures[name] = f"Stream '{name}': {error.detail}"
            shards |= {ShardKey(name, origin_id, one.index): one for one in items}
        if len(shards) > limits.MIRROR_SHARDS_MAX:
            most = limits.MIRROR_SHARDS_MAX
            raise OriginFailed(f"The streams have {len(shards)} shards; a mirror copies {most}")
        await self._drop((self._progress.keys() | self._tasks.keys()) - shards.keys())
        for key, shard in shards.items():
            is_refused = key.stream in failures
            if key not in self._tasks and not is_refused and self._is_next(key, shard, shards):
                self._begin(key, shard)
        return list(failures.values())

    def _is_next(self, key: ShardKey, shard: OriginShard, shards: Container[ShardKey]) -> bool:
        """Return whether a shard is not copied yet, but all its parents are."""
        parents = [key._replace(shard=index) for index in shard.parents]
        known_parents = [parent for parent in parents if parent in shards]
        return not self._has_ended(key) and all(map(self._has_ended, known_parents))

    def _has_ended(self, key: ShardKey) -> bool:
        progress = self._progress.get(key)
        return progress is not None and progress.ended

    async def _define(self, name: str, fields: dict[str, object]) -> None:
        """Create the copy of a stream, or apply the origin's settings to it, if that is wanted."""
        target, spec = StreamName(name, self._mirror.name.namespace), spec_of(fields)
        catalog = self._storage.catalog
        try:
            current = (await catalog.stream(target)).spec
        except StreamNotFound:
            try:
                await catalog.put_stream(target, spec, create_only=True)
            except AlreadyExists:  # by another
                return
        else:
            spec = replace(spec, shards=current.shards, annotations=current.annotations)
            if self._mirror.spec.follow_definitions and spec != current:
                await catalog.put_stream(target, spec)

    async def _drop(self, keys: Iterable[ShardKey]) -> None:
        """Stop copying what the origin no longer has."""
        for key in keys:
            if task := self._tasks.pop(key, None):
                await end(task)
            if progress := self._progress.get(key):
                await self._storage.mirrors.drop_shard(self._mirror, progress)
                del self._progress[key]
                self._offsets.pop(key, None)

    # ── Copying ──

    def _begin(self, key: ShardKey, shard: OriginShard) -> None:
        self._tasks[key] = asyncio.create_task(self._copy_forever(key, shard))

    async def _copy_forever(self, key: ShardKey, shard: OriginShard) -> None:
        """Copy a shard until it has ended."""
        backoff = PullBackoff(self._times.backoff_ms)
        while not self._has_ended(key):
            try:
                await self._copy(key, shard)
            except (OriginFailed, MillstreamError) as error:
                self._note_shard_failure(key, failure_text(error))
                await backoff.pause()
            except Exception as error:  # it must not keep other shards from being copied
                logger.exception("mirror_failed", extra={"mirror": str(self._mirror.name)})
                self._note_shard_failure(key, f"Internal error: {error!r}")
                await backoff.pause()
            else:
                backoff = PullBackoff(self._times.backoff_ms)
        del self._tasks[key]
        self._changed.set()

    async def _copy(self, key: ShardKey, shard: OriginShard) -> None:
        """Read once, and add what was read."""
        progress = await self._progress_of(key)
        target = StreamName(key.stream, self._mirror.name.namespace)
        tips = await self._tips.read(target, progress.target_id)
        read = await self._client.read(*key, progress.next_offset, wait_ms=self._times.wait_ms)
        sequences, records = self._records_of(key, shard, progress.target_id, read)
        added = await self._append_fenced(progress, sequences, records)
        self._tips.observe_append(target, progress.target_id, added)
        offsets = self._offsets.setdefault(key, OffsetTable())
        tips_of_shard = tips.of_range(int(shard.first_hash_key), int(shard.last_hash_key))
        is_added = added == len(records) > 0
        offsets.observe_read(progress.next_offset, read.tip, tips_of_shard, is_added=is_added)
        offsets.retain(tips.starts)
        self._set(
            key,
            replace(
                progress,
                next_offset=read.next_offset,
                tip=read.tip,
                behind_ms=round(read.behind_seconds * _S),
                checked_at_ms=self._clock.now_ms(),
                copied=progress.copied + added,
                skipped=progress.skipped + len(read.records) - len(records),
                ended=read.ended,
                failure="",
            ),
        )

    async def _progress_of(self, key: ShardKey) -> ShardProgress:
        """Return where to continue: at the beginning for a new shard, or if its copy is new."""
        target = StreamName(key.stream, self._mirror.name.namespace)
        target_id = (await self._storage.catalog.stream(target)).stream_id
        progress = self._progress.get(key)
        if progress is None or progress.target_id != target_id:
            now_ms = self._clock.now_ms()
            progress = ShardProgress(**key._asdict(), target_id=target_id, checked_at_ms=now_ms)
            await self._storage.mirrors.report(self._mirror, [progress], self._failure)
            self._progress[key] = progress
            self._offsets.setdefault(key, OffsetTable()).clear()
        return progress

    def _records_of(
        self, key: ShardKey, shard: OriginShard, target_id: str, read: OriginRead
    ) -> tuple[list[int], list[Record]]:
        """Return the records to add, and their sequences; without those that came from here."""
        sequences, records = [], []
        own = f"{target_id}/"
        for record in read.records:
            origin = record.headers.get(MIRROR_ORIGIN)
            if origin is not None and origin.startswith(own):
                continue
            position = f"{key.origin_id}/{key.shard}/{record.offset}"
            added = () if origin is not None else ((MIRROR_ORIGIN, "", position.encode()),)
            key_hash = hash_key(record.key) if record.key else None
            sequences.append(record.offset)
            records.append(record.to_record(shard.hash_key_for(key_hash), *added))
        return sequences, records

    async def _append_fenced(
        self, progress: ShardProgress, sequences: list[int], records: list[Record]
    ) -> int:
        """Add records to shards that are fenced by a promotion, or are not; return their number."""
        if not records:
            return 0
        fence = self._fences.get(progress.key, "")
        try:
            return await self._append(progress, sequences, records, fence)
        except FenceMismatch:
            other = "" if fence else MIRROR_FENCE
            added = await self._append(progress, sequences, records, other)
            self._fences[progress.key] = other
            return added

    async def _append(
        self, progress: ShardProgress, sequences: list[int], records: list[Record], fence: str
    ) -> int:
        counts = await self._storage.streams.append_idempotent(
            StreamName(progress.stream, self._mirror.name.namespace),
            self._mirror.producer_of(progress.origin_id, progress.shard),
            sequences,
            records,
            own=_OWN_HEADERS,
            stream_id=progress.target_id,
            fence=fence,
        )
        return counts.added

    # ── Reports ──

    def _set(self, key: ShardKey, progress: ShardProgress) -> None:
        self._progress[key] = progress
        self._unreported.add(key)
        self._has_progress.set()

    def _note_shard_failure(self, key: ShardKey, failure: str) -> None:
        progress = self._progress.get(key)
        if progress is None:
            self._note_failure(listing=failure)
        else:
            self._set(key, replace(progress, failure=failure))

    def _note_failure(
        self, *, listing: str | None = None, groups: str | None = None, queues: str | None = None
    ) -> None:
        """Note why streams, groups or queues cannot be listed; empty: they can be."""
        self._listing_failure = self._listing_failure if listing is None else listing
        self._groups_failure = self._groups_failure if groups is None else groups
        self._queues_failure = self._queues_failure if queues is None else queues
        failure = self._listing_failure or self._groups_failure or self._queues_failure
        if failure != self._failure:
            self._failure, self._has_news = failure, True
            facts = {"mirror": str(self._mirror.name)}
            if failure:
                logger.warning("mirror_listing_failed", extra={**facts, "reason": failure})
            else:
                logger.info("mirror_recovered", extra=facts)

    async def _report_forever(self) -> None:
        while True:
            await asyncio.sleep(self._times.report_ms / _S)
            await self._report()

    async def _report(self) -> None:
        """Write what changed; what cannot be written now is written later."""
        keys, self._unreported = self._unreported, set()
        shards = [self._progress[key] for key in keys if key in self._progress]
        if not shards and not self._has_news:
            return
        self._has_news = False
        tables = {key: self._offsets[key] for key in keys if key in self._offsets}
        changes = {key: table.changes() for key, table in tables.items()}
        try:
            await self._storage.mirrors.report(
                self._mirror, shards, self._failure, changes, listed_at_ms=self._listed_at_ms
            )
        except MillstreamError:
            self._unreported |= keys
            self._has_news = True
        else:
            for key, table in tables.items():
                table.mark_stored(changes[key])


async def _wait(event: asyncio.Event, ms: int) -> None:
    try:
        async with asyncio.timeout(ms / _S):
            await event.wait()
    except TimeoutError:
        pass
