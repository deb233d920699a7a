"""A soak test without faults: resource usage stays bounded, and sends stay fast.

python -m tests.chaos.soak --minutes 60
"""

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import msgspec

from spark_worker.runtime.requirements import missing_requirement
from tests.chaos.bounds import Judged, judge
from tests.chaos.history import Outcome
from tests.chaos.run import complaints_in
from tests.chaos.sampling import Sample, Tally, sampled
from tests.chaos.site import Site, running_site
from tests.chaos.stage import Stage
from tests.chaos.tools import Tools
from tests.chaos.workload import Workload
from tests.redis_server import add_store, store_of

SAMPLE_S = 20.0
MINUTE_S = 60.0
RESHARD_S = 30.0
KEPT_S = 300
"""Retention of records and dead letters, so that an hour covers twelve periods."""
FILLED_MINUTES = 30
SHORT = f"In less than {FILLED_MINUTES} minutes programs warm up and stores fill: what grows here need not go on growing."
MEANT = {
    "rows shards": "closed shards stay a day",
    "rows logs": "closed shards stay a day",
    "rows log_holes": "closed shards stay a day",
    "rows archive_shards": "closed shards stay a day",
    "rows group_*": "closed shards stay a day",
    "rows archive_files": "files that expired or were replaced stay a day, for who reads them",
    "rows audit": "what was done is kept",
    "rows jobs": "jobs that are over can be looked at for 30 days",
    "rows job_parts": "jobs that are over can be looked at for 30 days",
    "keys meta": "closed shards stay a day",
    "keys log": "closed shards stay a day",
    "keys prod": "closed shards stay a day",
    "keys prod_old": "closed shards stay a day",
    "keys in all": "closed shards stay a day",
}
"""Series that may grow within an hour, with reasons."""


class Soaked(msgspec.Struct, frozen=True):
    """Results of a soak test."""

    minutes: float
    operations: dict[str, dict[str, int]]
    latencies: list[Sample]
    judged: list[Judged]
    complaints: list[str]

    @property
    def holds(self) -> bool:
        """Return whether nothing grows unexpectedly."""
        return all(measurement.is_bounded for measurement in self.judged) and not self.complaints

    def report(self) -> str:
        """The complete report."""
        return "\n".join(
            [
                f"{self.minutes:.0f} minutes of everything, nothing broken",
                "",
                f"{'operations':<20}" + "".join(f"{way.value:>9}" for way in Outcome),
                *(
                    f"  {kind:<18}" + "".join(f"{ways[way.value]:>9}" for way in Outcome)
                    for kind, ways in sorted(self.operations.items())
                ),
                "",
                f"{'minute':>6}{'p50':>12}{'p99':>12}   of sends and appends",
                *(_minute(number, one) for number, one in enumerate(self.latencies, 1)),
                "",
                f"{'the mean of each third':<44}{'first':>12}{'second':>12}{'last':>12}",
                *(one.line() for one in sorted(self.judged, key=lambda one: one.name)),
                *(f"in the log: {one}" for one in self.complaints),
                *([SHORT] if self.minutes < FILLED_MINUTES else []),
                "",
                "BOUNDED" if self.holds else "NOT BOUNDED",
            ]
        )


def _minute(number: int, told: Sample) -> str:
    p50, p99 = told.get("p50 of sends", 0.0), told.get("p99 of sends", 0.0)
    return f"{number:>6}{p50 * 1000:>9.1f} ms{p99 * 1000:>9.1f} ms"


async def soak(minutes: float, place: Path, tools: Tools, *, archives: bool) -> Soaked:
    """Run for this duration in that directory, sampling all the time."""
    tally = Tally()
    series: dict[str, list[float]] = defaultdict(list)
    async with (
        running_site(place, 0, tools, archives=archives) as site,
        Stage(site.url, tally, seed=0) as stage,
        Workload(stage, archives=archives, kept_s=KEPT_S) as workload,
    ):
        stage.reshard_s = RESHARD_S
        await workload.start()
        looking = asyncio.create_task(_look(site, series))
        latencies = []
        for _ in range(max(1, round(minutes))):
            await asyncio.sleep(min(MINUTE_S, minutes * MINUTE_S))
            latencies.append(tally.latencies())
            workload.check()
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await workload.stop()
        complaints = complaints_in(site.log)
    for minute in latencies:
        for name, seconds in minute.items():
            series[name].append(seconds)
    judged = [judge(name, samples, MEANT) for name, samples in series.items()]
    return Soaked(minutes, tally.counts(), latencies, judged, complaints)


async def _look(site: Site, series: dict[str, list[float]]) -> None:
    """Sample periodically; what is missing in a sample counts as 0."""
    taken = 0
    while True:
        sample = await sampled(site)
        for name in {*series, *sample}:
            earlier = series[name]
            earlier += [0.0] * (taken - len(earlier))
            earlier.append(sample.get(name, 0.0))
        taken += 1
        await asyncio.sleep(SAMPLE_S)


def main() -> int:
    words = argparse.ArgumentParser(description="Work for long, and see what grows.")
    words.add_argument("--minutes", type=float, default=60.0)
    add_store(words)
    arguments = words.parse_args()
    tools = Tools(store=store_of(arguments))
    place = Path(tempfile.mkdtemp(prefix="millstream-soak-"))
    place.chmod(0o755)  # Postgres may have to run as another user
    sys.stdout.write(f"in {place}\n")
    soaked = asyncio.run(
        soak(arguments.minutes, place, tools, archives=missing_requirement() is None)
    )
    sys.stdout.write(f"{soaked.report()}\n")
    return 0 if soaked.holds else 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
