"""Reader of one file: verifies each row group against its digest in the footer."""

import hashlib
import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.parquet.content_digest import ContentDigest
from storage.parquet.footer import Footer, RowGroupMetadata, not_written, read_footer
from storage.parquet.object_store import Root
from storage.parquet.record_schema import RECORD_FIELDS, SCHEMA


def read_group(
    root: Root, footer: Footer, number: int, fields: Sequence[str] = RECORD_FIELDS
) -> pa.RecordBatch:
    """Read the records of a row group, with these fields of `SCHEMA`.

    Keys are dictionary-encoded. Raises ArchiveDamaged when its bytes were altered, and the errors of a root.
    """
    # The digest covers every byte, so the pages' checksums would add nothing.
    raw = _raw(root, footer, number)
    return _decoded(footer, footer.metadata(), number, raw, fields, check_pages=False)


def _raw(root: Root, footer: Footer, number: int) -> bytes:
    group = footer.facts.groups[number]
    raw = root.read(footer.path, group.start, group.bytes)
    if hashlib.sha256(raw).hexdigest() != group.digest:
        raise not_written(footer.path)
    return raw


def _decoded(
    footer: Footer,
    metadata: pq.FileMetaData,
    number: int,
    raw: bytes,
    fields: Sequence[str],
    *,
    check_pages: bool,
) -> pa.RecordBatch:
    window = _RangeFile(raw, footer.facts.groups[number].start, footer.file_bytes)
    try:
        file = pq.ParquetFile(
            window,
            metadata=metadata,
            read_dictionary=["key"],
            pre_buffer=False,
            page_checksum_verification=check_pages,
        )
        table = file.read_row_group(number, columns=list(fields), use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise not_written(footer.path) from error
    [batch] = table.select(list(fields)).combine_chunks().to_batches()
    return batch


def verify_file(root: Root, path: str, file_bytes: int, digest: bytes) -> Footer:
    """Read and verify all records of a file, given its size and digest in the manifest.

    Returns its footer. Raises ArchiveDamaged unless every digest and page checksum is right, offsets rise, and there are as
    many records as the footer states; and the errors of a root.
    """
    footer = read_footer(root, path, file_bytes, digest)
    metadata = footer.metadata()
    content, edge = ContentDigest(), footer.facts.first_offset
    for number, group in enumerate(footer.facts.groups):
        raw = _raw(root, footer, number)
        batch = _decoded(footer, metadata, number, raw, SCHEMA.names, check_pages=True)
        if not _matches_footer(batch, group, edge):
            raise not_written(path)
        content.add(batch)
        edge = group.next_offset
    records = sum(group.records for group in footer.facts.groups)
    expected = (footer.facts.content, footer.facts.records, footer.facts.next_offset, file_bytes)
    if (content.hexdigest(), records, edge, root.size(path)) != expected:
        raise not_written(path)
    return footer


def _matches_footer(batch: pa.RecordBatch, group: RowGroupMetadata, edge: int) -> bool:
    """Return whether a row group matches the footer, with rising offsets, none below `edge`."""
    offsets = batch.column("offset")
    steps = pc.min(pc.pairwise_diff(offsets)).as_py()
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    rises = steps is None or steps >= 1
    expected = (group.records, group.first_offset, group.next_offset)
    return rises and first >= edge and (batch.num_rows, first, last + 1) == expected


class _RangeFile(io.RawIOBase):
    """File of which only one range is present."""

    def __init__(self, content: bytes, start: int, size: int) -> None:
        self._content = memoryview(content)
        self._start = start
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        low = self._position - self._start
        high = len(self._content) if size < 0 else low + size
        if low < 0 or high > len(self._content):
            raise OSError("outside of the row group")
        self._position += high - low
        return bytes(self._content[low:high])
