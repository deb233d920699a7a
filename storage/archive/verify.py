"""Archive verification: reads every file whole and accounts for every offset.

Contents are checked against their digests.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import attrs
import msgspec

from storage.domain.archive import ArchivedFile, Span, unexplained
from storage.domain.errors import ArchiveDamaged, ArchiveOff
from storage.domain.names import LogId
from storage.parquet.file_reader import verify_file
from storage.parquet.object_store import Root, open_root
from storage.postgres.database import open_database
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.settings import StorageSettings


class Checked(msgspec.Struct, frozen=True):
    """The verification result of a shard: its files, their records, and each fault described."""

    stream_id: LogId
    shard: int
    files: int
    records: int
    faults: Sequence[str]


@attrs.define(eq=False, slots=False)
class ArchiveVerifier:
    """Read-only verifier of the archive."""

    _rows: ArchiveRows
    _root: Root

    async def shards(self, stream_id: LogId | None = None) -> AsyncIterator[Checked]:
        """Verify every shard in turn, or those of one stream.

        Raises StorageUnavailable.
        """
        async for _, key, log_id in self._rows.every_shard():
            if stream_id in (None, key[0]):
                yield await self._shard(key, log_id)

    async def _shard(self, key: tuple[LogId, int], log_id: LogId) -> Checked:
        files = await self._rows.every_file(key)
        mark = (await self._rows.marks([key[0]]))[key]
        holes = (await self._rows.holes([log_id])).get(log_id, [])
        faults = [*_overlaps(files)]
        first = max(mark.start, files[0].first_offset) if files else mark.archived
        missing = unexplained(_between(files, first, mark.archived), holes)
        faults += [f"No file has the offsets {first} to {last - 1}." for first, last in missing]
        for file in files:
            fault = await asyncio.to_thread(self._fault_of, file)
            faults += [fault] if fault else []
        return Checked(*key, len(files), sum(file.records for file in files), faults)

    def _fault_of(self, file: ArchivedFile) -> str:
        try:
            footer = verify_file(self._root, file.path, file.file_bytes, file.digest)
        except ArchiveDamaged as damage:
            return f"{file.path}: {damage.detail}"
        expected = (file.first_offset, file.next_offset, file.records)
        facts = footer.facts
        if (facts.first_offset, facts.next_offset, facts.records) != expected:
            return f"{file.path}: the file does not match the manifest."
        return ""


@asynccontextmanager
async def open_archive_check(settings: StorageSettings) -> AsyncGenerator[ArchiveVerifier]:
    """Open a verifier of the deployment's archive.

    Raises ArchiveOff where it has none.
    """
    if settings.archive_url is None:
        raise ArchiveOff
    async with open_database(settings) as database:
        yield ArchiveVerifier(ArchiveRows(database), open_root(settings.archive_url))


def _overlaps(files: Sequence[ArchivedFile]) -> list[str]:
    return [
        f"{after.path}: overlaps {before.path}."
        for before, after in pairwise(files)
        if after.first_offset < before.next_offset
    ]


def _between(files: Sequence[ArchivedFile], first: int, last: int) -> list[Span]:
    """Return the offsets of [first, last) that no file has."""
    spans: list[Span] = []
    edge = first
    for file in files:
        if file.first_offset > edge:
            spans.append((edge, file.first_offset))
        edge = max(edge, file.next_offset)
    if edge < last:
        spans.append((edge, last))
    return spans
