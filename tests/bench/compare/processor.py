"""Processor time of all processes that this one started."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.rows_deployment import descendants

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_OWN_AND_WAITED_FOR = slice(11, 15)  # utime, stime, cutime, cstime after the name in /proc/*/stat


@dataclass(slots=True)
class ProcessorTime:
    """Seconds, known when the block has ended."""

    seconds: float = 0.0


@contextmanager
def processor_time() -> Generator[ProcessorTime]:
    """Measure the processor time of our descendants, ended ones included, but not of ourselves."""
    spent, before_s = ProcessorTime(), _descendants_s()
    yield spent
    spent.seconds = _descendants_s() - before_s


def _descendants_s() -> float:
    own = os.times()
    return (
        own.children_user
        + own.children_system
        + sum(_process_s(pid) for pid in descendants(os.getpid()) if pid != os.getpid())
    )


def _process_s(pid: int) -> float:
    """The time of a process and of those that it has waited for; 0 if it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[_OWN_AND_WAITED_FOR])) / _TICKS_PER_S
