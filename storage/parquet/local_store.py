"""The archive in a directory: what was acknowledged survives a power cut."""

import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

from storage.domain.errors import StorageUnavailable
from storage.parquet.store_errors import StoredFile, missing, translated, whole

_TRIES = 5  # to make a folder that another process removes because it is empty
_NS_PER_MS = 1_000_000


class LocalRoot:
    """A `storage.parquet.object_store.Root` in a directory, which the first write makes."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    @contextmanager
    def writing(self, path: str) -> Generator[BufferedWriter]:
        """To a file beside it first; the name is given once the bytes are on disk, and then put on disk too."""
        place = self._folder / path
        begun = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        with translated(path):
            file = _made(begun)
            try:
                with file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                begun.replace(place)
            except BaseException:
                with suppress(OSError):
                    begun.unlink(missing_ok=True)
                raise
            self._put_on_disk(place.parent)

    def _put_on_disk(self, folder: Path) -> None:
        """The names of a folder and of all that lead to it, whichever process made them."""
        for one in (folder, *folder.parents):
            _sync(one)
            if one == self._folder.parent:
                return

    def read(self, path: str, start: int, size: int) -> bytes:
        """As `Root.read`."""
        with self._known(path), translated(path):
            file = os.open(self._folder / path, os.O_RDONLY)
            try:
                return whole(_read(file, start, size), size, path)
            finally:
                os.close(file)

    @contextmanager
    def _known(self, path: str) -> Generator[None]:
        """A directory that is not mounted has lost no file."""
        if not self._folder.is_dir():
            raise StorageUnavailable("The archive's directory is not there.")
        yield

    def size(self, path: str) -> int | None:
        """As `Root.size`."""
        with self._known(path), translated(path):
            try:
                return (self._folder / path).stat().st_size
            except FileNotFoundError:
                return None

    def delete(self, path: str) -> None:
        """As `Root.delete`; folders that it leaves empty go too."""
        place = self._folder / path
        with translated(path):
            place.unlink(missing_ok=True)
        for folder in place.parents:
            if folder == self._folder:
                return
            try:
                folder.rmdir()
            except OSError:
                return

    def files(self, folder: str) -> Iterator[StoredFile]:
        """As `Root.files`."""
        for within, _, names in os.walk(self._folder / folder):
            for name in names:
                place = Path(within, name)
                with suppress(FileNotFoundError):  # deleted meanwhile
                    found = place.stat()
                    path = place.relative_to(self._folder).as_posix()
                    yield StoredFile(path, found.st_size, found.st_mtime_ns // _NS_PER_MS)


def _made(place: Path) -> BufferedWriter:
    for _ in range(_TRIES):
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return place.open("xb")
    raise missing(place.name)


def _read(file: int, start: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.pread(file, size, start)
        if not part:
            break
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
