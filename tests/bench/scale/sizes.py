"""The sizes of a run: short, about ten minutes, and full."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of each curve, ascending; `calls`: per measurement."""

    queues: tuple[int, ...] = (10, 100, 1_000, 10_000)
    shards: tuple[int, ...] = (1, 10, 100, 1_000)
    polls: tuple[int, ...] = (100, 1_000, 10_000)
    sockets: tuple[int, ...] = (100, 300, 1_000)
    waiting: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    in_flight: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    archived: tuple[int, ...] = (100_000, 1_000_000, 4_000_000)
    processes: tuple[int, ...] = (1, 2, 4)
    primaries: tuple[int, ...] = (1, 2, 3)
    partitions: tuple[int, ...] = (1, 2, 3)
    calls: int = 320
    samples: int = 150


FULL = Sizes(
    waiting=(1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    archived=(100_000, 1_000_000, 10_000_000, 100_000_000),
    samples=400,
)
TINY = Sizes(
    queues=(5, 20),
    shards=(1, 8),
    polls=(20, 50),
    sockets=(10, 30),
    waiting=(1_000, 5_000),
    in_flight=(100, 1_000),
    archived=(20_000, 50_000),
    processes=(1, 2),
    primaries=(1, 2),
    partitions=(1, 3),
    calls=80,
    samples=20,
)
