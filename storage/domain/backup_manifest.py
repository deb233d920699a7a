"""What a backup is made of, and when one is whole.

    BACKUP/store.rdb               the hot store at one moment
    BACKUP/postgres/<table>.copy   each table of Postgres, as COPY writes it
    BACKUP/archive/<path>          the archive's files, where they were asked for
    BACKUP/manifest.json           a `Manifest`; written last, so that half a backup has none

It holds hashes of keys and sealed secrets. The keys that open these (`storage.access.secret_box`) are not in it.
"""

import hashlib

import msgspec

from storage.domain.errors import StorageUnavailable

FORMAT = 1
MANIFEST = "manifest.json"
SNAPSHOT = "store.rdb"
FOLDER_OF_TABLES = "postgres"
FOLDER_OF_ARCHIVE = "archive/"
RESTORING = "restoring"
"""Stands where a store says what it is, while a backup is being restored into it."""


class BackupError(Exception):
    """A backup or a restore cannot be done. The message is one line for the person at the terminal."""


class StoreInUse(BackupError):
    """What is to be restored into is not empty."""


class RestoreUnfinished(StorageUnavailable):
    """A backup is being restored into this deployment, or its restore broke off: then empty both stores and restore anew."""


class Table(msgspec.Struct, frozen=True):
    """A table of Postgres: its columns in the order in which they were copied."""

    name: str
    columns: tuple[str, ...]
    rows: int

    @property
    def path(self) -> str:
        """Where it lies in the backup."""
        return path_of_table(self.name)


class Part(msgspec.Struct, frozen=True):
    """A file of the backup, by its path in it."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """All that a backup is.

    `tables` are in an order in which they can be filled. `revision` is the schema's, `layout` the hot store's, `server`
    what that was. What was acknowledged before `began_at_ms` is in it. `digest` is of everything else here.
    """

    format: int
    millstream: str
    began_at_ms: int
    ended_at_ms: int
    revision: str
    layout: str
    server: str
    tables: tuple[Table, ...]
    parts: tuple[Part, ...]
    digest: str = ""

    @property
    def bytes(self) -> int:
        """What its files come to."""
        return sum(part.bytes for part in self.parts)

    @property
    def archived(self) -> int:
        """How many files of the archive are in it."""
        return sum(part.path.startswith(FOLDER_OF_ARCHIVE) for part in self.parts)


class _Format(msgspec.Struct):
    """What every format's manifest says."""

    format: int


def path_of_table(name: str) -> str:
    """Where a table lies in a backup."""
    return f"{FOLDER_OF_TABLES}/{name}.copy"


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest with its digest."""
    sealed = msgspec.structs.replace(manifest, digest=_digest(manifest))
    return msgspec.json.format(msgspec.json.encode(sealed), indent=1) + b"\n"


def decode_manifest(text: bytes) -> Manifest:
    """The manifest. Raises BackupError for one of another format, and one that is not what was written."""
    try:
        found = msgspec.json.decode(text, type=_Format).format
        if found != FORMAT:
            raise BackupError(
                f"the backup has format {found}, and this Millstream knows {FORMAT}: use the Millstream that wrote it"
            )
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupError(f"{MANIFEST} is damaged: {error}") from None
    if manifest.digest != _digest(manifest):
        raise BackupError(f"{MANIFEST} is damaged: it is not what was written")
    return manifest


def _digest(manifest: Manifest) -> str:
    bare = msgspec.structs.replace(manifest, digest="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()
