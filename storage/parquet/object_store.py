"""Where the archive is kept: a directory of this machine, or a place in an object store.

    file:///var/lib/millstream/archive
    s3://bucket/prefix        key pair, region and endpoint come from the environment, as AWS tools find them; or
                              s3://key:secret@bucket/prefix?region=…&endpoint_override=host:port&scheme=http

A file is written once, whole, under a name that nothing had before. Paths are relative to the root, with `/`.

    a file is gone, or shorter than it was      ArchiveDamaged
    there is no room                            StorageFull
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
    """The place that holds all files of the archive. Its verbs block: call them in a thread."""

    def writing(self, path: str) -> AbstractContextManager[Sink]:
        """What is written in this block is there when the block ends, whole and on disk; if it raises, nothing is."""
        ...

    def read(self, path: str, start: int, size: int) -> bytes:
        """The bytes [start, start + size) of a file."""
        ...

    def size(self, path: str) -> int | None:
        """How many bytes a file has; None when it is not there."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...

    def files(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder, in any order, also what a write left that broke off."""
        ...


def open_root(url: str) -> Root:
    """The archive at a URL; nothing is looked at yet. Raises ValueError for a URL of another form."""
    check_archive_url(url)
    split = urlsplit(url)
    path = unquote(split.path)
    if split.scheme == "file":
        return LocalRoot(path)
    from storage.parquet.s3_store import S3Root  # pyarrow, which a directory does not need

    return S3Root(f"{split.hostname}{path}".rstrip("/"), **_s3_options(url))


def _s3_options(url: str) -> dict[str, Any]:
    split = urlsplit(url)
    options: dict[str, Any] = dict(parse_qsl(split.query))
    if split.username:
        options["access_key"] = unquote(split.username)
        options["secret_key"] = unquote(split.password or "")
    return options
