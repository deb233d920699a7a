"""Backup of both stores; `storage.backup.restore` restores it.

    jobs, views ─▶ hot store, at one moment ─▶ Postgres, at one moment ─▶ manifest ─▶ its name

The two moments differ, and their order decides the state of a restored deployment.

The hot store comes first. Postgres then has all that the store can refer to, and may have more: logs that the store lacks
are created at their first use; a shard that was closed in between is closed when it is next opened. The archive's manifest
may reach further than the store's records, never less far: nothing is trimmed in the copy that no file has (S3). Ceilings
are no lower than the offsets that the store assigned, and a restore raises them by 2^32: offsets that the lost deployment
assigned after its backup are not assigned again either (S1). The other way round, records that were archived and trimmed
between the two moments would be in neither; children of a shard would have records that Postgres has no row for.

Jobs and views come before the store. A replay's progress is in Postgres, and the records that it sent are in the store: where the
progress is too small, the target knows its records and adds none twice (R1); where it was too large, records would be
skipped silently. Rows of a view include the records before its positions: the store then has all of them, and the view
continues behind them (V3). Its sinks may have had changes of batches that are computed again: the messages of these have numbers of
their own, so a sink may get a change again and lacks none.

All that was acknowledged before the backup began is in it. Of what arrived while it was made, some is.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from storage.backup.archive_files import archive_root, copy_named, copy_staged, named_in
from storage.backup.tarball import SUFFIX, pack
from storage.domain.backup_manifest import (
    FOLDER_OF_SNAPSHOTS,
    FORMAT,
    FORMAT_OF_CLUSTER,
    MANIFEST,
    SNAPSHOT,
    BackupError,
    Manifest,
    Part,
    Table,
    encode_manifest,
    path_of_table,
)
from storage.domain.clock import Clock
from storage.domain.replication.member_urls import has_several_hosts
from storage.parquet.local_store import sync_folder
from storage.postgres.dump import DatabaseMoment, moment_of
from storage.redis.cluster_snapshot import cluster_snapshots
from storage.redis.discovery import backup_url
from storage.redis.restore import backed_store
from storage.redis.slot_map import SlotMap
from storage.redis.snapshot import snapshot_of
from storage.settings import StorageSettings

_PIECE = 1 << 20
_VIEWS = {
    *("views", "view_revisions", "view_rows", "view_row_versions"),
    *("view_batches", "view_sinks", "view_outbox"),
}
_BEFORE_STORE = frozenset({"jobs", "job_parts", "query_results", *_VIEWS})


def backup(
    settings: StorageSettings,
    target: Path,
    clock: Clock,
    version: str,
    *,
    with_archive: bool = False,
) -> Manifest:
    """Write a backup to `target`: a new directory, or one file if the name's suffix says so.

    Until it is complete it has another name. `with_archive`: the archive's files are in it too.

    Raises BackupError, ArchiveOff, StorageUnavailable.
    """
    began_at_ms = clock.now_ms()
    root = archive_root(settings) if with_archive else None
    with _named_at_the_end(target) as folder:
        parts: list[Part] = []
        part = partial(_part, folder, parts=parts)
        redis_url = backup_url(settings.redis_url)
        with backed_store(redis_url) as store:
            is_member = has_several_hosts(settings.redis_url)
            layout, server = store.layout(may_be_replica=is_member), store.server()
            slots = store.slots
        with moment_of(settings.database_url) as before:
            first = _copied(before, folder, parts, _is_before_store)
            namespaces = before.names("namespaces_before_store")
        parts += _snapshots(folder, redis_url, slots)
        staged = copy_staged(root, part) if root else set()
        with moment_of(settings.database_url) as after:
            if after.revision != before.revision or namespaces - after.names("every_namespace"):
                raise BackupError(
                    "the database was migrated or a namespace was removed during the "
                    "backup; try again"
                )
            others = _copied(after, folder, parts, lambda name: not _is_before_store(name))
            order = [name for name, _ in after.tables()]
            named = named_in(after) if root else set()
        if root:
            copy_named(root, named - staged, settings.database_url, part)
        tables = {table.name: table for table in (*first, *others)}
        manifest = Manifest(
            format=FORMAT if len(slots.primaries) == 1 else FORMAT_OF_CLUSTER,
            millstream=version,
            began_at_ms=began_at_ms,
            ended_at_ms=clock.now_ms(),
            revision=after.revision,
            layout=layout,
            server=server,
            tables=tuple(tables[name] for name in order),
            parts=tuple(parts),
        )
        _written(folder, MANIFEST, [encode_manifest(manifest)])
    return manifest


def _is_before_store(name: str) -> bool:
    return name in _BEFORE_STORE


def _copied(
    moment: DatabaseMoment, folder: Path, parts: list[Part], is_included: Callable[[str], bool]
) -> list[Table]:
    """Copy tables of a database snapshot; their files are added to `parts`."""
    tables = []
    for name, columns in moment.tables():
        if is_included(name):
            with _part(folder, path_of_table(name), parts=parts) as write:
                rows = moment.copy(name, columns, write)
            tables.append(Table(name, columns, rows))
    return tables


def _snapshots(folder: Path, redis_url: str, slots: SlotMap) -> list[Part]:
    """Copy the hot store: one server, or all primaries of a cluster at one moment."""
    count = len(slots.primaries)
    if count == 1:
        return [_written(folder, SNAPSHOT, snapshot_of(redis_url))]
    paths = [f"{FOLDER_OF_SNAPSHOTS}{number}.rdb" for number in range(count)]
    with ThreadPoolExecutor(count) as threads, cluster_snapshots(slots) as lines:
        return list(
            threads.map(lambda path, line: _written(folder, path, line.pieces()), paths, lines)
        )


@contextmanager
def _part(folder: Path, path: str, *, parts: list[Part]) -> Iterator[Callable[[bytes], None]]:
    """Open a new file of the backup, readable by its owner alone.

    It is on disk and in `parts` when the block ends.
    """
    place, digest, size = folder / path, hashlib.sha256(), 0
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(place, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:

        def write(piece: bytes) -> None:
            nonlocal size
            file.write(piece)
            digest.update(piece)
            size += len(piece)

        yield write
        file.flush()
        os.fsync(file.fileno())
    parts.append(Part(path, size, digest.hexdigest()))


def _written(folder: Path, path: str, pieces: Iterable[bytes]) -> Part:
    parts: list[Part] = []
    with _part(folder, path, parts=parts) as write:
        for piece in pieces:
            write(piece)
    return parts[0]


@contextmanager
def _named_at_the_end(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that gets its name, or becomes a file of it, on success.

    After a failure it is deleted.
    """
    target = target.absolute()
    if os.path.lexists(target):
        raise BackupError(f"{target} already exists: choose another name")
    folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        folder.mkdir(mode=0o700)
        yield folder
        if target.suffix == SUFFIX:
            whole = folder.with_name(f"{folder.name}{SUFFIX}")
            pack(folder, whole)
            whole.rename(target)
        else:
            for directory in (*(place for place in folder.rglob("*") if place.is_dir()), folder):
                sync_folder(directory)
            folder.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise BackupError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_name(f"{folder.name}{SUFFIX}").unlink(missing_ok=True)
