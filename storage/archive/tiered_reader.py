"""Tiered reads: below the hot store's start, the archive continues with the same offsets.

    archive   start ──────────────────── archived
                │  files, by the manifest   │
    hot                     start ──────────┼──────── next
                              └─ read here as soon as it can be

The hot store is always read first, and its result stands unless it cannot know better: for an offset below its start
or beyond its end, for a time or a number of last records that reach below its start, and for a hole, which a restored
store may have lost. Only then are the manifest and its files read.

    below both starts                        OffsetExpired
    between them, where no record ever was   a gap, 'hole'
    lost before it was archived              a gap, 'expired'

docs/internals/tiering.md explains the boundary and the caches.
"""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from storage.archive.manifest_cache import ManifestCache
from storage.archive.scanner import RowGroupScanner
from storage.domain.archive import ShardKey, unexplained
from storage.domain.streams.stream import GapReason, Shard, Stream, Tier
from storage.hot_store.log_store import HotRead, ReadRequest
from storage.parquet.cache import ArchiveCache
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.postgres.repositories.manifest_reads import ArchiveExtent

if TYPE_CHECKING:  # it imports pyarrow: see storage.archive.cache
    from storage.parquet.row_group_slice import RowGroupSlice


class TierRead(HotRead, frozen=True):
    """The result of a read over both tiers.

    `records`: the first may be behind a gap, whose reason is `reason`; without records there are none up to `end`.
    """

    end: int
    tier: Tier = Tier.HOT
    reason: GapReason = GapReason.HOLE


def as_hot(hot_read: HotRead) -> TierRead:
    """Convert a hot read to a tier read."""
    return TierRead(
        hot_read.now_ms,
        hot_read.start,
        hot_read.next,
        hot_read.start_at,
        hot_read.records,
        hot_read.children,
        hot_read.next,
    )


class Hot(msgspec.Struct, frozen=True):
    """The hot store's part of a read.

    Its extent, the offset at which the read begins, and the first record that it has from there on.
    """

    start: int
    next: int
    start_at: int
    first: int | None


class Archived(msgspec.Struct, frozen=True):
    """Records of the archive from `start_at` on, in place of the hot store's.

    `parts`, or none up to `end`. A gap before them has the reason `reason`.
    """

    start_at: int
    parts: "Sequence[RowGroupSlice]"
    end: int
    reason: GapReason = GapReason.HOLE


class TierDecision(msgspec.Struct, frozen=True):
    """The decision which tier serves a read.

    `start`: the oldest readable offset of both; `start_at`: the offset at which the read begins.
    """

    start: int
    start_at: int
    archived: Archived | None = None


class TieredReader:
    """Reader of both tiers, for a deployment with an archive."""

    def __init__(self, manifest: ManifestCache, rows: ArchiveRows, cache: ArchiveCache) -> None:
        self._manifest = manifest
        self._rows = rows
        self._cache = cache
        self._following = RowGroupScanner(manifest, cache)

    async def read(
        self, stream: Stream, shard: Shard, request: ReadRequest, hot_read: HotRead
    ) -> TierRead:
        """Complete a read of the hot store with the archive's records.

        Raises ArchiveDamaged, StorageBusy and StorageUnavailable, but only where the archive must be read.
        """
        hot = Hot(
            hot_read.start,
            hot_read.next,
            hot_read.start_at,
            hot_read.records[0].offset if hot_read.records else None,
        )
        decision = await self.decide(stream, shard, request, hot)
        if decision.archived is None:
            return replace(as_hot(hot_read), start=decision.start, start_at=decision.start_at)
        return _archived(hot_read, decision.start, decision.archived)

    async def decide(
        self, stream: Stream, shard: Shard, request: ReadRequest, hot: Hot
    ) -> TierDecision:
        """Decide which tier serves the request, and return the archive's records for it.

        Raises what `read` does.
        """
        key = _key(stream, shard)
        if _is_cut(request, hot):
            below = await self._reaching_below(stream, shard, request, hot)
            if below is not None:
                return below
        if _needs_archive(hot):
            return await self._read_archive_instead(key, request, hot)
        if hot.start == 0:
            return TierDecision(0, hot.start_at)
        return _beginning(hot, await self._manifest.get_stale(key))

    async def _reaching_below(
        self, stream: Stream, shard: Shard, request: ReadRequest, hot: Hot
    ) -> TierDecision | None:
        """Decide a read of a log whose beginning has left the hot store.

        None when the read does not begin there, or the archive has nothing.
        """
        key = _key(stream, shard)
        extent = await self._extent(stream, key)
        if extent is None or extent.start is None:
            return None
        decision = _beginning(hot, extent)
        offset = await self._offset(key, request, hot, decision.start, extent.start)
        if offset is None or offset >= hot.start:
            return None
        if offset < decision.start:
            return replace(decision, start_at=offset)
        return replace(decision, archived=await self._below(stream, shard, request, hot, offset))

    async def _extent(self, stream: Stream, key: ShardKey) -> ArchiveExtent | None:
        """Return the archive's extent.

        Records that have just left the hot store may have been archived since the cached extent was read.
        """
        extent = await self._manifest.extent(key)
        if stream.spec.archive and (extent is None or extent.start is None):
            return await self._manifest.extent_now(key)
        return extent

    async def _read_archive_instead(
        self, key: ShardKey, request: ReadRequest, hot: Hot
    ) -> TierDecision:
        """Serve a read from the archive where the hot store has a hole or ends before it.

        Otherwise the hot store's result stands.
        """
        extent = await self._manifest.extent_now(key)
        decision = _beginning(hot, extent)
        if extent is None or extent.start is None:
            return decision
        hot_first = max(hot.next, hot.start_at + 1) if hot.first is None else hot.first
        first: int | None = max(hot.start_at, extent.start)
        if request.how == "time":
            first = await self._since(key, hot.start_at, request.number)
        if first is None or first >= min(hot_first, extent.archived):
            return decision
        parts = await self._parts(key, first, request)
        if parts and parts[0].first < hot_first:
            start_at = first if request.how == "time" else hot.start_at
            return replace(decision, archived=Archived(start_at, parts, parts[-1].next))
        return decision

    async def _offset(
        self, key: ShardKey, request: ReadRequest, hot: Hot, start: int, archive_start: int
    ) -> int | None:
        """Return the offset at which a read begins below the hot start; None when it does not."""
        match request.how:
            case "offset":
                return request.number
            case "tail":
                return max(start, hot.next - request.number)
            case _:
                return await self._since(key, archive_start, request.number)

    async def _since(self, key: ShardKey, start: int, time_ms: int) -> int | None:
        """Return the first offset in the archive, from `start` on, that arrived then or later."""
        file = await self._manifest.file_since(key, start, time_ms)
        if file is None:
            return None
        if time_ms <= file.first_arrival_ms:
            return max(start, file.first_offset)
        footer = await self._cache.footer(file)
        group = await self._cache.group(file, footer, footer.group_since(time_ms))
        return max(start, group.offset_since(time_ms))

    async def _below(
        self, stream: Stream, shard: Shard, request: ReadRequest, hot: Hot, offset: int
    ) -> Archived:
        """Return the archive's records from an offset that the hot store no longer has."""
        parts = await self._parts(_key(stream, shard), offset, request)
        first, end = (parts[0].first, parts[-1].next) if parts else (hot.start, hot.start)
        if first == offset:
            return Archived(offset, parts, end)
        return Archived(offset, parts, end, await self._reason(stream, shard, offset, first))

    async def _parts(
        self, key: ShardKey, offset: int, request: ReadRequest
    ) -> "Sequence[RowGroupSlice]":
        return await self._following.parts(key, offset, request.records_max, request.bytes_max)

    async def _reason(self, stream: Stream, shard: Shard, first: int, edge: int) -> GapReason:
        """Return why no tier has these offsets.

        Either no record ever had them, or they were lost before they were archived.
        """
        if stream.is_view:
            return GapReason.HOLE  # a queue's log has offsets that its view never showed
        holes = (await self._rows.holes([shard.log_id])).get(shard.log_id, [])
        return GapReason.EXPIRED if unexplained([(first, edge)], holes) else GapReason.HOLE

    # Extents

    async def start(self, stream: Stream, shard: Shard, hot_start: int) -> int:
        """Return the shard's oldest readable offset in both tiers."""
        if hot_start == 0:
            return 0
        return _oldest(hot_start, await self._extent(stream, _key(stream, shard)))

    async def holds(self, stream: Stream, shard: Shard) -> bool:
        """Return whether the archive has a record of the shard."""
        extent = await self._manifest.extent_now(_key(stream, shard))
        return extent is not None and extent.start is not None

    async def raise_start(self, stream: Stream, shard: Shard, before: int) -> bool:
        """Make offsets below `before` unreadable; return whether the archive has the shard."""
        return await self._manifest.raise_start(_key(stream, shard), before)


def _key(stream: Stream, shard: Shard) -> ShardKey:
    return stream.stream_id, shard.index


def _is_cut(request: ReadRequest, hot: Hot) -> bool:
    """Return whether the requested records may begin below the hot start."""
    match request.how:
        case "offset":
            return request.number < hot.start
        case "tail":
            return max(0, hot.next - request.number) < hot.start
        case _:
            return 0 < hot.start == hot.start_at


def _needs_archive(hot: Hot) -> bool:
    """Return whether the hot store has a hole there, or ends before.

    It may end before after it was restored.
    """
    if hot.start_at == hot.next:
        return False
    return hot.first is None or hot.first > hot.start_at


def _beginning(hot: Hot, extent: ArchiveExtent | None) -> TierDecision:
    return TierDecision(_oldest(hot.start, extent), hot.start_at)


def _oldest(hot_start: int, extent: ArchiveExtent | None) -> int:
    archived = None if extent is None else extent.start
    return hot_start if archived is None else min(hot_start, archived)


def _archived(hot_read: HotRead, start: int, archived: Archived) -> TierRead:
    """Return the archive's part of a read as records."""
    return TierRead(
        hot_read.now_ms,
        start,
        max(hot_read.next, archived.end),
        archived.start_at,
        [*chain.from_iterable(part.records() for part in archived.parts)],
        hot_read.children,
        archived.end,
        Tier.ARCHIVE,
        archived.reason,
    )
