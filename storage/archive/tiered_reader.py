"""Reading what has left the hot store: below its start the archive goes on, with the same offsets.

    archive   start ──────────────────── archived
                │  files, by the manifest   │
    hot                     start ──────────┼──────── next
                              └─ read here as soon as it can be

The hot store is always asked first, and what it answers stands unless it cannot know better: of an offset below its start
or beyond its end, of a time or a number of last records that reach below its start, and of a hole, which in a restored
store may be what it forgot. Only then are the manifest and its files looked at.

    below both starts                        OffsetExpired
    between them, where no record ever was   a gap, 'hole'
    lost before it was archived              a gap, 'expired'
"""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from storage.archive.scanner import RowGroupScanner
from storage.domain.archive import unexplained
from storage.domain.streams.stream import LogRecord, Shard, Stream, Tier
from storage.parquet.cache import ArchiveCache
from storage.postgres.repositories.archive_manifest import ArchiveRows, ShardKey
from storage.postgres.repositories.manifest_cache import ManifestCache
from storage.postgres.repositories.manifest_reads import ArchiveExtent
from storage.redis.streams.logs import HotRead

if TYPE_CHECKING:  # it brings pyarrow: see storage.archive.cache
    from storage.parquet.row_group_slice import Part


class TierRead(msgspec.Struct, frozen=True):
    """What both tiers have from `start_at` on: `records`, the first possibly behind a gap, or nothing up to `end`.

    `start` is the oldest readable offset and `next` the next to be written; of a closed shard there are `children`. A
    gap is for the reason `reason`.
    """

    now_ms: int
    start: int
    next: int
    start_at: int
    records: Sequence[LogRecord]
    children: tuple[Shard, ...]
    end: int
    tier: Tier = Tier.HOT
    reason: str = "hole"


def as_hot(found: HotRead) -> TierRead:
    """What the hot store has, and nothing else does."""
    return TierRead(
        found.now_ms,
        found.start,
        found.next,
        found.start_at,
        found.records,
        found.children,
        found.next,
    )


class Hot(msgspec.Struct, frozen=True):
    """What the hot store says of a read: its reach, where the read begins, and the first record it has from there on."""

    start: int
    next: int
    start_at: int
    first: int | None


class Archived(msgspec.Struct, frozen=True):
    """What the archive has from `start_at` on, in place of the hot store: `parts`, or nothing up to `end`. A gap before
    them is for the reason `reason`."""

    start_at: int
    parts: "Sequence[Part]"
    end: int
    reason: str = "hole"


class Verdict(msgspec.Struct, frozen=True):
    """Which tier has the word. `start`: the oldest readable offset of both; `start_at`: where the read begins."""

    start: int
    start_at: int
    archived: Archived | None = None


class Asked(msgspec.Struct, frozen=True):
    """A read as the hot store was asked: from an 'offset', a 'time' in ms, or the last records ('tail')."""

    how: str
    number: int
    records_max: int
    bytes_max: int


class TieredReader:
    """Reads the archive of a deployment that has one."""

    def __init__(self, manifest: ManifestCache, rows: ArchiveRows, cache: ArchiveCache) -> None:
        self._manifest = manifest
        self._rows = rows
        self._cache = cache
        self._following = RowGroupScanner(manifest, cache)

    async def read(self, stream: Stream, shard: Shard, asked: Asked, found: HotRead) -> TierRead:
        """What was asked for, in both tiers, given what the hot one says of it.

        Raises ArchiveDamaged, StorageBusy and StorageUnavailable, but only where the archive must be looked at.
        """
        hot = Hot(
            found.start,
            found.next,
            found.start_at,
            found.records[0].offset if found.records else None,
        )
        verdict = await self.look(stream, shard, asked, hot)
        if verdict.archived is None:
            return replace(as_hot(found), start=verdict.start, start_at=verdict.start_at)
        return _archived(found, verdict.start, verdict.archived)

    async def look(self, stream: Stream, shard: Shard, asked: Asked, hot: Hot) -> Verdict:
        """Which tier has what was asked for, and what the archive has of it. Raises what `read` does."""
        key = _key(stream, shard)
        if _is_cut(asked, hot):
            below = await self._reaching_below(stream, shard, asked, hot)
            if below is not None:
                return below
        if _is_amiss(hot):
            return await self._in_place_of(key, asked, hot)
        if hot.start == 0:
            return Verdict(0, hot.start_at)
        return _beginning(hot, await self._manifest.glimpse(key))

    async def _reaching_below(
        self, stream: Stream, shard: Shard, asked: Asked, hot: Hot
    ) -> Verdict | None:
        """What was asked for of a log whose beginning has left the hot store; None when it does not begin there, or the
        archive has nothing."""
        key = _key(stream, shard)
        extent = await self._extent(stream, key)
        if extent is None or extent.start is None:
            return None
        told = _beginning(hot, extent)
        offset = await self._offset(key, asked, hot, told.start, extent.start)
        if offset is None or offset >= hot.start:
            return None
        if offset < told.start:
            return replace(told, start_at=offset)
        return replace(told, archived=await self._below(stream, shard, asked, hot, offset))

    async def _extent(self, stream: Stream, key: ShardKey) -> ArchiveExtent | None:
        """The archive's reach. What has just left the hot store may have been archived since it was looked at."""
        extent = await self._manifest.extent(key)
        if stream.spec.archive and (extent is None or extent.start is None):
            return await self._manifest.extent_now(key)
        return extent

    async def _in_place_of(self, key: ShardKey, asked: Asked, hot: Hot) -> Verdict:
        """What the archive has where the hot store has a hole, or has not got to; else what the hot store says."""
        extent = await self._manifest.extent_now(key)
        told = _beginning(hot, extent)
        if extent is None or extent.start is None:
            return told
        hot_first = max(hot.next, hot.start_at + 1) if hot.first is None else hot.first
        first: int | None = max(hot.start_at, extent.start)
        if asked.how == "time":
            first = await self._since(key, hot.start_at, asked.number)
        if first is None or first >= min(hot_first, extent.archived):
            return told
        parts = await self._parts(key, first, asked)
        if parts and parts[0].first < hot_first:
            start_at = first if asked.how == "time" else hot.start_at
            return replace(told, archived=Archived(start_at, parts, parts[-1].next))
        return told

    async def _offset(
        self, key: ShardKey, asked: Asked, hot: Hot, start: int, archive_start: int
    ) -> int | None:
        """From where on to read what begins below the hot start; None when it does not."""
        match asked.how:
            case "offset":
                return asked.number
            case "tail":
                return max(start, hot.next - asked.number)
            case _:
                return await self._since(key, archive_start, asked.number)

    async def _since(self, key: ShardKey, start: int, time_ms: int) -> int | None:
        """The first offset in the archive, from `start` on, whose record arrived then or later."""
        file = await self._manifest.file_since(key, start, time_ms)
        if file is None:
            return None
        if time_ms <= file.first_arrival_ms:
            return max(start, file.first_offset)
        footer = await self._cache.footer(file)
        group = await self._cache.group(file, footer, footer.group_since(time_ms))
        return max(start, group.offset_since(time_ms))

    async def _below(
        self, stream: Stream, shard: Shard, asked: Asked, hot: Hot, offset: int
    ) -> Archived:
        """What there is from an offset on that the hot store has no more."""
        parts = await self._parts(_key(stream, shard), offset, asked)
        first, end = (parts[0].first, parts[-1].next) if parts else (hot.start, hot.start)
        if first == offset:
            return Archived(offset, parts, end)
        return Archived(offset, parts, end, await self._reason(stream, shard, offset, first))

    async def _parts(self, key: ShardKey, offset: int, asked: Asked) -> "Sequence[Part]":
        return await self._following.parts(key, offset, asked.records_max, asked.bytes_max)

    async def _reason(self, stream: Stream, shard: Shard, first: int, edge: int) -> str:
        """Why no tier has these offsets: no record ever had them, or they were lost before they were archived."""
        if stream.is_view:
            return "hole"  # a queue's log has offsets that its view never showed
        holes = (await self._rows.holes([shard.log_id])).get(shard.log_id, [])
        return "expired" if unexplained([(first, edge)], holes) else "hole"

    # How far

    async def start(self, stream: Stream, shard: Shard, hot_start: int) -> int:
        """The shard's oldest readable offset in both tiers."""
        if hot_start == 0:
            return 0
        return _oldest(hot_start, await self._extent(stream, _key(stream, shard)))

    async def holds(self, stream: Stream, shard: Shard) -> bool:
        """Whether the archive has a record of the shard."""
        extent = await self._manifest.extent_now(_key(stream, shard))
        return extent is not None and extent.start is not None

    async def raise_start(self, stream: Stream, shard: Shard, before: int) -> bool:
        """What lies below an offset is not to be read any more; whether the archive has begun with the shard."""
        return await self._manifest.raise_start(_key(stream, shard), before)


def _key(stream: Stream, shard: Shard) -> ShardKey:
    return stream.stream_id, shard.index


def _is_cut(asked: Asked, hot: Hot) -> bool:
    """Whether what was asked for may begin below the hot start."""
    match asked.how:
        case "offset":
            return asked.number < hot.start
        case "tail":
            return max(0, hot.next - asked.number) < hot.start
        case _:
            return 0 < hot.start == hot.start_at


def _is_amiss(hot: Hot) -> bool:
    """Whether the hot store has a hole there, or ends before, as a store that was restored may."""
    if hot.start_at == hot.next:
        return False
    return hot.first is None or hot.first > hot.start_at


def _beginning(hot: Hot, extent: ArchiveExtent | None) -> Verdict:
    return Verdict(_oldest(hot.start, extent), hot.start_at)


def _oldest(hot_start: int, extent: ArchiveExtent | None) -> int:
    archived = None if extent is None else extent.start
    return hot_start if archived is None else min(hot_start, archived)


def _archived(found: HotRead, start: int, archived: Archived) -> TierRead:
    """What the archive has, as records."""
    return TierRead(
        found.now_ms,
        start,
        max(found.next, archived.end),
        archived.start_at,
        [*chain.from_iterable(part.records() for part in archived.parts)],
        found.children,
        archived.end,
        Tier.ARCHIVE,
        archived.reason,
    )
