"""Compaction of several files into one: the work of one task, which may run anywhere.

The new file has the contents of the old ones, offset by offset; which of them are used for these offsets is decided
when it is committed.
"""

from collections.abc import Sequence

from storage.archive.copy_task import archived
from storage.domain.archive import ArchivedFile
from storage.domain.errors import ArchiveDamaged
from storage.parquet.content_digest import ContentDigest
from storage.parquet.file_reader import read_group, verify_file
from storage.parquet.file_writer import FileOf, FileWriter, WrittenFile
from storage.parquet.footer import Footer
from storage.parquet.object_store import Root
from storage.parquet.paths import file_path, new_attempt
from storage.parquet.record_schema import SCHEMA


def compact_files(root: Root, namespace: str, run: Sequence[ArchivedFile]) -> ArchivedFile:
    """Write one file from adjacent files of a shard and hour, given by offset.

    Each is read whole and checked against its digests before any of it is written. Blocks. Raises ArchiveDamaged, and
    what a root raises.
    """
    try:
        return _compact(root, namespace, run)
    except Exception as error:
        first, last = run[0], run[-1]
        error.add_note(
            f"stream {first.stream_id}, shard {first.shard}, offsets {first.first_offset} to {last.next_offset}"
        )
        raise


def _compact(root: Root, namespace: str, run: Sequence[ArchivedFile]) -> ArchivedFile:
    first, last, attempt = run[0], run[-1], new_attempt()
    place = (namespace, first.stream_id, first.shard)
    path = file_path(
        *place,
        arrival_ms=first.first_arrival_ms,
        first=first.first_offset,
        next_=last.next_offset,
        attempt=attempt,
    )
    with FileWriter(root, path, FileOf(*place, attempt)) as writer:
        content = ContentDigest()
        for file in run:
            footer = verify_file(root, file.path, file.file_bytes, file.digest)
            for number, log_bytes in enumerate(_shares(footer)):
                batch = read_group(root, footer, number, SCHEMA.names).cast(SCHEMA)
                content.add(batch)
                writer.write(batch, log_bytes)
        written = writer.finish()
    if written.content != content.hexdigest() or not _is_whole(written, run):
        raise ArchiveDamaged("The files do not match the manifest.", path=first.path)
    return archived(written, first)


def _shares(footer: Footer) -> list[int]:
    """Return the bytes that each row group counts against a retention.

    They are known for the file as a whole, so the first row group counts all of them.
    """
    return [footer.facts.log_bytes] + [0] * (len(footer.facts.groups) - 1)


def _is_whole(written: WrittenFile, run: Sequence[ArchivedFile]) -> bool:
    """Return whether a written file has as much as these files, over the same offsets."""
    records, size = sum(file.records for file in run), sum(file.log_bytes for file in run)
    totals = (written.first_offset, written.next_offset, written.records, written.log_bytes)
    return totals == (run[0].first_offset, run[-1].next_offset, records, size)
