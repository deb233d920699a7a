"""Run schedules for a while and check each: thousands of courses that real servers seldom take.

    python -m tests.simulator.run --seconds 60              every profile in turn
    python -m tests.simulator.run --profile streams --seed 17 --schedules 1      one schedule again

A violation is printed with the command that repeats it, and its history is written beside it.
"""

import argparse
import hashlib
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from storage.embedded.postgres import running_postgres
from storage.postgres.migrate import migrate
from tests.chaos.checking.findings import Finding
from tests.chaos.history import History
from tests.folders import quick_folder
from tests.simulator.database import Postgres
from tests.simulator.mutations import MUTATIONS, Mutation
from tests.simulator.schedule import (
    EXERCISED_WITHIN,
    PROFILES,
    SCHEDULE_S_MAX,
    Profile,
    run_schedule,
)

_SECONDS = 60.0
_COMMAND = "python -m tests.simulator.run"
MUTATED_S_MAX = 100.0
"""Virtual time of a schedule with a mutation, with which some never end; others end within 25 s, and a fault lasts up to 60 s."""


class Violation(NamedTuple):
    """A schedule that violates invariants."""

    profile: Profile
    seed: int
    findings: list[Finding]
    history: History

    def report(self) -> str:
        """Write the history; return the findings, and the command that repeats the schedule."""
        path = Path(tempfile.gettempdir()) / f"simulated-{self.profile.name}-{self.seed}.ndjson"
        self.history.write(path)
        again = f"{_COMMAND} --profile {self.profile.name} --seed {self.seed} --schedules 1"
        lines = [finding.line() for finding in self.findings]
        return "\n".join([*lines, f"history: {path}", f"again:   {again}"])


class Simulation:
    """Schedules, and what their invariants found."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self.schedules: dict[str, int] = defaultdict(int)
        """Number of schedules by profile."""
        self.operations = 0
        self.violation: Violation | None = None
        """That of the last schedule."""
        self._course = hashlib.sha256()
        self._checked: dict[tuple[str, str], int] = defaultdict(int)

    @property
    def holds(self) -> bool:
        """Return whether nothing was violated, and everything exercised."""
        return self.violation is None and not self.unexercised()

    def run(self, profile: Profile, seed: int, seconds_max: float = SCHEDULE_S_MAX) -> bool:
        """Run one schedule; return whether its invariants hold."""
        findings, history = run_schedule(self._postgres, seed, profile, seconds_max)
        self.schedules[profile.name] += 1
        self.operations += len(history.operations)
        self._course.update(msgspec.json.encode(history.operations))
        for finding in findings:
            self._checked[profile.name, finding.name] += finding.checked
        violated = [finding for finding in findings if finding.violations]
        self.violation = Violation(profile, seed, violated, history) if violated else None
        return not violated

    def finds(self, mutation: Mutation, seed: int) -> bool:
        """Run one schedule with a mutation; return whether it violates the mutation's invariant."""
        with mutation.applied():
            self.run(mutation.profile, seed, MUTATED_S_MAX)
        return self.violation is not None and any(
            finding.name == mutation.invariant for finding in self.violation.findings
        )

    def unexercised(self) -> list[str]:
        """Return the invariants without the evidence that this many schedules must give."""
        return [
            invariant
            for (profile, invariant), checked in self._checked.items()
            if not checked and self.schedules[profile] >= EXERCISED_WITHIN.get(invariant, 1)
        ]

    def report(self) -> str:
        """Return what was checked, and of a violation the details and how to repeat it."""
        schedules = sum(self.schedules.values())
        lines = [
            f"{schedules} schedules with {self.operations} operations",
            f"course {self._course.hexdigest()}",
        ]
        lines += [
            f"  {profile:<14}{invariant:<58}{checked:>9}"
            for (profile, invariant), checked in self._checked.items()
        ]
        lines += [f"NOTHING CHECKED: {invariant}" for invariant in self.unexercised()]
        if self.violation is not None:
            lines.append(self.violation.report())
        return "\n".join([*lines, "HOLDS" if self.holds else "DOES NOT HOLD"])


@contextmanager
def new_postgres() -> Iterator[str]:
    """Start a Postgres for simulations; yield its URL."""
    with quick_folder("postgres") as data, running_postgres(data) as url:
        migrate(url)
        yield url


def main() -> int:
    """Run, report, and return the exit code: 1 after a violation, or without evidence."""
    options = _options()
    url = nullcontext(options.postgres) if options.postgres else new_postgres()
    with url as postgres_url, closing(Postgres(postgres_url)) as postgres:
        simulation = Simulation(postgres)
        _run(simulation, options)
    sys.stdout.write(f"{simulation.report()}\n")
    return int(not simulation.holds)


def _run(simulation: Simulation, options: argparse.Namespace) -> None:
    """Run schedules, up to the first violation."""
    mutation = MUTATIONS.get(options.mutation)
    profiles = [PROFILES[options.profile]] if options.profile else [*PROFILES.values()]
    seeds = (
        count(options.seed)
        if options.schedules is None
        else range(options.seed, options.seed + options.schedules)
    )
    seconds = options.seconds or (_SECONDS if options.schedules is None else math.inf)
    until = time.monotonic() + seconds
    for seed in seeds:
        if time.monotonic() >= until:
            return
        if mutation is not None:
            ends = simulation.finds(mutation, seed)
        else:
            ends = not simulation.run(profiles[seed % len(profiles)], seed)
        if ends:
            return


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help=f"{_SECONDS:.0f} without --schedules")
    parser.add_argument("--schedules", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=PROFILES)
    parser.add_argument("--mutation", choices=MUTATIONS, help="put this fault into the product")
    parser.add_argument("--postgres", help="URL of a migrated database, instead of a new one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
