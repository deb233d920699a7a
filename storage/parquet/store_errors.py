"""Common types and errors of the archive's object stores."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from storage.domain.errors import ArchiveDamaged, StorageFull, StorageUnavailable

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StoredFile(msgspec.Struct, frozen=True):
    """An existing file, and the time of its last write."""

    path: str
    bytes: int
    changed_at_ms: int


class Sink(Protocol):
    """Destination of a file's bytes."""

    def write(self, data: bytes, /) -> int: ...


@contextmanager
def translated(path: str) -> Generator[None]:
    """Convert errors of the operating system or an object store's client to ours."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(path) from error
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull("The archive is out of space.") from error
        raise StorageUnavailable("The archive is unreachable or rejected the request.") from error


def missing(path: str) -> ArchiveDamaged:
    """Return the error for a file that the manifest references and that does not exist."""
    return ArchiveDamaged("An archive file is missing.", path=path)


def whole(data: bytes, size: int, path: str) -> bytes:
    """Return the data if it has the requested size. Raises ArchiveDamaged."""
    if len(data) != size:
        raise ArchiveDamaged("An archive file is truncated.", path=path)
    return data
