"""A Redis Cluster of breakable servers: slots that move, and primaries that change.

Three primaries with a replica each. The service reaches them directly: a cluster names the addresses of its servers itself.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from time import monotonic, sleep

from tests.chaos.site import HotStore, Site, running_site
from tests.chaos.tools import Tools
from tests.clusters import MASTERS, Masters, running_masters

MOVES = 24  # slots, each with keys; every second one as before Valkey 9, key by key
KEYS_AT_ONCE = 10  # of a slot that is moved key by key: calls to its log are rejected meanwhile
MIGRATE_MS = 5_000
CHANGE_S = 30.0
POLL_S = 0.02


@asynccontextmanager
async def cluster_site(place: Path, seed: int, tools: Tools) -> AsyncIterator[Site]:
    """Run a deployment on a cluster."""
    folder = place / "cluster"
    folder.mkdir()
    with running_masters(folder) as cluster:
        with cluster.direct(0) as client:
            version = f"cluster of {MASTERS}, {client.info('server')['redis_version']}"
        hot = HotStore(version, {"REDIS_URL": cluster.url}, {}, cluster=cluster)
        async with running_site(
            place, seed, tools, archives=False, stores=_as_context(hot)
        ) as site:
            yield site


@asynccontextmanager
async def _as_context(hot: HotStore) -> AsyncIterator[HotStore]:
    yield hot


async def move_slots(site: Site, chance: Random) -> str:
    """Move slots in use from each primary to the next, then let each replica take over as planned."""
    cluster = site.hot.cluster
    assert cluster is not None
    for moved, source in zip(range(MOVES), cycle(range(MASTERS)), strict=False):
        move = _move_by_keys if moved % 2 else _move_at_once
        await asyncio.to_thread(_move_one, cluster, source, move, chance)
    for nth in range(MASTERS):
        await asyncio.to_thread(_take_over, cluster, nth)
    return f"{MOVES} slots were moved, and {MASTERS} replicas took over as planned"


async def kill_primary(site: Site, chance: Random) -> str:
    """kill -9 a primary; its replica takes over."""
    cluster = site.hot.cluster
    assert cluster is not None
    nth = chance.randrange(MASTERS)
    os.kill(cluster.pids()[nth], signal.SIGKILL)
    await asyncio.to_thread(_until, partial(_is_primary, cluster, nth + MASTERS))
    return "a primary was killed, and its replica took over"


def _move_one(
    cluster: Masters, source: int, move: Callable[[Masters, int, int, int], None], chance: Random
) -> None:
    target = (source + 1) % MASTERS
    slot = chance.choice(_slots_in_use(cluster, source))
    move(cluster, source, target, slot)
    for nth in range(MASTERS):
        _until(partial(_knows, cluster, nth, slot, target))


def _slots_in_use(cluster: Masters, nth: int) -> list[int]:
    """Return the slots of a primary that have keys of logs."""
    with cluster.direct(nth) as client:
        keys = list(client.scan_iter(match="ms:*:log", count=1_000))
        return sorted({int(client.execute_command("CLUSTER", "KEYSLOT", key)) for key in keys})


def _move_at_once(cluster: Masters, source: int, target: int, slot: int) -> None:
    """Move a slot as Valkey 9 does: at once, when the other has a copy of it."""
    with cluster.direct(source) as client:
        words = ("SLOTSRANGE", slot, slot, "NODE", _id_of(cluster, target))
        client.execute_command("CLUSTER", "MIGRATESLOTS", *words)
    _until(partial(_knows, cluster, target, slot, target))


def _move_by_keys(cluster: Masters, source: int, target: int, slot: int) -> None:
    """Move a slot as `valkey-cli --cluster reshard` does."""
    ids = [_id_of(cluster, source), _id_of(cluster, target)]
    node = cluster.nodes[target]
    where = ("127.0.0.1", node.port, "", 0, MIGRATE_MS, "AUTH", node.password)
    with cluster.direct(source) as giver, cluster.direct(target) as taker:
        taker.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        giver.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        while keys := giver.execute_command("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE):
            giver.execute_command("MIGRATE", *where, "KEYS", *keys)
        for client in (taker, giver):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])


def _take_over(cluster: Masters, nth: int) -> None:
    with cluster.direct(nth + MASTERS) as client:
        client.execute_command("CLUSTER", "FAILOVER")
    _until(partial(_is_primary, cluster, nth + MASTERS))
    _until(partial(_is_linked_replica, cluster, nth))


def _id_of(cluster: Masters, nth: int) -> str:
    with cluster.direct(nth) as client:
        return str(client.execute_command("CLUSTER", "MYID").decode())


def _knows(cluster: Masters, asked: int, slot: int, owner: int) -> bool:
    """Return whether a server knows the owner of a slot."""
    with cluster.direct(asked) as client:
        rows = client.execute_command("CLUSTER", "SLOTS")
    port = cluster.nodes[owner].port
    return any(first <= slot <= last and row[1] == port for first, last, row, *_ in rows)


def _is_primary(cluster: Masters, nth: int) -> bool:
    with cluster.direct(nth) as client:
        return bool(client.info("replication")["role"] == "master")


def _is_linked_replica(cluster: Masters, nth: int) -> bool:
    with cluster.direct(nth) as client:
        return bool(client.info("replication").get("master_link_status") == "up")


def _until(condition: Callable[[], bool]) -> None:
    give_up_at = monotonic() + CHANGE_S
    while not condition():
        assert monotonic() < give_up_at, "the cluster does not change as asked"
        sleep(POLL_S)
