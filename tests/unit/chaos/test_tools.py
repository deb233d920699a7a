"""Fault injection tools of the chaos runs."""

import errno
import os
from pathlib import Path

import pytest

from tests.chaos.tools import SmallDisk

SIZE = 1_000


@pytest.fixture
def writes(tmp_path, monkeypatch) -> list[int]:
    """Sizes that another process writes to a disk of SIZE bytes, each after a statvfs."""
    todo: list[int] = []
    theirs = 0

    class Told:
        f_frsize = 1

        def __init__(self, free: int) -> None:
            self.f_bavail = free

    def free() -> int:
        used: int = (tmp_path / "ballast").stat().st_size
        return SIZE - theirs - used

    def statvfs(_: Path) -> Told:
        nonlocal theirs
        told = Told(free())
        theirs += todo.pop(0) if todo else 0
        return told

    def allocate(handle: int, offset: int, size: int) -> None:
        if size > free():
            raise OSError(errno.ENOSPC, "No space left on device")
        os.truncate(handle, offset + size)

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    return todo


def test_disk_is_filled_during_concurrent_writes(tmp_path, writes):
    """A store wrote between two calls, and the run ended with an error of its own."""
    writes += [100, 10]

    SmallDisk(tmp_path).fill()

    assert (tmp_path / "ballast").stat().st_size == SIZE - 110
