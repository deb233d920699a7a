"""What the places that an archive can be in have in common."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from storage.domain.errors import ArchiveDamaged, StorageFull, StorageUnavailable

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StoredFile(msgspec.Struct, frozen=True):
    """A file that is there, and when it was last written to."""

    path: str
    bytes: int
    changed_at_ms: int


class Sink(Protocol):
    """What a file's bytes are written to."""

    def write(self, data: bytes, /) -> int: ...


@contextmanager
def translated(path: str) -> Generator[None]:
    """Turns what the operating system or an object store's client raises into ours."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(path) from error
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull("The archive has no room left.") from error
        raise StorageUnavailable("The archive cannot be reached, or refuses.") from error


def missing(path: str) -> ArchiveDamaged:
    """A file that the manifest names is not there."""
    return ArchiveDamaged("A file of the archive is missing.", path=path)


def whole(data: bytes, size: int, path: str) -> bytes:
    """What was read, if it is as much as was asked for. Raises ArchiveDamaged."""
    if len(data) != size:
        raise ArchiveDamaged("A file of the archive is shorter than it was.", path=path)
    return data
