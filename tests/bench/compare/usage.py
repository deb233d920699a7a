"""Processor time and memory of the processes of a contender, without its clients."""

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread

from tests.bench.rows_archive import cpu_seconds
from tests.bench.rows_deployment import descendants, resident_mb

SAMPLE_S = 0.5


@dataclass(slots=True)
class Usage:
    """Seconds and megabytes; the seconds are known when the block has ended."""

    processor_s: float = 0.0
    peak_mb: float = 0.0


@contextmanager
def usage(clients: Collection[int]) -> Generator[Usage]:
    """Measure our children and theirs, except these clients, while the block runs.

    Memory is the proportional set size, which counts shared pages once; the peak is the highest sum of all processes at one time.
    """
    used, before_s, end = Usage(), _processor_s(clients), Event()
    sampler = Thread(target=_sample, args=(used, clients, end), daemon=True)
    sampler.start()
    try:
        yield used
    finally:
        used.processor_s = _processor_s(clients) - before_s
        end.set()
        sampler.join()


def _sample(used: Usage, clients: Collection[int], end: Event) -> None:
    while True:
        used.peak_mb = max(used.peak_mb, sum(map(_memory_mb, _processes(clients))))
        if end.wait(SAMPLE_S):
            return


def _processor_s(clients: Collection[int]) -> float:
    return sum(map(cpu_seconds, _children(clients)))


def _processes(clients: Collection[int]) -> list[int]:
    return [pid for child in _children(clients) for pid in descendants(child)]


def _children(clients: Collection[int]) -> list[int]:
    own, pids = os.getpid(), []
    for thread in os.listdir(f"/proc/{own}/task"):
        with suppress(OSError), open(f"/proc/{own}/task/{thread}/children") as children:
            pids += [int(pid) for pid in children.read().split()]
    return [pid for pid in pids if pid not in clients]


def _memory_mb(pid: int) -> float:
    with suppress(OSError):
        return resident_mb(pid)
    return 0.0
