"""Backup: its files, and the manifest that makes it complete.

    BACKUP/store.rdb               the hot store at one moment; of a cluster, format 2 has one file for each primary:
    BACKUP/store/<number>.rdb      all primaries at one moment
    BACKUP/postgres/<table>.copy   each table of Postgres, as COPY writes it
    BACKUP/archive/<path>          the archive's files, if they were requested
    BACKUP/manifest.json           a `Manifest`; written last, so that an incomplete backup has none

It contains hashes of keys and encrypted secrets. The keys that decrypt these (`storage.access.secret_box`) are not
in it.
"""

import hashlib

import msgspec

from storage.domain.errors import StorageUnavailable

FORMAT = 1
FORMAT_OF_CLUSTER = 2
MANIFEST = "manifest.json"
SNAPSHOT = "store.rdb"
FOLDER_OF_SNAPSHOTS = "store/"
FOLDER_OF_TABLES = "postgres"
FOLDER_OF_ARCHIVE = "archive/"
RESTORING = "restoring"
"""Identity of a store into which a backup is being restored: version key or `replid`."""


class BackupError(Exception):
    """Failure of a backup or a restore.

    The message is one line for the person at the terminal.
    """


class StoreInUse(BackupError):
    """Refusal to restore into a store that is not empty."""


class RestoreUnfinished(StorageUnavailable):
    """A restore into these stores is in progress or was interrupted: empty both, then retry."""


class Table(msgspec.Struct, frozen=True):
    """A table of Postgres: its columns in the order in which they were copied."""

    name: str
    columns: tuple[str, ...]
    rows: int

    @property
    def path(self) -> str:
        """Path in the backup."""
        return path_of_table(self.name)


class Part(msgspec.Struct, frozen=True):
    """A file of the backup, by its path in it."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """Manifest of a backup.

    `tables` are in an order in which they can be filled. `revision` is the schema's, `layout` the hot store's, `server`
    the hot store's server. Everything acknowledged before `began_at_ms` is included. `digest` covers everything else
    here.
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
    def snapshots(self) -> tuple[str, ...]:
        """Paths of the snapshots of the hot store, one for each of its primaries."""
        paths = [part.path for part in self.parts]
        return tuple(
            sorted(
                path for path in paths if path == SNAPSHOT or path.startswith(FOLDER_OF_SNAPSHOTS)
            )
        )

    @property
    def bytes(self) -> int:
        """Total size of its files."""
        return sum(part.bytes for part in self.parts)

    @property
    def archived(self) -> int:
        """Number of archive files in it."""
        return sum(part.path.startswith(FOLDER_OF_ARCHIVE) for part in self.parts)


class _Format(msgspec.Struct):
    """Fields common to the manifests of every format."""

    format: int


def path_of_table(name: str) -> str:
    """Return a table's path in a backup."""
    return f"{FOLDER_OF_TABLES}/{name}.copy"


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode the manifest with its digest."""
    sealed = msgspec.structs.replace(manifest, digest=_digest(manifest))
    return msgspec.json.format(msgspec.json.encode(sealed), indent=1) + b"\n"


def decode_manifest(text: bytes) -> Manifest:
    """Decode the manifest.

    Raises BackupError for one of another format, and for one that was altered.
    """
    try:
        format_ = msgspec.json.decode(text, type=_Format).format
        if format_ not in (FORMAT, FORMAT_OF_CLUSTER):
            raise BackupError(
                f"the backup has format {format_}, but this version of Millstream supports {FORMAT} and {FORMAT_OF_CLUSTER}: use the version that wrote it"
            )
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupError(f"{MANIFEST} is corrupt: {error}") from None
    if manifest.digest != _digest(manifest):
        raise BackupError(f"{MANIFEST} is corrupt: its checksum does not match")
    return manifest


def _digest(manifest: Manifest) -> str:
    bare = msgspec.structs.replace(manifest, digest="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()
