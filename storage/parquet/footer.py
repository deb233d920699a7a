"""What a file says of itself, in its Parquet footer, and how the rest of it is held to that.

    PAR1 │ row group │ row group │ … │ indexes │ footer │ length of the footer │ PAR1
             └─ SHA-256 ─┴─────────────────────▶ ▲   └─ SHA-256: the file's digest ──▶ manifest

So whoever has the digest from the manifest reads the footer that was written, or ArchiveDamaged, and of it any row
group, or ArchiveDamaged. The indexes (Bloom filters, column and offset indexes) let other engines skip; nothing here
reads them. Pages have checksums as well, for other engines.
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
_GUESS_BYTES = 64 * 1024  # of a file's end, read at once: more than nearly any footer


class RowGroup(msgspec.Struct, frozen=True, gc=False):
    """A row group: where it lies in its file, the SHA-256 of these bytes in hexadecimal, and what it holds.

    `next_offset` is the one behind its last record.
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
    """What is written into a file's footer: enough to make its row of the manifest anew.

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
    groups: tuple[RowGroup, ...]


class Footer(msgspec.Struct, frozen=True):
    """A footer that is what was written: `raw` as it is in the file, `facts` what Millstream wrote into it.

    It is kept raw, since Parquet's own form of it takes ten times as much: some 10 KiB for each row group.
    """

    path: str
    file_bytes: int
    digest: bytes
    facts: FileFacts
    raw: bytes

    @property
    def bytes_held(self) -> int:
        """About what it takes: the facts are a part of what is raw, and a few times as large as there."""
        return 3 * len(self.raw)

    def group_at(self, offset: int) -> int:
        """The number of the row group that holds an offset below the file's end or, if none has it, of the next one."""
        groups = enumerate(self.facts.groups)
        return next(nth for nth, group in groups if offset < group.next_offset)

    def group_since(self, time_ms: int) -> int:
        """The number of the first row group with a record that arrived then, no later than the file's last, or later."""
        groups = enumerate(self.facts.groups)
        return next(nth for nth, group in groups if time_ms <= group.last_arrival_ms)

    def metadata(self) -> pq.FileMetaData:
        """What Parquet needs to read a row group."""
        return _metadata(self.raw)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(FileFacts)


def encode_facts(facts: FileFacts) -> bytes:
    """The facts as the footer holds them."""
    return _encoder.encode(facts)


def read_footer(root: Root, path: str, file_bytes: int, digest: bytes) -> Footer:
    """The footer of a file, of which the manifest knows the size and the digest. Raises ArchiveDamaged, and what
    a root raises."""
    raw = _raw_footer(root, path, file_bytes)
    if hashlib.sha256(raw).digest() != digest:
        raise not_written(path)
    return _parsed(raw, path, file_bytes)


def found_footer(root: Root, path: str) -> Footer:
    """The footer of a file of which nothing else is known, held to nothing: to write the manifest's row."""
    file_bytes = root.size(path)
    if file_bytes is None:
        raise missing(path)
    return _parsed(_raw_footer(root, path, file_bytes), path, file_bytes)


def footer_in(end: bytes) -> bytes:
    """The footer in the end of a file, however much of it is given. Raises ValueError when it is not whole."""
    size = int.from_bytes(end[-_TRAILER_BYTES : -len(_MAGIC)], "little")
    if end[-len(_MAGIC) :] != _MAGIC or size + _TRAILER_BYTES > len(end):
        raise ValueError("no Parquet footer")
    return end[-_TRAILER_BYTES - size : -_TRAILER_BYTES]


def _raw_footer(root: Root, path: str, file_bytes: int) -> bytes:
    if file_bytes < len(_MAGIC) + _TRAILER_BYTES:
        raise not_written(path)
    guess = min(_GUESS_BYTES, file_bytes)
    end = root.read(path, file_bytes - guess, guess)
    more = int.from_bytes(end[-_TRAILER_BYTES : -len(_MAGIC)], "little") + _TRAILER_BYTES - guess
    if 0 < more <= file_bytes - guess:
        end = root.read(path, file_bytes - guess - more, more) + end
    try:
        return footer_in(end)
    except ValueError as error:
        raise not_written(path) from error


def _parsed(raw: bytes, path: str, file_bytes: int) -> Footer:
    try:
        told = _metadata(raw).metadata or {}
        facts = _decoder.decode(told.get(FACTS_KEY.encode(), b""))
    except (OSError, ValueError, msgspec.DecodeError, pa.ArrowException) as error:
        raise not_written(path) from error
    return Footer(path, file_bytes, hashlib.sha256(raw).digest(), facts, raw)


def _metadata(raw: bytes) -> pq.FileMetaData:
    whole = _MAGIC + raw + len(raw).to_bytes(4, "little") + _MAGIC
    return pq.read_metadata(pa.BufferReader(whole))


def not_written(path: str) -> ArchiveDamaged:
    """What is read of a file is not what was written."""
    return ArchiveDamaged("A file of the archive is not what was written.", path=path)
