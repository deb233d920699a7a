"""Folders of the servers that a run shares."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

MEMORY = Path("/dev/shm")
FREE_BYTES_MIN = 4 << 30


@contextmanager
def quick_folder(name: str) -> Iterator[Path]:
    """A temporary folder, in memory if there is space, so that fsync is free.

    A killed and restarted server finds its data there as on a disk.
    """
    with TemporaryDirectory(prefix=f"millstream-{name}-", dir=_in_memory()) as folder:
        yield Path(folder)


def _in_memory() -> Path | None:
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < FREE_BYTES_MIN:
        return None
    return MEMORY
