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

from collections import OrderedDict
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from storage.archive.cache import ArchiveCache
from storage.archive.footers import Footer
from storage.archive.reader import group_at, group_since
from storage.archive.schema import records_of
from storage.archive.slices import offset_since, part_from
from storage.domain import limits
from storage.domain.archive import ArchivedFile, unexplained
from storage.domain.streams import LogRecord, Shard, Stream, Tier
from storage.postgres.archives import ArchiveRows, ShardKey
from storage.postgres.known_manifest import KnownManifest
from storage.postgres.manifest import ArchiveExtent
from storage.redis.logs import HotRead


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


class Asked(msgspec.Struct, frozen=True):
    """A read as the hot store was asked: from an 'offset', a 'time' in ms, or the last records ('tail')."""

    how: str
    number: int
    records_max: int
    bytes_max: int


class Tiered:
    """Reads the archive of a deployment that has one."""

    def __init__(self, manifest: KnownManifest, rows: ArchiveRows, cache: ArchiveCache) -> None:
        self._manifest = manifest
        self._rows = rows
        self._cache = cache
        self._followed: OrderedDict[tuple[ShardKey, int], None] = OrderedDict()

    async def read(self, stream: Stream, shard: Shard, asked: Asked, found: HotRead) -> TierRead:
        """What was asked for, in both tiers, given what the hot one says of it.

        Raises ArchiveDamaged, StorageBusy and StorageUnavailable, but only where the archive must be looked at.
        """
        key = _key(stream, shard)
        if _is_cut(asked, found):
            below = await self._reaching_below(stream, shard, asked, found)
            if below is not None:
                return below
        if _is_amiss(found):
            return await self._in_place_of(key, asked, found)
        if found.start == 0:
            return as_hot(found)
        return _beginning(found, await self._manifest.glimpse(key))

    async def _reaching_below(
        self, stream: Stream, shard: Shard, asked: Asked, found: HotRead
    ) -> TierRead | None:
        """What was asked for of a log whose beginning has left the hot store; None when it does not begin there, or the
        archive has nothing."""
        key = _key(stream, shard)
        extent = await self._extent(stream, key)
        if extent is None or extent.start is None:
            return None
        hot = _beginning(found, extent)
        offset = await self._offset(key, asked, hot, extent.start)
        if offset is None or offset >= found.start:
            return None
        if offset < hot.start:
            return replace(hot, start_at=offset)
        return await self._below(stream, shard, asked, hot, found.start, offset)

    async def _extent(self, stream: Stream, key: ShardKey) -> ArchiveExtent | None:
        """The archive's reach. What has just left the hot store may have been archived since it was looked at."""
        extent = await self._manifest.extent(key)
        if stream.spec.archive and (extent is None or extent.start is None):
            return await self._manifest.extent_now(key)
        return extent

    async def _in_place_of(self, key: ShardKey, asked: Asked, found: HotRead) -> TierRead:
        """What the archive has where the hot store has a hole, or has not got to; else what the hot store says."""
        extent = await self._manifest.extent_now(key)
        hot = _beginning(found, extent)
        if extent is None or extent.start is None:
            return hot
        hot_first = hot.records[0].offset if hot.records else max(hot.next, hot.start_at + 1)
        first: int | None = max(hot.start_at, extent.start)
        if asked.how == "time":
            first = await self._since(key, hot.start_at, asked.number)
        if first is None or first >= min(hot_first, extent.archived):
            return hot
        records = await self._follow(key, first, asked)
        if records and records[0].offset < hot_first:
            return _archived(hot, first if asked.how == "time" else hot.start_at, records)
        return hot

    async def _offset(self, key: ShardKey, asked: Asked, hot: TierRead, start: int) -> int | None:
        """From where on to read what begins below the hot start; None when it does not."""
        match asked.how:
            case "offset":
                return asked.number
            case "tail":
                return max(hot.start, hot.next - asked.number)
            case _:
                return await self._since(key, start, asked.number)

    async def _since(self, key: ShardKey, start: int, time_ms: int) -> int | None:
        """The first offset in the archive, from `start` on, whose record arrived then or later."""
        file = await self._manifest.file_since(key, start, time_ms)
        if file is None:
            return None
        if time_ms <= file.first_arrival_ms:
            return max(start, file.first_offset)
        footer = await self._cache.footer(file)
        number = group_since(footer, time_ms)
        group = await self._cache.group(file, footer, number)
        return max(start, offset_since(group, time_ms))

    async def _below(
        self,
        stream: Stream,
        shard: Shard,
        asked: Asked,
        hot: TierRead,
        hot_start: int,
        offset: int,
    ) -> TierRead:
        """What there is from an offset on that the hot store has no more."""
        key = _key(stream, shard)
        records = await self._follow(key, offset, asked)
        if records and records[0].offset == offset:
            return _archived(hot, offset, records)
        edge = records[0].offset if records else hot_start
        reason = await self._reason(stream, shard, offset, edge)
        if records:
            return _archived(hot, offset, records, reason)
        return replace(
            hot, start_at=offset, records=(), end=hot_start, tier=Tier.ARCHIVE, reason=reason
        )

    async def _reason(self, stream: Stream, shard: Shard, first: int, edge: int) -> str:
        """Why no tier has these offsets: no record ever had them, or they were lost before they were archived."""
        if stream.is_view:
            return "hole"  # a queue's log has offsets that its view never showed
        holes = (await self._rows.holes([shard.log_id])).get(shard.log_id, [])
        return "expired" if unexplained([(first, edge)], holes) else "hole"

    # Files

    async def _follow(self, key: ShardKey, offset: int, asked: Asked) -> list[LogRecord]:
        """The archive's records from the first one at or behind an offset on, up to a hole; what a reader that goes on
        will want next is fetched ahead."""
        goes_on = (key, offset) in self._followed
        records: list[LogRecord] = []
        at, left = offset, asked.bytes_max
        while len(records) < asked.records_max and left > 0:
            file = await self._manifest.file_at(key, at)
            if file is None or (records and file.first_offset != at):
                break
            footer = await self._cache.footer(file)
            number = group_at(footer, at)
            group = await self._cache.group(file, footer, number)
            some = records_of(part_from(group, at, asked.records_max - len(records), left))
            left -= sum(len(one.record.data) for one in some)
            if records and (some[0].offset != at or left < 0):
                break
            records += some
            at = records[-1].offset + 1
            if at < footer.facts.groups[number].next_offset:
                if goes_on:
                    self._read_ahead(key, file, footer, number, at)
                break
        self._remember(key, at)
        return records

    def _read_ahead(
        self, key: ShardKey, file: ArchivedFile, footer: Footer, number: int, at: int
    ) -> None:
        """The next row group, once half of this one is read."""
        group = footer.facts.groups[number]
        if at < (group.first_offset + group.next_offset) // 2:
            return
        if number + 1 < len(footer.facts.groups):
            self._cache.read_ahead(file, number + 1)
        elif following := self._manifest.peek(key, file.next_offset):
            self._cache.read_ahead(following, 0)

    def _remember(self, key: ShardKey, at: int) -> None:
        while len(self._followed) >= limits.ARCHIVE_FOLLOWED_MAX:
            self._followed.popitem(last=False)
        self._followed[key, at] = None

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


def _is_cut(asked: Asked, found: HotRead) -> bool:
    """Whether what was asked for may begin below the hot start."""
    match asked.how:
        case "offset":
            return asked.number < found.start
        case "tail":
            return max(0, found.next - asked.number) < found.start
        case _:
            return 0 < found.start == found.start_at


def _is_amiss(found: HotRead) -> bool:
    """Whether the hot store has a hole there, or ends before, as a store that was restored may."""
    if found.start_at == found.next:
        return False
    return not found.records or found.records[0].offset > found.start_at


def _beginning(found: HotRead, extent: ArchiveExtent | None) -> TierRead:
    return replace(as_hot(found), start=_oldest(found.start, extent))


def _oldest(hot_start: int, extent: ArchiveExtent | None) -> int:
    archived = None if extent is None else extent.start
    return hot_start if archived is None else min(hot_start, archived)


def _archived(
    hot: TierRead, offset: int, records: Sequence[LogRecord], reason: str = "hole"
) -> TierRead:
    return replace(
        hot,
        start_at=offset,
        records=records,
        next=max(hot.next, records[-1].offset + 1),
        tier=Tier.ARCHIVE,
        reason=reason,
    )
