"""Runs with faults that lose acknowledged writes: losses are counted, the rest is checked.

    fail-over    the primary is killed, and a replica is promoted that has missed the last writes
    truncated    the append-only file of a store with durability=everysec loses its end, as in a power cut
    replicated   the primary of a replica set is lost with its machine, right after a replica has missed the last writes:
                 what is counted for the others must be zero
    slots        slots of a Redis Cluster move from each primary to the next, and each replica takes over as planned: this
                 loses nothing either
    cluster      a primary of a Redis Cluster is killed, and its replica takes over

python -m tests.chaos.data_loss --seed 1
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from random import Random, SystemRandom

import msgspec
import redis.asyncio

from tests.chaos.checker import server_errors_say_what_happened, without_silent_gaps
from tests.chaos.checking import events, groups, queues, sources, streams, webhooks
from tests.chaos.checking.findings import Finding
from tests.chaos.history import History
from tests.chaos.network import lacking_network
from tests.chaos.proxy import Fault, Proxy
from tests.chaos.redis_cluster import cluster_site, kill_primary, move_slots
from tests.chaos.replica_set import ReplicaSetFaults
from tests.chaos.run import RECOVERED_S, SEED_MAX, complaints_in, prepared_stores
from tests.chaos.site import Site, Store, running_site, single_store
from tests.chaos.stage import Stage
from tests.chaos.tools import Tools
from tests.chaos.workload import Workload
from tests.redis_server import NamedServer, add_store, store_of

WORKS_S = 12.0
UNSEEN_S = 1.0
"""The replica misses at most this last part of the acknowledged writes."""
AWAY_S = 1.0
STORES, LOST_S = 3, 5.0
CUT_BYTES = (1_000, 60_000)

MUST = (
    streams.offset_has_one_value,
    streams.offsets_increase,
    streams.skipped_offsets_are_reported,
    streams.child_sequence_numbers_exceed_parents,
    groups.shard_has_one_owner,
    groups.groups_reach_the_end,
    events.follower_receives_no_duplicates,
    webhooks.every_post_is_signed,
    server_errors_say_what_happened,
)
"""Invariants that hold despite data loss."""
COUNTED = (
    queues.accepted_message_is_not_lost,
    webhooks.every_message_is_posted,
    queues.acknowledged_message_is_not_redelivered,
    queues.repeated_send_is_one_message,
    queues.counts_are_consistent,
    streams.appended_record_is_not_lost,
    streams.repeated_append_is_idempotent,
    groups.groups_skip_no_record,
    sources.event_is_in_its_target_once,
)
"""Invariants whose violations are reported, but do not fail the run."""

Break = Callable[[Site, Random], Awaitable[str]]


class Outcomes(msgspec.Struct, frozen=True):
    """Results of a scenario with data loss."""

    name: str
    seed: int
    broke: str
    operations: int
    recovered_s: float | None
    must: list[Finding]
    counted: list[Finding]
    gaps: int
    complaints: list[str]
    may_lose: bool = True

    @property
    def holds(self) -> bool:
        """Return whether the required invariants hold, and gaps were reported."""
        sound = self.recovered_s is not None and not self.complaints and self.gaps > 0
        judged = self.must if self.may_lose else [*self.must, *self.counted]
        return sound and not any(finding.violations for finding in judged)

    def report(self) -> str:
        """The complete report."""
        back = "NOT" if self.recovered_s is None else f"in {self.recovered_s:.1f} s"
        return "\n".join(
            [
                f"data loss: {self.name}, seed {self.seed}, {self.operations} operations: {self.broke}",
                f"back to work {back}; readers were told of {self.gaps} gaps",
                *(finding.line() for finding in self.must),
                "counted, not judged:" if self.may_lose else "must be zero:",
                *(
                    f"  {finding.name:<56}{len(finding.violations):>6} of {finding.checked}"
                    for finding in self.counted
                ),
                *(f"in the log: {complaint}" for complaint in self.complaints),
                "HOLDS" if self.holds else "DOES NOT HOLD",
            ]
        )


async def run_scenario(name: str, seed: int, place: Path, tools: Tools) -> Outcomes:
    """Work, break, continue, drain."""
    history = History()
    site_of, breaks = SCENARIOS[name]
    async with (
        site_of(place, seed, tools) as site,
        Stage(site.url, history, seed) as stage,
        Workload(stage, archives=False) as workload,
    ):
        await workload.start()
        await asyncio.sleep(WORKS_S)
        broke = await breaks(site, Random(seed))
        recovered_s = await workload.recovered(RECOVERED_S)
        await asyncio.sleep(WORKS_S)
        try:
            await workload.stop()
            await workload.drain()
        finally:
            history.write(place / "history.ndjson")
        told = without_silent_gaps(history.operations)
        return Outcomes(
            name=name,
            seed=seed,
            broke=broke,
            operations=len(history.operations),
            recovered_s=recovered_s,
            must=[invariant(told) for invariant in MUST],
            counted=[invariant(told) for invariant in COUNTED],
            gaps=sum(len(answer.gaps) for answer in told),
            complaints=complaints_in(site.log),
            may_lose=name not in LOSSLESS,
        )


@asynccontextmanager
async def _site(place: Path, seed: int, tools: Tools) -> AsyncIterator[Site]:
    async with running_site(
        place, seed, tools, archives=False, stores=single_store(place, seed, tools, "everysec")
    ) as site:
        yield site


async def truncate(site: Site, chance: Random) -> str:
    """kill -9, and truncate the newest part of the append-only file."""
    site.valkey.kill()
    directory = site.valkey.directory / "appendonlydir"
    newest = max(directory.glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
    size = newest.stat().st_size
    cut = min(size, chance.randint(*CUT_BYTES))
    with newest.open("r+b") as file:
        file.truncate(size - cut)
    await asyncio.sleep(AWAY_S)
    await site.valkey.start()
    return f"{newest.name} lost {cut} of {size} bytes"


@asynccontextmanager
async def _site_with_replica(place: Path, seed: int, tools: Tools) -> AsyncIterator[Site]:
    async with running_site(place, seed, tools, archives=False) as site:
        replica_server = NamedServer(place / "replica", tools.store)
        replica = Store(replica_server, replica_server.socket)
        async with Proxy(site.valkey.connect, Random(f"{seed} replication")) as link:
            await replica.start()
            try:
                await _say(replica, "REPLICAOF", "127.0.0.1", str(link.port))
                await _until_in_step(replica)
                site.replica, site.replication = replica, link
                yield site
            finally:
                replica.stop()


async def fail_over(site: Site, chance: Random) -> str:
    """Cut off the replica for a while, kill the primary for good, and promote the replica."""
    replica, link = site.replica, site.replication
    assert replica is not None
    assert link is not None
    unseen_s = UNSEEN_S * chance.uniform(0.2, 1.0)
    link.be(Fault.HALF_OPEN)
    await asyncio.sleep(unseen_s)
    site.valkey.kill()
    link.be(Fault.CUT)
    await asyncio.sleep(AWAY_S)
    await _say(replica, "REPLICAOF", "NO", "ONE")
    site.valkey.become(replica)
    return (
        f"the replica had missed the last {unseen_s:.2f} s, {link.counted['bytes_swallowed']} bytes"
    )


@asynccontextmanager
async def _replicated_site(place: Path, seed: int, tools: Tools) -> AsyncIterator[Site]:
    has_network = not lacking_network()
    async with (
        prepared_stores(place, seed, STORES, tools, has_network=has_network) as hot,
        running_site(
            place, seed, tools, archives=False, stores=hot.stores, network=hot.network
        ) as site,
    ):
        yield site


async def lose_machine(site: Site, chance: Random) -> str:
    """A replica hears nothing for a moment, and then the primary's machine is gone for a while."""
    faults = ReplicaSetFaults(site).named()
    await faults["deafen_replica"](LOST_S, chance.random())
    return f"a replica had missed the last moment, and the primary was gone for {LOST_S:.0f} s"


async def _say(store: Store, *words: str) -> object:
    async with redis.asyncio.Redis(unix_socket_path=str(store.socket)) as client:
        return await client.execute_command(*words)


async def _until_in_step(replica: Store) -> None:
    async with asyncio.timeout(RECOVERED_S):
        async with redis.asyncio.Redis(unix_socket_path=str(replica.socket)) as client:
            while (await client.info("replication"))["master_link_status"] != "up":  # noqa: ASYNC110
                await asyncio.sleep(0.05)


SiteOf = Callable[[Path, int, Tools], AbstractAsyncContextManager[Site]]

REPLICATED, SLOTS = "replicated", "slots"
LOSSLESS = (REPLICATED, SLOTS)
SCENARIOS: dict[str, tuple[SiteOf, Break]] = {
    "fail-over": (_site_with_replica, fail_over),
    "truncated": (_site, truncate),
    REPLICATED: (_replicated_site, lose_machine),
    SLOTS: (cluster_site, move_slots),
    "cluster": (cluster_site, kill_primary),
}


def main() -> int:
    words = argparse.ArgumentParser(description="Lose what was acknowledged, and see what holds.")
    words.add_argument("--seed", type=int, default=None)
    words.add_argument("--seeds", type=int, default=1, help="runs of each scenario")
    words.add_argument("--scenario", choices=SCENARIOS, help="all by default")
    add_store(words)
    arguments = words.parse_args()
    tools = Tools(store=store_of(arguments))
    seed = SystemRandom().randrange(SEED_MAX) if arguments.seed is None else arguments.seed
    holds = True
    names = [arguments.scenario] if arguments.scenario else [*SCENARIOS]
    for name, run_seed in product(names, range(seed, seed + arguments.seeds)):
        place = Path(tempfile.mkdtemp(prefix=f"millstream-{name}-"))
        place.chmod(0o755)  # Postgres may have to run as another user
        sys.stdout.write(f"{name}, in {place}\n")
        outcomes = asyncio.run(run_scenario(name, run_seed, place, tools))
        sys.stdout.write(f"{outcomes.report()}\n\n")
        holds = holds and outcomes.holds
    return 0 if holds else 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
