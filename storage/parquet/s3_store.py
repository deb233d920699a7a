"""The archive in an object store that speaks S3."""

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import IO, Any

from pyarrow import fs

from storage.domain.errors import ArchiveDamaged, StorageUnavailable
from storage.parquet.store_errors import StoredFile, translated, whole

_CONNECT_S = 5
_REPLY_S = 30
_COPY_BYTES = 8 * 1024 * 1024
_NS_PER_MS = 1_000_000


class S3Root:
    """A `storage.parquet.object_store.Root` in a bucket, below a prefix."""

    def __init__(self, place: str, **options: Any) -> None:
        self._place = place
        self._options = options

    @cached_property
    def _store(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            **self._options, connect_timeout=_CONNECT_S, request_timeout=_REPLY_S
        )

    def _key(self, path: str) -> str:
        return f"{self._place}/{path}"

    @contextmanager
    def writing(self, path: str) -> Generator[IO[bytes]]:
        """To a local file first, so that nothing is sent of a file that is never finished."""
        with translated(path), tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            self._put(path, file)

    def _put(self, path: str, file: IO[bytes]) -> None:
        try:
            with self._store.open_output_stream(self._key(path)) as stream:
                shutil.copyfileobj(file, stream, _COPY_BYTES)
        except OSError:
            with suppress(OSError):  # nobody knows its name: whoever collects orphans removes it
                self._store.delete_file(self._key(path))
            raise

    def read(self, path: str, start: int, size: int) -> bytes:
        """As `Root.read`."""
        try:
            with translated(path), self._store.open_input_file(self._key(path)) as file:
                if file.size() < start + size:
                    return whole(b"", size, path)
                data: bytes = file.read_at(size, start)
                return whole(data, size, path)
        except ArchiveDamaged:
            self._check_bucket()
            raise

    def _check_bucket(self) -> None:
        """A bucket that is not there has lost no file."""
        bucket = self._place.split("/", 1)[0]
        with translated(bucket):
            if self._store.get_file_info(bucket).type is fs.FileType.NotFound:
                raise StorageUnavailable("The archive's bucket is not there.")

    def size(self, path: str) -> int | None:
        """As `Root.size`."""
        with translated(path):
            found = self._store.get_file_info(self._key(path))
        size: int | None = found.size
        return size

    def delete(self, path: str) -> None:
        """As `Root.delete`."""
        with translated(path), suppress(FileNotFoundError):
            self._store.delete_file(self._key(path))

    def files(self, folder: str) -> Iterator[StoredFile]:
        """As `Root.files`."""
        selector = fs.FileSelector(
            self._key(folder).rstrip("/"), allow_not_found=True, recursive=True
        )
        with translated(folder):
            found = self._store.get_file_info(selector)
        skipped = len(self._place) + 1
        for one in found:
            if one.type is fs.FileType.File:
                yield StoredFile(one.path[skipped:], one.size, one.mtime_ns // _NS_PER_MS)
