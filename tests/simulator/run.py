"""Run schedules for a while and check each: thousands of courses that real servers seldom take.

    python -m tests.simulator.run --seconds 60              queues, streams and losses in turn
    python -m tests.simulator.run --profile streams --seed 17 --schedules 1      one schedule again

A violation is printed with the command that repeats it, and its history is written beside it.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path

from storage.embedded.postgres import running_postgres
from storage.postgres.migrate import migrate
from tests.chaos.checking.findings import Finding
from tests.chaos.history import History
from tests.folders import quick_folder
from tests.simulator.database import Postgres
from tests.simulator.mutations import MUTATIONS
from tests.simulator.schedule import PROFILES, Profile, run_schedule

_ENDLESS = 1_000_000
_COMMAND = "python -m tests.simulator.run"


class Simulation:
    """Schedules of consecutive seeds, and what their invariants found."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self.schedules = 0
        self.operations = 0
        self.checked: Counter[str] = Counter()
        self.violation: tuple[Profile, int, list[Finding], History] | None = None

    def run(self, profile: Profile, seed: int) -> bool:
        """Run one schedule; return whether its invariants hold."""
        findings, history = run_schedule(self._postgres, seed, profile)
        self.schedules += 1
        self.operations += len(history.operations)
        self.checked.update({finding.name: finding.checked for finding in findings})
        violated = [finding for finding in findings if finding.violations]
        if violated:
            self.violation = profile, seed, violated, history
        return not violated


@contextmanager
def simulated_postgres() -> Iterator[Postgres]:
    """Start a Postgres for simulations."""
    with quick_folder("postgres") as data, running_postgres(data) as url:
        migrate(url)
        postgres = Postgres(url)
        try:
            yield postgres
        finally:
            postgres.close()


def main() -> int:
    """Run, report, and return the exit code: 1 after a violation."""
    options = _options()
    mutation = MUTATIONS.get(options.mutation)
    profiles = [PROFILES[options.profile]] if options.profile else [*PROFILES.values()]
    if mutation is not None:
        profiles = [mutation.profile]
    until = time.monotonic() + options.seconds
    with simulated_postgres() as postgres, mutation.applied() if mutation else nullcontext():
        simulation = Simulation(postgres)
        for seed in count(options.seed):
            if simulation.schedules >= options.schedules or time.monotonic() >= until:
                break
            if not simulation.run(profiles[seed % len(profiles)], seed):
                break
    return _report(simulation)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--schedules", type=int, default=_ENDLESS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=PROFILES)
    parser.add_argument("--mutation", choices=MUTATIONS, help="put this fault into the product")
    return parser.parse_args()


def _report(simulation: Simulation) -> int:
    lines = [f"{simulation.schedules} schedules with {simulation.operations} operations"]
    lines += [f"  {name:<58}{checked:>9}" for name, checked in simulation.checked.items()]
    if simulation.violation is None:
        lines.append("HOLDS")
    else:
        profile, seed, findings, history = simulation.violation
        path = Path(tempfile.gettempdir()) / f"simulated-{profile.name}-{seed}.ndjson"
        history.write(path)
        lines += [finding.line() for finding in findings]
        lines += [
            f"history: {path}",
            f"again:   {_COMMAND} --profile {profile.name} --seed {seed} --schedules 1",
        ]
    sys.stdout.write("\n".join([*lines, ""]))
    return int(simulation.violation is not None)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a course
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulator.run", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
