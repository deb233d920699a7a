"""Archive in a directory: acknowledged files survive a power failure."""

import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

from storage.domain.errors import StorageUnavailable
from storage.parquet.store_errors import StoredFile, missing, translated, whole

_TRIES = 5  # attempts to create a folder while another process removes it because it is empty
_NS_PER_MS = 1_000_000


class LocalRoot:
    """A `storage.parquet.object_store.Root` in a directory, which the first write creates."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    @contextmanager
    def writing(self, path: str) -> Generator[BufferedWriter]:
        """Write to a temporary file next to the target, sync it, rename it, and sync the name."""
        target = self._folder / path
        begun = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        with translated(path):
            file = _made(begun)
            try:
                with file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                begun.replace(target)
            except BaseException:
                with suppress(OSError):
                    begun.unlink(missing_ok=True)
                raise
            self._put_on_disk(target.parent)

    def _put_on_disk(self, folder: Path) -> None:
        """Sync a folder and all its parents up to the root's, whichever process created them."""
        for directory in (folder, *folder.parents):
            sync_folder(directory)
            if directory == self._folder.parent:
                return

    def read(self, path: str, start: int, size: int) -> bytes:
        with self._mounted(path), translated(path):
            file = os.open(self._folder / path, os.O_RDONLY)
            try:
                return whole(_read(file, start, size), size, path)
            finally:
                os.close(file)

    @contextmanager
    def _mounted(self, path: str) -> Generator[None]:
        """Raise StorageUnavailable unless the directory exists.

        A file is not missing merely because the directory is not mounted.
        """
        if not self._folder.is_dir():
            raise StorageUnavailable("The archive directory does not exist.")
        yield

    def size(self, path: str) -> int | None:
        with self._mounted(path), translated(path):
            try:
                return (self._folder / path).stat().st_size
            except FileNotFoundError:
                return None

    def delete(self, path: str) -> None:
        """Remove a file, and the folders that it leaves empty."""
        target = self._folder / path
        with translated(path):
            target.unlink(missing_ok=True)
        for folder in target.parents:
            if folder == self._folder:
                return
            try:
                folder.rmdir()
            except OSError:
                return

    def files(self, folder: str) -> Iterator[StoredFile]:
        for within, _, names in os.walk(self._folder / folder):
            for name in names:
                file = Path(within, name)
                with suppress(FileNotFoundError):  # deleted in the meantime
                    status = file.stat()
                    path = file.relative_to(self._folder).as_posix()
                    yield StoredFile(path, status.st_size, status.st_mtime_ns // _NS_PER_MS)


def _made(target: Path) -> BufferedWriter:
    for _ in range(_TRIES):
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return target.open("xb")
    raise missing(target.name)


def _read(file: int, start: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.pread(file, size, start)
        if not part:
            break
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def sync_folder(folder: Path) -> None:
    """Put the entries of a folder on disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
