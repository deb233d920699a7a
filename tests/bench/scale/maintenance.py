"""Cost of the sweeper's maintenance tasks without work, in this process, one by one."""

import asyncio
from typing import NamedTuple

from consumers.maintenance.scheduler import TASKS
from storage.bootstrap import Storage, open_storage
from storage.domain.clock import ManualClock, SystemClock
from tests.bench.scale.curves import Curve, Expected, Growing
from tests.bench.scale.meters import Meter, Spent
from tests.bench.servers import House

_SLOT_MS = 10_000  # interval of measurement
_LATER_MS = 70_000  # nothing is new after this time
_SHOWN = 4


class Round(NamedTuple):
    """A maintenance task: its interval and its cost."""

    every_ms: int
    spent: Spent

    @property
    def ms_a_second(self) -> float:
        """Processor time of all processes per second of an idle deployment."""
        seconds = self.spent.own_s + self.spent.store_s + self.spent.postgres_s
        return seconds * 1e6 / self.every_ms


class _Clock(ManualClock):
    """The system clock, advanced on request, so that each round is in its own slot."""

    def __init__(self) -> None:
        super().__init__(SystemClock().now_ms())

    def script_time(self) -> str:
        return ""


def idle_rounds(house: House, meter: Meter) -> dict[str, Round]:
    """A round of each task, by name."""
    return asyncio.run(_idle_rounds(house, meter))


async def _idle_rounds(house: House, meter: Meter) -> dict[str, Round]:
    clock = _Clock()
    async with open_storage(house.storage, clock=clock) as storage:
        for later_ms in (_LATER_MS, _SLOT_MS):
            await _all(storage, meter)
            clock.advance(later_ms)
        return await _all(storage, meter)


async def _all(storage: Storage, meter: Meter) -> dict[str, Round]:
    found = {}
    for task in TASKS:
        before = meter.read()
        await task.work(storage)
        idle_ms = max(task.period_ms, task.idle_ms)
        every_ms = max(idle_ms, _SLOT_MS) if task.name == "series" else idle_ms
        found[task.name] = Round(every_ms, meter.since(before))
    return found


def sweeper_curve(size: str, rounds: list[tuple[int, dict[str, Round]]]) -> Curve:
    """Cost of the idle sweeper, over the number of resources."""
    lines, scripts = Growing(), []
    last = rounds[-1][1]
    costly = sorted(last, key=lambda name: -last[name].ms_a_second)[:_SHOWN]
    for count, found in rounds:
        lines.add(count, **{name: found[name].ms_a_second for name in costly})
        lines.add(count, all_duties=sum(one.ms_a_second for one in found.values()))
    for name in costly:
        counts = ", ".join(f"{found[name].spent.scripts:,.0f}" for _, found in rounds)
        scripts.append(f"`{name}`, every {last[name].every_ms / 1e3:g} s, runs {counts} scripts")
    return Curve(
        name=f"{size}-sweeper",
        title=f"The idle sweeper, by {size}",
        size=size,
        unit="ms of processor a second",
        made="One round of every duty with nothing to do, after two others; processor time of the sweeper, the store and "
        "Postgres, over the time between two rounds. The four that cost most at the end are shown.",
        expected=Expected.PROPORTIONAL,
        series=lines.series(),
        notes=scripts,
        log_costs=True,
    )
