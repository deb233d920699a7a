"""Object stores of the archive: a directory of this machine, or a bucket.

    file:///var/lib/millstream/archive
    s3://bucket/prefix        access key pair, region and endpoint are taken from the environment, as AWS tools do; or
                              s3://key:secret@bucket/prefix?region=…&endpoint_override=host:port&scheme=http

A file is written once, complete, under a name that was never used before. Paths are relative to the root, with `/`.

    a file is gone, or shorter than it was      ArchiveDamaged
    no space is left                            StorageFull
    the store or directory cannot be reached    StorageUnavailable
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from storage.parquet.local_store import LocalRoot
from storage.parquet.store_errors import Sink, StoredFile
from storage.settings import check_archive_url


class Root(Protocol):
    """Object store with all files of the archive. Its methods block: call them in a thread."""

    def writing(self, path: str) -> AbstractContextManager[Sink]:
        """Open a sink whose file exists when the block ends, complete and on disk.

        If the block raises, no file exists.
        """
        ...

    def read(self, path: str, start: int, size: int) -> bytes:
        """Return the bytes [start, start + size) of a file."""
        ...

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes; None when it does not exist."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file, if it exists."""
        ...

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Yield all files below a folder, in any order, including remains of interrupted writes."""
        ...


def open_root(url: str) -> Root:
    """Open the archive at a URL without accessing it yet.

    Raises ValueError for a URL of another form.
    """
    check_archive_url(url)
    split = urlsplit(url)
    path = unquote(split.path)
    if split.scheme == "file":
        return LocalRoot(path)
    from storage.parquet.s3_store import S3Root  # loads pyarrow, which a directory does not need

    return S3Root(f"{split.hostname}{path}".rstrip("/"), **_s3_options(url))


def _s3_options(url: str) -> dict[str, Any]:
    split = urlsplit(url)
    options: dict[str, Any] = dict(parse_qsl(split.query))
    if split.username:
        options["access_key"] = unquote(split.username)
        options["secret_key"] = unquote(split.password or "")
    return options
