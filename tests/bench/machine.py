"""The environment of a measurement."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from storage.embedded.binaries import find_allocator, find_valkey

FSYNCS = 100


def facts(data: Path) -> dict[str, Any]:
    """The machine, its load, the file system of `data`, and all versions involved."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "load_average_at_start": round(os.getloadavg()[0], 2),
        "file_system": file_system(data),
        "fsync_microseconds": round(fsync_s(data) * 1e6),
        "python": f"{platform.python_version()} of {sys.base_prefix}",  # the build matters
        "valkey": _first_line([str(find_valkey("bundled")), "--version"]),
        "allocator": str(find_allocator() or "the C library's"),
        "wrk": _first_line(["wrk", "--version"]),
        "redis_benchmark": _first_line(["redis-benchmark", "--version"]),
        "versions": {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "msgspec")},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: list[str]) -> str:
    stdout = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
    return stdout.splitlines()[0].strip() if stdout else "unknown"


def file_system(path: Path) -> str:
    """The file system type of a path, or 'unknown'."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, found, *_ = line.split()
        if path.is_relative_to(where) and len(where) > len(best):
            best, kind = where, found
    return kind


def fsync_s(directory: Path) -> float:
    """The median time of a small synchronous write."""
    path = directory / "fsync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            started = perf_counter()
            file.write(b"x" * 300)
            os.fdatasync(file.fileno())
            times.append(perf_counter() - started)
    path.unlink()
    return median(times)
