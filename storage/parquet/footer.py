"""Footer of a file, and the verification of the rest of the file against it.

    PAR1 │ row group │ row group │ … │ indexes │ footer │ length of the footer │ PAR1
             └─ SHA-256 ─┴─────────────────────▶ ▲   └─ SHA-256: the file's digest ──▶ manifest

So a reader with the digest from the manifest gets the original footer and row groups, or ArchiveDamaged. The indexes
(Bloom filters, column and offset indexes) let other engines skip; nothing here reads them. Pages have checksums as well,
for other engines.
"""

import hashlib

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from storage.domain.errors import ArchiveDamaged
from storage.domain.names import LogId
from storage.parquet.object_store import Root
from storage.parquet.store_errors import missing

VERSION = 1
FACTS_KEY = "millstream"

_MAGIC = b"PAR1"
_TRAILER_BYTES = 4 + len(_MAGIC)
_GUESS_BYTES = 64 * 1024  # of a file's end, in the first read: larger than nearly any footer


class RowGroupMetadata(msgspec.Struct, frozen=True, gc=False):
    """A row group: its position in the file, the SHA-256 of its bytes, and its contents.

    The digest is in hexadecimal. `next_offset` is the one behind its last record.
    """

    start: int
    bytes: int
    digest: str
    records: int
    first_offset: int
    next_offset: int
    first_arrival_ms: int
    last_arrival_ms: int


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata in a file's footer: enough to rebuild its row of the manifest.

    Digests are in hexadecimal. `attempt` is that of the file's name.
    """

    version: int
    writer: str
    namespace: str
    stream_id: LogId
    shard: int
    attempt: str
    first_offset: int
    next_offset: int
    records: int
    log_bytes: int
    first_arrival_ms: int
    last_arrival_ms: int
    content: str
    groups: tuple[RowGroupMetadata, ...]


class Footer(msgspec.Struct, frozen=True):
    """A verified footer: `raw` as it is in the file, `facts` the metadata of Millstream in it.

    It is cached raw, because Parquet's own form of it takes ten times as much: some 10 KiB for each row group.
    """

    path: str
    file_bytes: int
    digest: bytes
    facts: FileFacts
    raw: bytes

    @property
    def bytes_held(self) -> int:
        """Approximate memory in use.

        The facts are a part of `raw`, and a few times as large when decoded.
        """
        return 3 * len(self.raw)

    def group_at(self, offset: int) -> int:
        """Return the number of the row group that has an offset, or of the next one if none has.

        The offset lies below the file's end.
        """
        groups = enumerate(self.facts.groups)
        return next(nth for nth, group in groups if offset < group.next_offset)

    def group_since(self, time_ms: int) -> int:
        """Return the number of the first row group with a record that arrived then or later.

        The time is no later than the file's last arrival.
        """
        groups = enumerate(self.facts.groups)
        return next(nth for nth, group in groups if time_ms <= group.last_arrival_ms)

    def metadata(self) -> pq.FileMetaData:
        """Return the metadata that Parquet needs to read a row group."""
        return _metadata(self.raw)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(FileFacts)


def encode_facts(facts: FileFacts) -> bytes:
    """Encode the facts for the footer."""
    return _encoder.encode(facts)


def read_footer(root: Root, path: str, file_bytes: int, digest: bytes) -> Footer:
    """Read and verify a file's footer, given its size and digest in the manifest.

    Raises ArchiveDamaged, and the errors of a root.
    """
    raw = _raw_footer(root, path, file_bytes)
    if hashlib.sha256(raw).digest() != digest:
        raise not_written(path)
    return _parsed(raw, path, file_bytes)


def read_unverified_footer(root: Root, path: str) -> Footer:
    """Read the footer of a file without verifying it, to write the manifest's row."""
    file_bytes = root.size(path)
    if file_bytes is None:
        raise missing(path)
    return _parsed(_raw_footer(root, path, file_bytes), path, file_bytes)


def footer_in(end: bytes) -> bytes:
    """Return the footer in the last bytes of a file, however many are given.

    Raises ValueError when it is not complete.
    """
    size = int.from_bytes(end[-_TRAILER_BYTES : -len(_MAGIC)], "little")
    if end[-len(_MAGIC) :] != _MAGIC or size + _TRAILER_BYTES > len(end):
        raise ValueError("no Parquet footer")
    return end[-_TRAILER_BYTES - size : -_TRAILER_BYTES]


def _raw_footer(root: Root, path: str, file_bytes: int) -> bytes:
    if file_bytes < len(_MAGIC) + _TRAILER_BYTES:
        raise not_written(path)
    guess = min(_GUESS_BYTES, file_bytes)
    end = root.read(path, file_bytes - guess, guess)
    missing_bytes = (
        int.from_bytes(end[-_TRAILER_BYTES : -len(_MAGIC)], "little") + _TRAILER_BYTES - guess
    )
    if 0 < missing_bytes <= file_bytes - guess:
        end = root.read(path, file_bytes - guess - missing_bytes, missing_bytes) + end
    try:
        return footer_in(end)
    except ValueError as error:
        raise not_written(path) from error


def _parsed(raw: bytes, path: str, file_bytes: int) -> Footer:
    try:
        metadata = _metadata(raw).metadata or {}
        facts = _decoder.decode(metadata.get(FACTS_KEY.encode(), b""))
    except (OSError, ValueError, msgspec.DecodeError, pa.ArrowException) as error:
        raise not_written(path) from error
    return Footer(path, file_bytes, hashlib.sha256(raw).digest(), facts, raw)


def _metadata(raw: bytes) -> pq.FileMetaData:
    whole = _MAGIC + raw + len(raw).to_bytes(4, "little") + _MAGIC
    return pq.read_metadata(pa.BufferReader(whole))


def not_written(path: str) -> ArchiveDamaged:
    """Return the error for a file whose contents were altered."""
    return ArchiveDamaged("An archive file is corrupt.", path=path)
