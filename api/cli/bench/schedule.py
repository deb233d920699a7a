"""Open-loop load: calls start when they are due, whether or not earlier ones have ended.

A latency is counted from the moment its call was due. So a service that stalls for a second is observed by every call
that was due in that second, as its users would observe it, and not only by the one that was in progress.

    due      |  |  |  |  |  |  |  |          a fixed rate
    started  |  |  |  ▒▒▒▒▒▒▒|||||           no worker was free: the stall
    counted           ├─────────┤            from when it was due
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from api.cli.bench.histogram import Histogram

BenchCall = Callable[[int], Awaitable[int]]
"""Function that makes call number n, and returns its number of items."""


class BenchClock(Protocol):
    """Clock in seconds that can be waited on."""

    def now(self) -> float: ...

    async def until(self, moment: float) -> None: ...


class LoopClock:
    """Clock of the event loop."""

    def now(self) -> float:
        """Return the time in seconds."""
        return asyncio.get_running_loop().time()

    async def until(self, moment: float) -> None:
        """Wait until that moment; return immediately if it has passed."""
        await asyncio.sleep(max(0.0, moment - self.now()))


@dataclass(frozen=True)
class BenchSchedule:
    """Call rate and duration. `clients`: number of concurrent calls.

    Calls that are due in the warm-up are not counted.
    """

    calls_per_second: float
    seconds: float
    warm_up_s: float
    clients: int

    @property
    def calls(self) -> int:
        """Total number of calls, including the warm-up's."""
        return max(1, round(self.calls_per_second * (self.warm_up_s + self.seconds)))

    def due(self, number: int) -> float:
        """Return when a call is due, in seconds after the start."""
        return number / self.calls_per_second

    def counts(self, number: int) -> bool:
        """Return whether a call is beyond the warm-up."""
        return self.due(number) >= self.warm_up_s


@dataclass
class LatencyTally:
    """Results of the counted calls."""

    latencies: Histogram = field(default_factory=Histogram)
    items: int = 0
    calls: int = 0
    failed: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    last_ended_s: float = 0.0

    def succeeded(self, items: int, latency_s: float, ended_s: float) -> None:
        """Count a successful call, with its latency since it was due."""
        self.calls += 1
        self.items += items
        self.last_ended_s = max(self.last_ended_s, ended_s)
        self.latencies.add(round(latency_s * 1e6))

    def failed_with(self, error: Exception, latency_s: float) -> None:
        """Count a failed call; its latency counts too, or fast failures would look good."""
        self.failed += 1
        kind = type(error).__name__
        self.failures[kind] = self.failures.get(kind, 0) + 1
        self.latencies.add(round(latency_s * 1e6))


async def run_open_loop(work: BenchCall, pace: BenchSchedule, clock: BenchClock) -> LatencyTally:
    """Run all calls, each when it is due or as soon after as a worker is free."""
    tally, numbers, began = LatencyTally(), iter(range(pace.calls)), clock.now()

    async def client() -> None:
        for number in numbers:
            due = began + pace.due(number)
            await clock.until(due)
            await _one(
                work,
                number,
                due,
                tally=tally if pace.counts(number) else LatencyTally(),
                clock=clock,
                began=began,
            )

    await asyncio.gather(*(client() for _ in range(pace.clients)))
    return tally


async def _one(
    work: BenchCall,
    number: int,
    due: float,
    *,
    tally: LatencyTally,
    clock: BenchClock,
    began: float,
) -> None:
    try:
        items = await work(number)
    except Exception as error:
        tally.failed_with(error, clock.now() - due)
    else:
        ended = clock.now()
        tally.succeeded(items, ended - due, ended - began)
