"""Sequential scan of archive files from an offset, by row groups, as Arrow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.archive.manifest_cache import ManifestCache
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.archive import ArchivedFile, ShardKey
from storage.parquet.cache import ArchiveCache

if TYPE_CHECKING:  # they import pyarrow: see storage.archive.cache
    from storage.parquet.footer import Footer
    from storage.parquet.row_group_slice import RowGroupSlice


class RowGroupScanner:
    """Read-ahead scanner of a shard's archive files.

    Raises ArchiveDamaged, StorageBusy, StorageUnavailable.
    """

    def __init__(self, manifest: ManifestCache, cache: ArchiveCache) -> None:
        self._manifest = manifest
        self._cache = cache
        self._followed: BoundedCache[tuple[ShardKey, int], None] = BoundedCache(
            limits.ARCHIVE_SCAN_POSITIONS_MAX
        )

    async def parts(
        self, key: ShardKey, offset: int, records_max: int, bytes_max: int
    ) -> "Sequence[RowGroupSlice]":
        """Return the archive's records from the first one at or after an offset, up to a hole.

        At most `bytes_max` bytes of data, or else one record; in all at most TABLE_BYTES_MAX and a row group in memory. For a
        reader that continues, the next row group is fetched ahead.
        """
        goes_on = (key, offset) in self._followed
        parts: list[RowGroupSlice] = []
        position, records_left, bytes_left = offset, records_max, bytes_max
        while records_left > 0 and bytes_left > 0 and _size(parts) < limits.TABLE_BYTES_MAX:
            file = await self._manifest.file_at(key, position)
            if file is None or (parts and file.first_offset != position):
                break
            footer = await self._cache.footer(file)
            number = footer.group_at(position)
            group = await self._cache.group(file, footer, number)
            part = group.part_from(position, records_left, bytes_left)
            bytes_left -= part.data_bytes
            if parts and (part.first != position or bytes_left < 0):
                break
            parts.append(part)
            records_left -= len(part)
            position = part.next
            if position < footer.facts.groups[number].next_offset:
                if goes_on:
                    self._read_ahead(key, file, footer, number, position)
                break
        self._followed[key, position] = None
        return parts

    def _read_ahead(
        self, key: ShardKey, file: ArchivedFile, footer: "Footer", number: int, position: int
    ) -> None:
        """Fetch the next row group once half of this one is read."""
        group = footer.facts.groups[number]
        if position < (group.first_offset + group.next_offset) // 2:
            return
        if number + 1 < len(footer.facts.groups):
            self._cache.read_ahead(file, number + 1)
        elif following := self._manifest.get_cached(key, file.next_offset):
            self._cache.read_ahead(following, 0)


def _size(parts: "Sequence[RowGroupSlice]") -> int:
    return sum(part.bytes for part in parts)
