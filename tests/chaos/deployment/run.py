"""A run: an upgrade from the last release, each host cut off, killed, paused and replaced in turn, and back.

python -m tests.chaos.deployment.run --seed 1 [--only "kill store*" upgrade]
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from random import Random, SystemRandom

from spark_worker.runtime.requirements import missing_requirement
from tests.chaos.checker import ARCHIVE_INVARIANTS, TOPIC_INVARIANTS, check, without_silent_gaps
from tests.chaos.damage import flip_bytes
from tests.chaos.deployment.deployment import Deployment, migrate, running_deployment
from tests.chaos.deployment.hosts import FAULTS
from tests.chaos.deployment.matrix import (
    Period,
    stays_up,
    unavailable_by_matrix,
    works_again,
)
from tests.chaos.deployment.releases import THIS, NoRelease, Release, last_release, next_release
from tests.chaos.history import History
from tests.chaos.nemesis import Requests
from tests.chaos.network import lacking_network
from tests.chaos.run import SEED_MAX, Verdict, complaints_in, fail_overs_in
from tests.chaos.stage import Stage
from tests.chaos.workload import Workload

LASTS_S = (2.0, 7.0)
PACE = 5.0  # each host needs some processor time of this machine, also while others fail
RESHARD_S = 2.0  # closed shards stay, and are read at the end
MINUTES = 60.0
RECOVERED_S = 60.0
"""Bound of one round of all calls after a fault: all machines share the processors of this one."""
ROUNDS = 1  # everything is asked again after the next fault
UPGRADE, UPGRADE_NEXT, RETURN, RETURN_LAST = "upgrade", "upgrade next", "return", "return last"


class Run:
    """The periods of a run."""

    def __init__(
        self,
        deployment: Deployment,
        workload: Workload,
        history: History,
        *,
        only: Sequence[str],
        minutes: float,
    ) -> None:
        self.periods: list[Period] = []
        self.told: list[str] = []
        self.left_out: list[str] = []
        self._deployment = deployment
        self._workload = workload
        self._history = history
        self._only = only
        self._until_s = history.now() + minutes * 60

    async def roll(self, name: str, release: Release) -> None:
        """Migrate the database if needed, and let every process run that version."""
        deployment = self._deployment

        async def roll() -> None:
            await migrate(release, deployment.environment)
            await deployment.roll(release)

        await self._carry_out(name, release.name, roll)

    async def fail(self, fault: str, host: str, lasts_s: float) -> None:
        """Let a host fail for a while."""
        name = f"{fault} {host}"
        if is_chosen(name, self._only) and self._history.now() > self._until_s:
            self.left_out.append(name)
            return
        failing = getattr(self._deployment.hosts[host], fault)
        role = await self._deployment.role(host)
        await self._carry_out(name, role, lambda: failing(lasts_s))

    async def request(self, name: str, requests: Requests, lasts_s: float) -> None:
        """Make a request of an operator."""
        await self._carry_out(name, "operator", lambda: requests[name](lasts_s))

    async def _carry_out(self, name: str, role: str, act: Callable[[], Awaitable[None]]) -> None:
        if not is_chosen(name, self._only):
            return
        began, ends_before = self._history.now(), len(self._deployment.ended)
        await act()
        acted = self._history.now()
        recovered_s = await self._workload.recovered(RECOVERED_S, ROUNDS)
        await self._deployment.settle()
        for process, release in self._deployment.ended[ends_before:]:
            self._tell(f"{process} of {release.name} has ended, and was started again")
        self._workload.check()
        ended = self._history.now()
        self.periods.append(Period(name, role, began, ended, recovered_s))
        back = "NOT BACK" if recovered_s is None else f"back after {recovered_s:.1f} s"
        self._tell(
            f"{began:8.2f} to {acted:8.2f} s  {name} ({role}): {back}, settled at {ended:.1f}"
        )

    def _tell(self, line: str) -> None:
        self.told.append(line)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def is_chosen(name: str, only: Sequence[str]) -> bool:
    """Return whether a step is among the patterns, if there are any."""
    return not only or any(fnmatch(name, pattern) for pattern in only)


async def run(
    seed: int, place: Path, *, archives: bool, only: Sequence[str] = (), minutes: float = MINUTES
) -> Verdict:
    """Run everything; history and log stay in that directory.

    `only`: patterns of steps, all by default. `minutes`: after these no other host fails.
    """
    history, left_out = History(), {}
    first = THIS
    if is_chosen(UPGRADE, only):
        try:
            first = last_release(place)
        except NoRelease as error:
            left_out[UPGRADE] = str(error)
    async with (
        running_deployment(place, seed, first, archives=archives) as deployment,
        Stage(deployment.url, history, seed, PACE) as stage,
        Workload(
            stage,
            archives=archives,
            hooks_host=deployment.hooks_host,
            partitions=first is THIS,
            topics=first is THIS,
        ) as workload,
    ):
        stage.reshard_s = RESHARD_S
        requests = await workload.start_recreation()
        await workload.start()
        running = Run(deployment, workload, history, only=only, minutes=minutes)
        if first is not THIS:
            await running.roll(UPGRADE, THIS)
        await _break_everything(running, sorted(deployment.hosts), requests, seed)
        await running.roll(UPGRADE_NEXT, next_release(place))
        await running.roll(RETURN, THIS)
        if first is not THIS and first.can_be_returned_to:
            await running.roll(RETURN_LAST, first)
        elif first is not THIS:
            left_out[RETURN_LAST] = "it does not start on the schema of this version"
        missing = await deployment.lacking()
        try:
            await workload.stop()
            await workload.drain()
            if archives:
                await flip_bytes(deployment.archive, deployment.environment, stage)
        finally:
            history.write(place / "history.ndjson")
    left_out |= dict.fromkeys(running.left_out, f"{minutes:.0f} minutes had passed")
    recoveries = [period.recovered_s for period in running.periods]
    without = (
        *(() if archives else ARCHIVE_INVARIANTS),
        *(() if first is THIS else TOPIC_INVARIANTS),
    )
    findings = check(without_silent_gaps(history.operations), without)
    return Verdict(
        store=f"a deployment on {len(deployment.hosts)} machines",
        seed=seed,
        seconds=sum(period.ended - period.began for period in running.periods),
        operations=history.counts(),
        faults=dict(Counter(period.fault.partition(" ")[0] for period in running.periods)),
        links={},
        recovered_s=max((one for one in recoveries if one is not None), default=None),
        fail_overs=fail_overs_in(deployment.log),
        findings=[
            *findings,
            unavailable_by_matrix(history.operations, running.periods),
            works_again(running.periods),
            stays_up(deployment.ended, None if first is THIS else first),
        ],
        missing=missing,
        timeline=running.told,
        left_out=left_out,
        complaints=complaints_in(deployment.log),
        bound_s=RECOVERED_S,
    )


async def _break_everything(
    running: Run, hosts: Sequence[str], requests: Requests, seed: int
) -> None:
    """Let each host fail in each way, in random order."""
    chance = Random(seed)
    faults = [(fault, host) for host in hosts for fault in FAULTS]
    faults += [(name, "") for name in requests]
    chance.shuffle(faults)
    for name, host in faults:
        lasts_s = chance.uniform(*LASTS_S)
        if host:
            await running.fail(name, host, lasts_s)
        else:
            await running.request(name, requests, lasts_s)


def main() -> int:
    words = argparse.ArgumentParser(description="Break each machine of a whole deployment.")
    words.add_argument("--seed", type=int, default=None)
    words.add_argument(
        "--only", nargs="+", default=(), help='patterns of faults: "kill store*", upgrade'
    )
    words.add_argument("--without-workers", action="store_true", help="run no Spark worker")
    words.add_argument("--minutes", type=float, default=MINUTES, help="of faults, at most")
    arguments = words.parse_args()
    if reason := lacking_network():
        sys.stdout.write(f"This run needs machines: {reason}.\n")
        return 1
    seed = SystemRandom().randrange(SEED_MAX) if arguments.seed is None else arguments.seed
    place = Path(tempfile.mkdtemp(prefix="millstream-deployment-"))
    place.chmod(0o755)  # Postgres may have to run as another user
    sys.stdout.write(f"seed {seed}, in {place}\n")
    archives = missing_requirement() is None and not arguments.without_workers
    running = run(seed, place, archives=archives, only=arguments.only, minutes=arguments.minutes)
    verdict = asyncio.run(running)
    report = verdict.report(is_slice=bool(arguments.only))
    sys.stdout.write(f"\n{report}\n")
    return 0 if verdict.holds or (arguments.only and verdict.is_sound) else 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
