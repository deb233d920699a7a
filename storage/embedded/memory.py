"""How much memory there is for this process: the machine's, or what a container or a service manager grants of it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath


def granted_bytes(root: Path = Path("/")) -> int:
    """The machine's memory, or the least limit of the control groups that this process is in, if that is less.

    https://docs.kernel.org/admin-guide/cgroup-v2.html has `memory.max`, in bytes or "max". Version 1 has
    `memory.limit_in_bytes`, where no limit is a number larger than any machine's.
    """
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([whole, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Those of each group from the process's own up to the topmost that can be seen."""
    for folder, name in _groups(root):
        with suppress(OSError, ValueError):
            yield int((folder / name).read_text())


def _groups(root: Path) -> Iterator[tuple[Path, str]]:
    """Folders of control groups, and the name of the limit's file in them. Those that a container cannot see are named, too:
    it sees its own in their place, as the topmost."""
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
