"""A complete run: deployment, clients, faults, recovery, drain, verdict.

python -m tests.chaos.run --minutes 5 --seed 1
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

import msgspec

from spark_worker.runtime.requirements import missing_requirement
from tests.chaos.checker import ARCHIVE_INVARIANTS, check, without_silent_gaps
from tests.chaos.checking.findings import Finding, Operations
from tests.chaos.damage import flip_bytes
from tests.chaos.history import History, Outcome
from tests.chaos.nemesis import (
    OF_A_STANDBY,
    OF_THE_WORKER,
    RESOURCES,
    SINGLE_POSTGRES_FAULTS,
    SINGLE_STORE_FAULTS,
    Nemesis,
    schedule,
)
from tests.chaos.network import Network, lacking_network, running_network
from tests.chaos.postgres_pair import PostgresPair, running_pair
from tests.chaos.replica_set import (
    NETWORK_FAULTS,
    REPLICA_SET_FAULTS,
    ReplicaSetFaults,
    running_replica_set,
    store_machine,
)
from tests.chaos.site import CONTROLLER, POSTGRES, HotStore, Metadata, running_site
from tests.chaos.stage import Stage
from tests.chaos.tools import Tools, found_tools
from tests.chaos.workload import Workload
from tests.redis_server import add_store, store_of

RECOVERED_S = 30.0
"""Bound of recovery after the last fault: a supervisor waits up to 10 s, a store call 5 s."""
RESHARDS_MAX = 100  # per run: closed shards stay, and are read at the end
START_REPORTS = (" is ready after ", " API process", "not ready yet: ", "Using incubator modules")
ANSWERED = "request_failed"
SEED_MAX = 1_000_000


class Said(msgspec.Struct, frozen=True):
    """A line of the log."""

    event: str
    logger: str = ""
    exception: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The parameters of a run, and its results."""

    store: str
    seed: int
    seconds: float
    operations: dict[str, dict[str, int]]
    faults: dict[str, int]
    links: dict[str, int]
    recovered_s: float | None
    fail_overs: int
    findings: list[Finding]
    missing: list[str]
    timeline: list[str]
    left_out: dict[str, str]
    complaints: list[str]
    """Exceptions in the deployment that were not sent as a response."""
    bound_s: float = RECOVERED_S

    @property
    def is_sound(self) -> bool:
        """Return whether no invariant is violated, and the service recovered."""
        whole = self.recovered_s is not None and not self.missing and not self.complaints
        return whole and not any(finding.violations for finding in self.findings)

    @property
    def holds(self) -> bool:
        """Return whether it is sound, and every invariant was checked."""
        return self.is_sound and all(finding.holds for finding in self.findings)

    def verdict(self, *, is_slice: bool) -> str:
        """Return the verdict in words; a slice is too short for some invariants to be checked."""
        if is_slice and self.is_sound and not self.holds:
            return "HOLDS, AS FAR AS IT WAS CHECKED"
        return "HOLDS" if self.holds else "DOES NOT HOLD"

    def report(self, *, is_slice: bool = False) -> str:
        """The complete report, with violations last."""
        total = sum(sum(ways.values()) for ways in self.operations.values())
        back = "NOT" if self.recovered_s is None else f"in {self.recovered_s:.1f} s"
        lines = [
            f"seed {self.seed}, {self.seconds:.0f} s of faults, {total} operations, {self.store}",
            "",
            f"{'operations':<20}" + "".join(f"{way.value:>9}" for way in Outcome),
            *(
                f"  {kind:<18}" + "".join(f"{ways[way.value]:>9}" for way in Outcome)
                for kind, ways in sorted(self.operations.items())
            ),
            "",
            "faults: " + ", ".join(f"{name} {n}" for name, n in sorted(self.faults.items())),
            *(f"left out: {name}, since {why}" for name, why in sorted(self.left_out.items())),
            "links:  " + ", ".join(f"{name} {n}" for name, n in sorted(self.links.items())),
            "",
            f"{'invariant':<58}{'checked':>9}",
            *(
                finding.line()
                for finding in sorted(self.findings, key=lambda complaint: not complaint.holds)
            ),
            "",
            f"back to work after the last fault: {back} (bound {self.bound_s:.0f} s)",
            *([f"fail-overs: {self.fail_overs}"] if self.fail_overs else []),
            *([f"programs that do not run: {', '.join(self.missing)}"] if self.missing else []),
            *(f"in the log: {complaint}" for complaint in self.complaints),
            self.verdict(is_slice=is_slice),
        ]
        return "\n".join(lines)


async def run(
    seed: int,
    seconds: float,
    place: Path,
    tools: Tools,
    *,
    archives: bool,
    stores: int = 1,
    has_standby: bool = False,
    only: Collection[str] = (),
) -> Verdict:
    """Run with faults for this duration; history and log stay in that directory.

    `archives`: with a Spark worker, which takes time to start. `stores`: those of a replica set, or one. `has_standby`: of
    Postgres, which then has no machine of its own in a network. `only`: kinds of faults, all by default.
    """
    history = History()
    is_replicated = stores > 1
    left_out = _left_out(
        tools, archives=archives, is_replicated=is_replicated, has_standby=has_standby
    )
    async with (
        prepared_postgres(place, seed, has_standby=has_standby) as postgres,
        prepared_stores(place, seed, stores, tools, has_network="part_half" not in left_out) as hot,
        running_site(
            place,
            seed,
            tools,
            archives=archives,
            stores=hot.stores,
            network=hot.network,
            postgres=postgres.metadata,
        ) as site,
        Stage(site.url, history, seed) as stage,
        Workload(stage, archives=archives) as workload,
    ):
        replica_set = ReplicaSetFaults(site) if is_replicated else None
        nemesis = Nemesis(
            site, history, await workload.start_recreation(), replica_set, postgres.pair
        )
        of_others = {*(SINGLE_STORE_FAULTS if is_replicated else REPLICA_SET_FAULTS)}
        if not has_standby:
            of_others.add(OF_A_STANDBY)
        stage.reshard_s = max(stage.reshard_s, seconds / RESHARDS_MAX)
        await workload.start()
        not_chosen = RESOURCES.keys() - set(only or RESOURCES)
        await nemesis.run(schedule(seed, seconds, {*left_out, *of_others, *not_chosen}))
        recovered_s = await workload.recovered(RECOVERED_S)
        missing = await site.missing(RECOVERED_S)
        try:
            await workload.stop()
            await workload.drain()
            if archives:
                await flip_bytes(place / "data" / "archive", site.environment, stage)
        finally:
            history.write(place / "history.ndjson")
        links = site.links()
        operations: Operations = history.operations
        if is_replicated:  # each fail-over leaves a hole in every log
            operations = without_silent_gaps(operations)
        return Verdict(
            store=site.version,
            seed=seed,
            seconds=seconds,
            operations=history.counts(),
            faults=dict(nemesis.done),
            links=dict(links),
            recovered_s=recovered_s,
            fail_overs=fail_overs_in(site.log),
            findings=check(operations, () if archives else ARCHIVE_INVARIANTS),
            missing=missing,
            timeline=nemesis.told,
            left_out=left_out,
            complaints=complaints_in(site.log),
        )


def complaints_in(log: Path) -> list[str]:
    """Unhandled exceptions, and what is neither a log line nor a report of the start."""
    lines = []
    for line in log.read_text(errors="replace").splitlines():
        try:
            text = msgspec.json.decode(line, type=Said)
        except msgspec.MsgspecError:
            if not any(report in line for report in START_REPORTS):
                lines.append(line)
        else:
            if text.exception and text.event != ANSWERED:
                lines.append(f"{text.logger}: {text.event.strip()}: {text.exception.strip()}")
    return lines


def fail_overs_in(log: Path) -> int:
    """Return how often another primary was promoted without a request."""
    return sum(
        '"primary_changed"' in line and '"kind": "fail_over"' in line
        for line in log.read_text(errors="replace").splitlines()
    )


class Postgres(NamedTuple):
    """The Postgres of a run, None for one without a standby."""

    pair: PostgresPair | None = None
    metadata: AbstractAsyncContextManager[Metadata] | None = None


@asynccontextmanager
async def prepared_postgres(
    place: Path, seed: int, *, has_standby: bool
) -> AsyncIterator[Postgres]:
    """Run the pair of a run; one without a standby is started by the site."""
    if not has_standby:
        yield Postgres()
        return
    async with running_pair(place, seed) as pair:
        metadata = Metadata(pair.store, pair.address, pair.proxies)
        yield Postgres(pair, nullcontext(metadata))


class HotStores(NamedTuple):
    """The stores of a run, None for its only one, and their network."""

    stores: AbstractAsyncContextManager[HotStore] | None = None
    network: Network | None = None


@asynccontextmanager
async def prepared_stores(
    place: Path, seed: int, count: int, tools: Tools, *, has_network: bool
) -> AsyncIterator[HotStores]:
    """Yield the stores of a run, which the site starts, and run their network."""
    if count == 1:
        yield HotStores()
        return
    machines = [*map(store_machine, range(1, count + 1)), POSTGRES, CONTROLLER]
    with running_network(machines) if has_network else nullcontext() as network:
        yield HotStores(running_replica_set(place, seed, count, tools, network), network)


def _left_out(
    tools: Tools, *, archives: bool, is_replicated: bool, has_standby: bool
) -> dict[str, str]:
    """Faults that this run omits, with reasons."""
    left_out = tools.lacking(of_store="_store" if is_replicated else "")
    if not archives:
        left_out |= dict.fromkeys(OF_THE_WORKER, "no Spark worker runs")
    if has_standby:
        left_out |= dict.fromkeys(SINGLE_POSTGRES_FAULTS, "Postgres has a standby")
    reason = "Postgres has a standby" if has_standby else lacking_network()
    if is_replicated and reason:
        left_out |= dict.fromkeys(NETWORK_FAULTS, reason)
    return left_out


def main() -> int:
    words = argparse.ArgumentParser(
        description="Break a deployment at random and check what it promised."
    )
    words.add_argument("--minutes", type=float, default=5.0)
    words.add_argument("--seed", type=int, default=None)
    words.add_argument(
        "--slice", action="store_true", help="allow invariants for which nothing was checked"
    )
    words.add_argument("--stores", type=int, default=1, help="of a replica set, or one")
    words.add_argument(
        "--standby", action="store_true", help="run Postgres with a synchronous standby"
    )
    words.add_argument(
        "--only", nargs="+", choices=sorted(RESOURCES), default=(), help="kinds of faults"
    )
    add_store(words)
    arguments = words.parse_args()
    store = store_of(arguments)
    seed = SystemRandom().randrange(SEED_MAX) if arguments.seed is None else arguments.seed
    place = Path(tempfile.mkdtemp(prefix="millstream-chaos-"))
    place.chmod(0o755)  # Postgres may have to run as another user
    sys.stdout.write(f"seed {seed}, in {place}\n")
    archives = missing_requirement() is None
    tools = found_tools(store)
    running = run(
        seed,
        arguments.minutes * 60,
        place,
        tools,
        archives=archives,
        stores=arguments.stores,
        has_standby=arguments.standby,
        only=arguments.only,
    )
    verdict = asyncio.run(running)
    report = verdict.report(is_slice=arguments.slice)
    sys.stdout.write("\n".join([*verdict.timeline, "", report, ""]))
    return 0 if verdict.holds or (arguments.slice and verdict.is_sound) else 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
