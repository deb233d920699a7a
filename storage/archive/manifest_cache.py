"""Cache of the archive's manifest, so that reading the archive rarely queries Postgres.

The file of an offset never changes, except that one file replaces several, and then the old ones stay for
`READER_GRACE_MS`: so the next files of a shard are cached for a while. The archive's extents are read for all shards of a
stream together, and may be a second old where that is harmless.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter

import msgspec

from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.archive import ArchivedFile, ShardKey
from storage.domain.clock import Clock
from storage.domain.errors import StorageBusy, StorageUnavailable
from storage.domain.names import LogId
from storage.postgres.repositories.manifest_reads import ArchiveExtent, ManifestRows

_next_offset = attrgetter("next_offset")


class _Seen(msgspec.Struct, frozen=True):
    """Extents of the archive for a stream's shards, and when they were read."""

    extents: Mapping[int, ArchiveExtent]
    at_ms: int


class _Plan(msgspec.Struct, frozen=True):
    """All files with offsets from `first` up to the end of the last one.

    `at_ms`: when they were read.
    """

    first: int
    files: Sequence[ArchivedFile]
    at_ms: int


class ManifestCache:
    """Stale-while-revalidate cache of the manifest.

    Its methods raise StorageUnavailable and StorageBusy where Postgres must be queried.
    """

    def __init__(self, rows: ManifestRows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._seen: BoundedCache[LogId, _Seen] = BoundedCache(limits.ARCHIVE_PLANS_MAX)
        self._plans: BoundedCache[ShardKey, _Plan] = BoundedCache(limits.ARCHIVE_PLANS_MAX)
        self._reads = SingleFlight[LogId, _Seen]()
        self._quiet_until_ms = 0

    async def close(self) -> None:
        """Cancel the reads in progress."""
        await self._reads.close()

    # Extents

    async def get_stale(self, key: ShardKey) -> ArchiveExtent | None:
        """Return the archive's cached extent, however old; it is refreshed in the background.

        Waits only when nothing is cached, and not for long. None where the archive has nothing, or no answer arrived.
        """
        stream_id, shard = key
        seen = self._seen.get(stream_id)
        if (
            seen is None or not self._is_young(seen.at_ms, limits.ARCHIVE_EXTENT_MS)
        ) and self._may_query():
            task = self._reads.begin(stream_id, partial(self._load, stream_id))
            if seen is None:
                await asyncio.wait([task], timeout=limits.ARCHIVE_EXTENT_WAIT_MS / limits.SECOND_MS)
                seen = self._seen.get(stream_id)
        return seen.extents.get(shard) if seen is not None else None

    def _may_query(self) -> bool:
        """Return whether hot reads may query Postgres: not for a while after a refusal."""
        return self._clock.now_ms() >= self._quiet_until_ms

    async def extent(self, key: ShardKey) -> ArchiveExtent | None:
        """Return the archive's extent, at most a second old; None where it has nothing.

        It may be older while Postgres is unreachable.
        """
        stream_id, shard = key
        seen = self._seen.get(stream_id)
        if seen is None or not self._is_young(seen.at_ms, limits.ARCHIVE_EXTENT_MS):
            try:
                seen = await self._reads.run(stream_id, partial(self._load, stream_id))
            except (StorageUnavailable, StorageBusy):
                if seen is None:
                    raise
        return seen.extents.get(shard)

    async def extent_now(self, key: ShardKey) -> ArchiveExtent | None:
        """Return the archive's extent, from a read that started after this call."""
        stream_id, shard = key
        seen = await self._reads.run_fresh(stream_id, partial(self._load, stream_id))
        return seen.extents.get(shard)

    async def _load(self, stream_id: LogId) -> _Seen:
        at_ms = self._clock.now_ms()
        try:
            seen = _Seen(await self._rows.extents(stream_id), at_ms)
        except (StorageUnavailable, StorageBusy):
            self._quiet_until_ms = self._clock.now_ms() + limits.ARCHIVE_EXTENT_MS
            raise
        if self._reads.is_current(stream_id):
            self._seen[stream_id] = seen
        return seen

    async def raise_start(self, key: ShardKey, before: int) -> bool:
        """Hide the offsets below `before`: here immediately, in other processes within a second.

        Returns whether archiving of the shard has started.
        """
        try:
            return await self._rows.raise_start(key, before)
        finally:
            self._seen.pop(key[0], None)
            self._reads.discard(key[0])  # a read that started before is not stored

    # Files

    async def file_at(self, key: ShardKey, offset: int) -> ArchivedFile | None:
        """Return the file with an offset or, if none has it, the next one.

        None, by a fresh read, behind the last file.
        """
        return self.get_cached(key, offset) or await self._plan(key, offset)

    def get_cached(self, key: ShardKey, offset: int) -> ArchivedFile | None:
        """Return the cached file with an offset or the next one; None if it is not cached."""
        plan = self._plans.get(key)
        if (
            plan is None
            or offset < plan.first
            or not self._is_young(plan.at_ms, limits.ARCHIVE_PLAN_MS)
        ):
            return None
        nth = bisect_right(plan.files, offset, key=_next_offset)
        return plan.files[nth] if nth < len(plan.files) else None

    async def _plan(self, key: ShardKey, offset: int) -> ArchivedFile | None:
        at_ms = self._clock.now_ms()
        files = await self._rows.files_from(key, offset)
        if files:
            self._plans[key] = _Plan(offset, files, at_ms)
        return files[0] if files else None

    async def file_since(self, key: ShardKey, start: int, time_ms: int) -> ArchivedFile | None:
        """Return the first file with a record from `start` on that arrived since `time_ms`.

        By a fresh read.
        """
        return await self._rows.file_since(key, start, time_ms)

    def _is_young(self, at_ms: int, age_ms_max: int) -> bool:
        """Return whether a value is recent enough; a clock that was set back makes everything old."""
        return 0 <= self._clock.now_ms() - at_ms < age_ms_max
