"""Copies of archive files into a backup, and back.

A file is written once and never changed, so it may be copied at any time after the snapshot in which Postgres named it. It
may have been deleted by then: files that retention has removed since are left out, and a restored deployment, in which
they are as old, removes their rows. Staged files are deleted when their batch is appended, so all of them are copied before
that snapshot, and afterwards those that are named and did not exist yet.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from storage.domain.backup_manifest import FOLDER_OF_ARCHIVE, BackupError, Part
from storage.domain.errors import ArchiveDamaged, ArchiveOff
from storage.parquet.object_store import Root, open_root
from storage.parquet.paths import STAGED_FOLDER
from storage.postgres.dump import DatabaseMoment, moment_of
from storage.settings import StorageSettings

_PIECE = 8 << 20

PartWriter = Callable[[str], AbstractContextManager[Callable[[bytes], None]]]
"""Opens a new file of the backup, by its path in it."""


def archive_root(settings: StorageSettings) -> Root:
    """Open the archive that the settings name. Raises ArchiveOff."""
    if settings.archive_url is None:
        raise ArchiveOff
    return open_root(settings.archive_url)


def copy_staged(root: Root, part: PartWriter) -> set[str]:
    """Copy all files that are staged now; return their paths."""
    paths = {file.path for file in root.files(STAGED_FOLDER)}
    return {path for path in paths if _copied(root, path, part)}


def named_in(moment: DatabaseMoment) -> set[str]:
    """Return the paths named in a database snapshot: archive files and open batches' files."""
    return moment.names("paths_of_the_archive") | moment.names("paths_put_aside")


def copy_named(root: Root, paths: Iterable[str], database_url: str, part: PartWriter) -> None:
    """Copy these files.

    Raises BackupError for one that is missing and still named.
    """
    missing = {path for path in sorted(paths) if not _copied(root, path, part)}
    if missing:
        with moment_of(database_url) as now:
            missing &= named_in(now)
    if missing:
        raise BackupError(
            f"{min(missing)} is missing from the archive or truncated; run `millstream archive verify`"
        )


def put_back(root: Root, source: Path, parts: Iterable[Part]) -> None:
    """Write a backup's archive files to their old paths, below another root."""
    for part in parts:
        if part.path.startswith(FOLDER_OF_ARCHIVE):
            with (
                (source / part.path).open("rb") as file,
                root.writing(part.path.removeprefix(FOLDER_OF_ARCHIVE)) as sink,
            ):
                while piece := file.read(_PIECE):
                    sink.write(piece)


def _copied(root: Root, path: str, part: PartWriter) -> bool:
    """Copy a whole file; return whether it existed."""
    size = root.size(path)
    if size is None:
        return False
    try:
        pieces = _pieces(root, path, size)
        first = next(pieces, b"")  # before a file is created for it
        with part(FOLDER_OF_ARCHIVE + path) as write:
            write(first)
            for piece in pieces:
                write(piece)
    except ArchiveDamaged:
        return False
    return True


def _pieces(root: Root, path: str, size: int) -> Iterator[bytes]:
    for start in range(0, size, _PIECE):
        yield root.read(path, start, min(_PIECE, size - start))
