"""The deployment: every process on a machine of its own, behind a load balancer.

    clients ─▶ load balancer ─▶ api 1 ─┬─▶ store 1, 2, 3 (a spare one: 4), replicated
                                api 2 ─┤
    receiver of webhooks ◀── deliverer ┤
                          sweeper 1, 2 ┤
                           worker 1, 2 ┴─▶ postgres 1, 2: a primary and its synchronous standby

The archive is a directory that all machines have, as a file system of the network is.
"""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg

from storage.access.secret_box import new_key
from tests.acceptance.deployment import PROGRAM, without_settings
from tests.chaos.deployment.balancer import ready_status, running_balancer
from tests.chaos.deployment.hosts import Host, Service
from tests.chaos.deployment.releases import Release
from tests.chaos.deployment.stores import PostgresHost, StoreHost, Stores
from tests.chaos.network import HERE, Network, running_network
from tests.chaos.postgres_pair import PostgresPair, postgres_machine, running_pair
from tests.chaos.replica_set import Member, running_replica_set, store_machine, url_of
from tests.chaos.site import ARCHIVING
from tests.chaos.tools import Tools

STORES = 3
SETTLED_S = 90.0
"""Bound of a whole deployment: a killed JVM, a full copy of a store, a base backup of Postgres."""
POLL_S = 0.2
ANSWER_S = 5.0
PROGRAMS = {"api": 2, "sweeper": 2, "deliverer": 1, "worker": 2}


class Deployment:
    """The hosts by name, and what the service is asked about them."""

    def __init__(
        self,
        hosts: Sequence[Host],
        pair: PostgresPair,
        *,
        url: str,
        place: Path,
        environment: dict[str, str],
        hooks_host: str,
    ) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.services = [host for host in hosts if isinstance(host, Service)]
        self.url = url
        self.log = place / "log"
        self.archive = place / "archive"
        self.environment = environment
        self.hooks_host = hooks_host
        self.ended: list[tuple[str, Release]] = []
        """Processes that have ended by themselves, with their versions."""
        self._pair = pair

    async def role(self, name: str) -> str:
        """Return what a host is now: its program, or its role as a store."""
        match self.hosts[name]:
            case StoreHost() as store:
                return f"{await store.role()} store"
            case PostgresHost() as postgres:
                return f"{postgres.role} postgres"
            case _:
                return name.partition(" ")[0]

    async def roll(self, release: Release) -> None:
        """Replace one process after the other by that version, and wait for each."""
        for service in self.services:
            await service.upgrade(release)
            await self.settle()

    async def settle(self) -> None:
        """Wait until every host does its work, as a supervisor of each process. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + SETTLED_S
        while True:
            for service in self.services:
                if not service.runs:
                    self.ended.append((service.name, service.release))
                    await service.start()
            lacking = await self.lacking()
            if not lacking:
                return
            if loop.time() > give_up_at:
                raise TimeoutError(f"not back within {SETTLED_S:.0f} s: {', '.join(lacking)}")
            await asyncio.sleep(POLL_S)

    async def lacking(self) -> list[str]:
        """Return the hosts that do not do their work."""
        async with httpx.AsyncClient(base_url=self.url, timeout=ANSWER_S, trust_env=False) as http:
            processes = await _get(http, "/v1/processes")
            stores = await _get(http, "/v1/stores")
        seen = {process["pid"] for process in processes.get("items", [])}
        lacking = [one.name for one in self.services if not await _serves(one, seen)]
        if stores.get("insync_replicas") != STORES or stores.get("state") != "normal":
            lacking.append("stores")
        if not await self._has_standby():
            lacking.append("standby")
        return lacking

    async def _has_standby(self) -> bool:
        try:
            return await self._pair.is_insync()
        except psycopg.Error:
            return False


async def _serves(service: Service, seen: set[int]) -> bool:
    is_here = bool(service.pids & seen)
    return is_here and (
        service.address == "" or await ready_status(service.address) == httpx.codes.OK
    )


async def _get(http: httpx.AsyncClient, path: str) -> dict[str, Any]:
    try:
        return dict((await http.get(path)).raise_for_status().json())
    except (httpx.HTTPError, ValueError):
        return {}


async def migrate(release: Release, environment: Mapping[str, str]) -> None:
    """Run `millstream migrate` of that version. Raises RuntimeError."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        "migrate",
        cwd=release.root,  # Python looks there first
        env={**without_settings(), **environment, **release.environment},
        stderr=subprocess.PIPE,
    )
    _, stderr = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"migrate of {release.name}: {stderr.decode().strip()}")


@asynccontextmanager
async def running_deployment(
    place: Path, seed: int, release: Release, *, archives: bool
) -> AsyncGenerator[Deployment]:
    """Run a deployment of that version; `archives`: with workers."""
    counts = PROGRAMS if archives else PROGRAMS | {"worker": 0}
    names = [name for program, count in counts.items() for name in _names(program, count)]
    machines = [*map(store_machine, range(1, STORES + 2)), *map(postgres_machine, (1, 2))]
    async with AsyncExitStack() as ends:
        network = ends.enter_context(running_network([*names, *machines]))
        pair = await ends.enter_async_context(running_pair(place, seed, network))
        sets = running_replica_set(place, seed, STORES, Tools(), network, spares=1)
        hot = await ends.enter_async_context(sets)
        members = [member for member in hot.members if isinstance(member, Member)]
        environment = _environment(place, pair, network, archives=archives) | hot.environment
        await migrate(release, environment)
        services = [
            Service(name, network, place=place, environment=environment, release=release)
            for name in names
        ]
        apis = [service.address for service in services if service.address]
        balancer = await ends.enter_async_context(running_balancer(apis, seed))
        url = f"http://{balancer.address}"

        def remember(members: Sequence[Member]) -> None:
            environment["REDIS_URL"] = url_of(members)

        stores = Stores(members, url, remember)
        hosts: list[Host] = [
            *services,
            *(StoreHost(one.name, network, stores, one) for one in stores.members),
            *(PostgresHost(network, pair, node, url) for node in pair.nodes),
        ]
        for service in services:
            ends.push_async_callback(service.stop)
            await service.start()
        deployment = Deployment(
            hosts,
            pair,
            url=url,
            place=place,
            environment=environment,
            hooks_host=network.machine(HERE).address,
        )
        await deployment.settle()
        yield deployment


def _names(program: str, count: int) -> list[str]:
    return [f"{program} {number}" for number in range(1, count + 1)]


def _environment(
    place: Path, pair: PostgresPair, network: Network, *, archives: bool
) -> dict[str, str]:
    archive = place / "archive"
    archive.mkdir()
    archiving = {**ARCHIVING, "MILLSTREAM_ARCHIVE_URL": archive.as_uri()}
    return {
        "DATABASE_URL": f"postgresql://postgres@{pair.address}/millstream?sslmode=disable&target_session_attrs=read-write",
        "MILLSTREAM_WEBHOOK_ALLOW": network.machine(HERE).address,
        "MILLSTREAM_SECRET_KEYS": new_key(),
        "MILLSTREAM_INSECURE": "true",
        **(archiving if archives else {"MILLSTREAM_ARCHIVE_URL": "off"}),
    }
