"""Restore of a backup into empty stores.

    digests ─▶ both stores empty? ─▶ mark ─▶ Postgres, one transaction ─▶ hot store ─▶ unmark

`storage.backup.backup` has the order of a backup's parts and the state of a restored deployment.
"""

import hashlib
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from storage.backup.archive_files import archive_root, put_back
from storage.domain.backup_manifest import (
    MANIFEST,
    BackupError,
    Manifest,
    Table,
    decode_manifest,
)
from storage.domain.replication.member_urls import has_several_hosts
from storage.embedded.binaries import ServerChoice
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.servers import running
from storage.embedded.valkey import SnapshotServer
from storage.postgres import dump
from storage.redis.keys import LAYOUT
from storage.redis.restore import SnapshotStore, backed_store
from storage.settings import StorageSettings


def read_backup(source: Path) -> Manifest:
    """Read a backup's manifest, without checking its parts.

    Raises BackupError.
    """
    try:
        text = (source / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise BackupError(
            f"{source} is not a complete backup: {MANIFEST}, which is written last, is missing"
        ) from None
    except OSError as error:
        raise BackupError(f"cannot read {source}: {error.strerror}") from None
    return decode_manifest(text)


def check_parts(source: Path, manifest: Manifest) -> None:
    """Read every file of a backup whole, and check its digest.

    Raises BackupError for the first that is not as it was written.
    """
    for part in manifest.parts:
        try:
            with (source / part.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BackupError(f"{part.path} is missing: {error.strerror}") from None
        if digest != part.sha256:
            raise BackupError(f"{part.path} is corrupt: its checksum does not match")


def restore(settings: StorageSettings, source: Path, server: ServerChoice) -> Manifest:
    """Restore a backup into two empty stores, and its archive files where the settings say.

    `server`: the program that reads the store's snapshot.

    Until the restore is complete, both stores are marked as being restored, and no service starts on them. Raises BackupError,
    StoreInUse, StorageUnavailable, DatabaseTooNew; if nothing was restored yet, the stores are as they were.
    """
    if has_several_hosts(settings.redis_url):
        raise BackupError(
            "a backup is restored into one store: name only the first one in redis_url; the others are filled from it"
            " when the service starts with all of them"
        )
    manifest = read_backup(source)
    if manifest.layout != LAYOUT:
        raise BackupError(
            f"the backup has store layout {manifest.layout}, but this version of Millstream supports {LAYOUT}: use a matching version"
        )
    check_parts(source, manifest)
    root = archive_root(settings) if manifest.archived else None
    with (
        closing(_snapshots(source, manifest, server)) as snapshots,
        backed_store(settings.redis_url) as store,
    ):
        first = next(snapshots)  # readable, before anything is written
        dump.check_empty(settings.database_url)
        if root:  # files that no row names yet are garbage if this is interrupted
            put_back(root, source, manifest.parts)
        store.take()
        try:
            dump.fill(settings.database_url, manifest.revision, manifest.tables, _reader_of(source))
        except BaseException:
            store.leave()
            raise
        for snapshot in chain([first], snapshots):
            store.fill(snapshot)
        dump.finish(settings.database_url)
        store.finish(manifest.layout)
    return manifest


def _snapshots(source: Path, manifest: Manifest, server: ServerChoice) -> Generator[SnapshotStore]:
    """Yield each snapshot of the backup, served by a private server until the next is wanted."""
    for path in manifest.snapshots:
        with _snapshot_server(source / path, server) as url, backed_store(url) as snapshot:
            yield snapshot


@contextmanager
def _snapshot_server(snapshot: Path, server: ServerChoice) -> Iterator[str]:
    """Run a private server with a snapshot loaded; yield its URL."""
    with tempfile.TemporaryDirectory(prefix="millstream-", ignore_cleanup_errors=True) as scratch:
        reader = SnapshotServer(Path(scratch), snapshot, server=server)
        try:
            with running(reader) as url:
                yield url
        except EmbeddedServerError as error:
            raise BackupError(
                f"cannot read {snapshot.name} with this server ({error}); use --server path to use the server on PATH"
            ) from None


def _reader_of(source: Path) -> Callable[[Table], BinaryIO]:
    def open_table(table: Table) -> BinaryIO:
        return (source / table.path).open("rb")

    return open_table
