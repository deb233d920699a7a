"""Open-loop load: calls begin when they are due, whether or not those before them have ended.

A latency is counted from the moment its call was due. So a service that stalls for a second is seen by every call that
was due in that second, as its users would see it, and not only by the one that happened to be under way.

    due      |  |  |  |  |  |  |  |          a fixed rate
    begun    |  |  |  ▒▒▒▒▒▒▒|||||           no hand was free: the stall
    counted           ├─────────┤            from when it was due
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from api.cli.bench.histogram import Histogram

Work = Callable[[int], Awaitable[int]]
"""Does call number n, and gives how many items it carried."""


class BenchClock(Protocol):
    """Seconds, and waiting until some."""

    def now(self) -> float: ...

    async def until(self, moment: float) -> None: ...


class LoopClock:
    """The event loop's."""

    def now(self) -> float:
        """Seconds."""
        return asyncio.get_running_loop().time()

    async def until(self, moment: float) -> None:
        """Return then, or at once when it has passed."""
        await asyncio.sleep(max(0.0, moment - self.now()))


@dataclass(frozen=True)
class Pace:
    """So many calls a second, for so long; what is due in the warm-up is not counted. `hands`: under way at once."""

    calls_per_second: float
    seconds: float
    warm_up_s: float
    hands: int

    @property
    def calls(self) -> int:
        """All of them, with the warm-up's."""
        return max(1, round(self.calls_per_second * (self.warm_up_s + self.seconds)))

    def due(self, number: int) -> float:
        """When a call is due, in seconds after the start."""
        return number / self.calls_per_second

    def counts(self, number: int) -> bool:
        """Whether a call is beyond the warm-up."""
        return self.due(number) >= self.warm_up_s


@dataclass
class Tally:
    """What happened to the calls that count."""

    latencies: Histogram = field(default_factory=Histogram)
    items: int = 0
    calls: int = 0
    failed: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    last_ended_s: float = 0.0

    def succeeded(self, items: int, latency_s: float, ended_s: float) -> None:
        """A call ended well, so long after it was due."""
        self.calls += 1
        self.items += items
        self.last_ended_s = max(self.last_ended_s, ended_s)
        self.latencies.add(round(latency_s * 1e6))

    def failed_with(self, error: Exception, latency_s: float) -> None:
        """A call failed; its time counts too, or failing fast would look good."""
        self.failed += 1
        kind = type(error).__name__
        self.failures[kind] = self.failures.get(kind, 0) + 1
        self.latencies.add(round(latency_s * 1e6))


async def run_open_loop(work: Work, pace: Pace, clock: BenchClock) -> Tally:
    """Do all calls, each when it is due or as soon after as a hand is free."""
    tally, numbers, began = Tally(), iter(range(pace.calls)), clock.now()

    async def hand() -> None:
        for number in numbers:
            due = began + pace.due(number)
            await clock.until(due)
            await _one(work, number, due, tally if pace.counts(number) else Tally(), clock, began)

    await asyncio.gather(*(hand() for _ in range(pace.hands)))
    return tally


async def _one(
    work: Work, number: int, due: float, tally: Tally, clock: BenchClock, began: float
) -> None:
    try:
        items = await work(number)
    except Exception as error:
        tally.failed_with(error, clock.now() - due)
    else:
        ended = clock.now()
        tally.succeeded(items, ended - due, ended - began)
