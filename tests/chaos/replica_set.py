"""Breakable stores of a replica set, and the faults of a schedule that concern them.

Everyone reaches a member through its proxy, whose port is its address. A member's own connections come from a loopback
address of its own, so that a proxy can separate two members, or a member from all but the clients.

    clients, API, controller (127.0.0.1) ─┐
    member 2 (127.0.1.2) ─────────────────┼─▶ proxy of member 1 ─▶ member 1
    member 3 (127.0.1.3) ─────────────────┘
"""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import redis.asyncio
from redis.exceptions import RedisError

from storage.embedded.replicated_stores import StoreMember, StoreRecord, free_ports
from storage.embedded.valkey import Setting
from tests.chaos.proxy import Fault, Proxy, Streams
from tests.chaos.site import HotStore, Store, signalled

PASSWORD = "chaos"
BLIP_S = (0.1, 0.6)
"""Time for which a replica hears nothing before its primary is gone."""
SWITCH_S = 10.0
INSYNC_S = 15.0
POLL_S = 0.1

REPLICA_SET_FAULTS = (
    "kill_primary",
    "lose_primary",
    "kill_replica",
    "kill_two_stores",
    "cut_power",
    "pause_primary",
    "pause_replica",
    "deafen_replica",
    "part_primary",
    "part_replica",
    "slow_replica",
    "switch_over",
    "roll_stores",
)


class ChaosMember(StoreMember):
    """A member whose address is its proxy's, and whose connections have their own source address."""

    def __init__(self, data: Path, record: StoreRecord, number: int, address: int) -> None:
        super().__init__(data, record, number)
        self.source = f"127.0.1.{number}"
        self._address = address

    def _settings(self) -> dict[str, Setting]:
        return super()._settings() | {
            "bind-source-addr": self.source,
            "replica-announce-ip": "127.0.0.1",
            "replica-announce-port": str(self._address),
        }


class Member(Store):
    """A member's server and its proxy."""

    def __init__(self, server: ChaosMember, proxy: Proxy) -> None:
        super().__init__(server, Path())
        self.source = server.source
        self.port = server.port
        self.proxy = proxy

    async def say(self, *words: str) -> Any:
        """Send a command, past its proxy. Raises RedisError, OSError."""
        client = redis.asyncio.Redis(
            port=self.port, password=PASSWORD, socket_timeout=1, decode_responses=True
        )
        async with client:
            return await client.execute_command(*words)

    def wipe(self) -> None:
        """Lose its disk."""
        shutil.rmtree(self.directory)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop its process with SIGSTOP."""
        signalled(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            signalled(self.pid, signal.SIGCONT)


async def _epoch_of_primary(member: Member) -> int:
    with suppress(RedisError, OSError, TimeoutError):
        if (await member.say("ROLE"))[0] == "master":
            return int(await member.say("HGET", "ms:store", "epoch") or 0)
    return -1


@asynccontextmanager
async def running_replica_set(place: Path, seed: int, count: int) -> AsyncIterator[HotStore]:
    """Run that many stores, and a proxy before each."""
    record = StoreRecord(free_ports(count), PASSWORD)
    async with AsyncExitStack() as ends:
        members = []
        for number, port in enumerate(record.ports, start=1):
            connect: Callable[[], Awaitable[Streams]] = partial(
                asyncio.open_connection, "127.0.0.1", port
            )
            proxy = Proxy(connect, Random(f"{seed} store {number}"))
            await ends.enter_async_context(proxy)
            member = Member(ChaosMember(place, record, number, proxy.port), proxy)
            ends.callback(member.stop)
            members.append(member)
        await asyncio.gather(*(member.start() for member in members))
        hosts = ",".join(f"127.0.0.1:{member.proxy.port}" for member in members)
        environment = {
            "REDIS_URL": f"redis://:{PASSWORD}@{hosts}/0",
            "MILLSTREAM_DURABILITY": "replicated",
        }
        yield HotStore(
            f"{count} stores",
            environment,
            {f"store {member.port}": member.proxy for member in members},
            members=members,
        )


class ReplicaSetFaults:
    """The faults of a replica set; each is undone when it returns."""

    def __init__(self, members: Sequence[Member], url: str) -> None:
        self._members = members
        self._url = url

    def named(self) -> dict[str, Callable[[float, float], Awaitable[None]]]:
        """Return the faults by name; each takes its duration in seconds and its luck."""
        return {name: getattr(self, f"_{name}") for name in REPLICA_SET_FAULTS}

    async def _by_role(self) -> tuple[Member, list[Member]]:
        """Return the primary, or any member while there is none, and the others."""
        epochs = await asyncio.gather(*map(_epoch_of_primary, self._members))
        primary = self._members[max(range(len(epochs)), key=epochs.__getitem__)]
        return primary, [member for member in self._members if member is not primary]

    async def _kill_primary(self, seconds: float, luck: float) -> None:
        primary, _ = await self._by_role()
        await _away([primary], seconds)

    async def _lose_primary(self, seconds: float, luck: float) -> None:
        """The primary's machine is gone for good; another one with an empty disk takes its address."""
        primary, _ = await self._by_role()
        primary.kill()
        primary.wipe()
        await asyncio.sleep(seconds)
        await primary.start()

    async def _kill_replica(self, seconds: float, luck: float) -> None:
        _, replicas = await self._by_role()
        await _away([_chosen(replicas, luck)], seconds)

    async def _kill_two_stores(self, seconds: float, luck: float) -> None:
        primary, replicas = await self._by_role()
        await _away([primary, _chosen(replicas, luck)], seconds)

    async def _cut_power(self, seconds: float, luck: float) -> None:
        await _away(self._members, seconds)

    async def _pause_primary(self, seconds: float, luck: float) -> None:
        primary, _ = await self._by_role()
        with primary.paused():
            await asyncio.sleep(seconds)

    async def _pause_replica(self, seconds: float, luck: float) -> None:
        _, replicas = await self._by_role()
        with _chosen(replicas, luck).paused():
            await asyncio.sleep(seconds)

    async def _deafen_replica(self, seconds: float, luck: float) -> None:
        """A replica misses what the other one has, and then the primary is gone."""
        primary, replicas = await self._by_role()
        deaf = _chosen(replicas, luck)
        with _parted(primary, [deaf]):
            await asyncio.sleep(BLIP_S[0] + luck * (BLIP_S[1] - BLIP_S[0]))
        await _away([primary], seconds)

    async def _part_primary(self, seconds: float, luck: float) -> None:
        primary, _ = await self._by_role()
        await _part(primary, self._members, seconds)

    async def _part_replica(self, seconds: float, luck: float) -> None:
        _, replicas = await self._by_role()
        await _part(_chosen(replicas, luck), self._members, seconds)

    async def _slow_replica(self, seconds: float, luck: float) -> None:
        primary, replicas = await self._by_role()
        with _parted(primary, [_chosen(replicas, luck)], Fault.SLOW):
            await asyncio.sleep(seconds)

    async def _switch_over(self, seconds: float, luck: float) -> None:
        await self._request_switch()
        await asyncio.sleep(seconds)

    async def _roll_stores(self, seconds: float, luck: float) -> None:
        """Restart each store as an upgrade does: the replicas, and then the former primary."""
        primary, replicas = await self._by_role()
        for replica in replicas:
            await self._restart(replica)
        await self._request_switch()
        await self._restart(primary)

    async def _restart(self, member: Member) -> None:
        member.stop()
        await member.start()
        for _ in range(int(INSYNC_S / POLL_S)):
            if await self._insync() == len(self._members):
                return
            await asyncio.sleep(POLL_S)

    async def _insync(self) -> int:
        stores = await self._request("GET", "/v1/stores")
        return int(stores.get("insync_replicas", 0))

    async def _request_switch(self) -> None:
        """Ask for another primary; a refusal while other faults last is as good."""
        await self._request("POST", "/v1/stores/switch-over", {})

    async def _request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Return the body of a response, or nothing if there is none."""
        try:
            async with httpx.AsyncClient(base_url=self._url, timeout=SWITCH_S) as http:
                response = await http.request(method, path, json=body)
                return dict(response.json())
        except (httpx.TransportError, ValueError):
            return {}


async def _away(members: Sequence[Member], seconds: float) -> None:
    for member in members:
        member.kill()
    await asyncio.sleep(seconds)
    await asyncio.gather(*(member.start() for member in members))


@contextmanager
def _parted(
    member: Member, others: Sequence[Member], fault: Fault = Fault.HALF_OPEN
) -> Iterator[None]:
    """Break the connections of others to a member."""
    for other in others:
        member.proxy.be(fault, other.source)
    try:
        yield
    finally:
        for other in others:
            member.proxy.be(Fault.NONE, other.source)


async def _part(alone: Member, members: Sequence[Member], seconds: float) -> None:
    """Cut a member off from everyone, in both directions."""
    others = [member for member in members if member is not alone]
    alone.proxy.be(Fault.HALF_OPEN)
    try:
        with ExitStack() as parted:
            for other in others:
                parted.enter_context(_parted(other, [alone]))
            await asyncio.sleep(seconds)
    finally:
        alone.proxy.be(Fault.NONE)


def _chosen(members: Sequence[Member], luck: float) -> Member:
    return members[int(luck * len(members))]
