"""Memory available to this process: the machine's, or a limit of its container or service."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath


def granted_bytes(root: Path = Path("/")) -> int:
    """Return the machine's memory, or the lowest limit of this process's control groups.

    The lower value counts. https://docs.kernel.org/admin-guide/cgroup-v2.html has `memory.max`, in bytes or "max". Version 1
    has `memory.limit_in_bytes`, where no limit is a number larger than any machine's.
    """
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([whole, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Yield the limits of each group from the process's own up to the topmost visible one."""
    for folder, name in _groups(root):
        with suppress(OSError, ValueError):
            yield int((folder / name).read_text())


def _groups(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield folders of control groups, and the name of the limit's file in them.

    Folders that a container cannot see are included: it sees its own group as the topmost instead.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        mount, name = root / "sys/fs/cgroup", "memory.max"
        if controllers:
            mount, name = mount / "memory", "memory.limit_in_bytes"
            if "memory" not in controllers.split(","):
                continue
        own = PurePosixPath(path.lstrip("/"))
        yield from ((mount / folder, name) for folder in (own, *own.parents))
