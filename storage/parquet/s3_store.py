"""Archive in an S3-compatible object store."""

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

    def __init__(self, prefix: str, **options: Any) -> None:
        self._prefix = prefix
        self._options = options

    @cached_property
    def _store(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            **self._options, connect_timeout=_CONNECT_S, request_timeout=_REPLY_S
        )

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}"

    @contextmanager
    def writing(self, path: str) -> Generator[IO[bytes]]:
        """Write to a local file first, so that nothing is sent of a file that is never finished."""
        with translated(path), tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            self._put(path, file)

    def _put(self, path: str, file: IO[bytes]) -> None:
        try:
            with self._store.open_output_stream(self._key(path)) as stream:
                shutil.copyfileobj(file, stream, _COPY_BYTES)
        except OSError:
            with suppress(OSError):  # it is not referenced: the collection of orphans removes it
                self._store.delete_file(self._key(path))
            raise

    def read(self, path: str, start: int, size: int) -> bytes:
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
        """Raise StorageUnavailable unless the bucket exists.

        A file is not missing merely because the bucket does not exist.
        """
        bucket = self._prefix.split("/", 1)[0]
        with translated(bucket):
            if self._store.get_file_info(bucket).type is fs.FileType.NotFound:
                raise StorageUnavailable("The archive bucket does not exist.")

    def size(self, path: str) -> int | None:
        with translated(path):
            info = self._store.get_file_info(self._key(path))
        size: int | None = info.size
        return size

    def delete(self, path: str) -> None:
        with translated(path), suppress(FileNotFoundError):
            self._store.delete_file(self._key(path))

    def files(self, folder: str) -> Iterator[StoredFile]:
        selector = fs.FileSelector(
            self._key(folder).rstrip("/"), allow_not_found=True, recursive=True
        )
        with translated(folder):
            infos = self._store.get_file_info(selector)
        skipped = len(self._prefix) + 1
        for info in infos:
            if info.type is fs.FileType.File:
                yield StoredFile(info.path[skipped:], info.size, info.mtime_ns // _NS_PER_MS)
