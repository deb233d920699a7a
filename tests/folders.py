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
    """A temporary folder, in memory where there is room: servers that write each answer to disk first then wait for none.

    What is killed and started again finds its data there as it would on a disk.
    """
    with TemporaryDirectory(prefix=f"millstream-{name}-", dir=_in_memory()) as folder:
        yield Path(folder)


def _in_memory() -> Path | None:
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < FREE_BYTES_MIN:
        return None
    return MEMORY
