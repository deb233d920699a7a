"""Memory and processors of the machine, or the limits of our container or service."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

ROOT = Path("/")


def granted_bytes(root: Path = ROOT) -> int:
    """Return the machine's memory, or the lowest limit of this process's control groups.

    The lower value counts. https://docs.kernel.org/admin-guide/cgroup-v2.html has `memory.max`, in bytes or "max". Version 1
    has `memory.limit_in_bytes`, where no limit is a number larger than any machine's.
    """
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([whole, *_memory_limits(root)])


def granted_cores(root: Path = ROOT) -> int:
    """Return the processors that we may use, or the lowest quota of our control groups.

    It is at least 1, and a quota of one and a half counts as one. Version 2 has `cpu.max`, a quota or "max" and a period in microseconds;
    version 1 has them in two files, where no quota is -1.
    """
    return max(1, int(min([_affinity(), *_processor_quotas(root)])))


def _affinity() -> int:
    """Return the processors that we may be scheduled on; all, where that is not known."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_limits(root: Path) -> Iterator[int]:
    """Yield the limits of each group from the process's own up to the topmost visible one."""
    for folder, is_unified in _groups(root, "memory"):
        name = "memory.max" if is_unified else "memory.limit_in_bytes"
        with suppress(OSError, ValueError):
            yield int((folder / name).read_text())


def _processor_quotas(root: Path) -> Iterator[float]:
    """Yield the quotas in the same order, in processors."""
    for folder, is_unified in _groups(root, "cpu"):
        with suppress(OSError, ValueError):
            if is_unified:
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                quota, period = ((folder / name).read_text() for name in names)
            if int(quota) > 0:
                yield int(quota) / int(period)


def _groups(root: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield our control groups of a controller, and whether they are of version 2.

    Folders that a container cannot see are included: it sees its own group as the topmost instead.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        mount, is_unified = root / "sys/fs/cgroup", True
        if controllers:
            if controller not in controllers.split(","):
                continue
            mount, is_unified = mount / controller, False
        own = PurePosixPath(path.lstrip("/"))
        yield from ((mount / folder, is_unified) for folder in (own, *own.parents))
