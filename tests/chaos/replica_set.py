"""Breakable stores of a replica set, and the faults of a schedule that concern them.

Everyone reaches a member through its proxy, whose port is its address. With a network, each member is a machine of its own, and
so are Postgres and a second controller; partitions are dropped packets there. Without one, a member's own connections come
from a loopback address of its own, so that a proxy can separate two members, or a member from all.

    clients, API, controller (127.0.0.1 or a machine) ─┐
    member 2 (127.0.1.2 or a machine) ─────────────────┼─▶ proxy of member 1 ─▶ member 1
    member 3 (127.0.1.3 or a machine) ─────────────────┘
"""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psycopg
import redis.asyncio
from redis.exceptions import RedisError

from storage.embedded.replicated_stores import StoreMember, StoreRecord, free_ports
from storage.embedded.sockets import socket_directory
from storage.embedded.valkey import Setting, ValkeyEndpoint
from tests.chaos.network import HERE, Machine, Network
from tests.chaos.proxy import Fault, Proxy
from tests.chaos.site import CONTROLLER, POSTGRES, HotStore, Site, Store, signalled
from tests.chaos.tools import SmallDisk, Tools, failing_fsync, small_disk

PASSWORD = "chaos"
BLIP_S = (0.1, 0.6)
"""Time for which a replica hears nothing before its primary is gone."""
CHANGE_S = 2.0
"""Time within which a change of the primary usually ends, and the controller is stopped."""
SWITCH_S = 10.0
INSYNC_S = 15.0
COPIED_S = 10.0
POLL_S = 0.1

NETWORK_FAULTS = ("part_primary_and_clients", "part_half", "part_controller", "part_postgres")
"""Faults that require network namespaces."""
REPLICA_SET_FAULTS = (
    "kill_primary",
    "lose_primary",
    "kill_replica",
    "kill_two_stores",
    "wipe_replica",
    "cut_power",
    "pause_primary",
    "pause_replica",
    "stop_controller",
    "deafen_replica",
    "part_primary",
    "part_replica",
    "slow_replica",
    "disk_full_store",
    "fsync_error_store",
    "switch_over",
    "roll_stores",
    *NETWORK_FAULTS,
)
_HOLDER = "select holder from leases where name = 'replica_set'"


def store_machine(number: int) -> str:
    """Return the name of a member's machine."""
    return f"store {number}"


class ChaosMember(StoreMember):
    """A member whose address is its proxy's; its connections have their own source address.

    It is reached through a unix socket by its proxy, and by the faults.
    """

    def __init__(
        self, data: Path, record: StoreRecord, number: int, address: str, machine: Machine | None
    ) -> None:
        super().__init__(data, record, number)
        self.source = machine.address if machine else f"127.0.1.{number}"
        self._number = number
        self._address = address
        self._machine = machine

    @property
    def socket(self) -> Path:
        return socket_directory(self._data, f"store-{self._number}") / "valkey.sock"

    def _launcher(self) -> list[str]:
        return [*(self._machine.launcher if self._machine else []), *super()._launcher()]

    def _settings(self) -> dict[str, Setting]:
        host, _, port = self._address.partition(":")
        return super()._settings() | {
            "unixsocket": str(self.socket),
            "bind-source-addr": self.source,
            "replica-announce-ip": host,
            "replica-announce-port": port,
        }

    @property
    def _endpoint(self) -> ValkeyEndpoint:
        return {"unix_socket_path": str(self.socket)}


class Member(Store):
    """A member's server, its proxy, and its machine and disk if it has them."""

    def __init__(
        self,
        server: ChaosMember,
        proxy: Proxy,
        *,
        number: int,
        network: Network | None,
        disk: SmallDisk | None,
    ) -> None:
        super().__init__(server, server.socket)
        self.source = server.source
        self.name = store_machine(number)
        self.proxy = proxy
        self.disk = disk
        self._network = network

    async def say(self, *words: str) -> Any:
        """Send a command, past its proxy. Raises RedisError, OSError."""
        client = redis.asyncio.Redis(
            unix_socket_path=str(self.socket),
            password=PASSWORD,
            socket_timeout=1,
            decode_responses=True,
        )
        async with client:
            return await client.execute_command(*words)

    def lose(self) -> None:
        """Lose its process, and with a network the link of its machine at the same instant."""
        if self._network is not None:
            self._network.connect(self.name, is_up=False)
        self.kill()

    async def return_(self) -> None:
        """Start it again, and its machine."""
        if self._network is not None:
            self._network.connect(self.name, is_up=True)
        await self.start()

    def wipe(self) -> None:
        """Lose its disk."""
        for path in self.directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop its process with SIGSTOP."""
        with stopped(self.pid):
            yield


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process with SIGSTOP."""
    signalled(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        signalled(pid, signal.SIGCONT)


async def _epoch_of_primary(member: Member) -> int:
    with suppress(RedisError, OSError, TimeoutError):
        if (await member.say("ROLE"))[0] == "master":
            return int(await member.say("HGET", "ms:store", "epoch") or 0)
    return -1


async def _has_copy(member: Member) -> bool:
    """Return whether a replica has received all that its primary had."""
    with suppress(RedisError, OSError, TimeoutError):
        role = await member.say("ROLE")
        return bool(role[0] == "slave" and role[3] == "connected")
    return False


@asynccontextmanager
async def running_replica_set(
    place: Path,
    seed: int,
    count: int,
    tools: Tools,
    network: Network | None = None,
    spares: int = 0,
) -> AsyncIterator[HotStore]:
    """Run that many stores, `spares` that are no members, and a proxy before each."""
    record = StoreRecord(free_ports(count + spares), PASSWORD)
    async with AsyncExitStack() as ends:
        members: list[Member] = []

        async def connect(number: int) -> Any:
            return await members[number - 1].connect()

        for number in range(1, count + spares + 1):
            machine = network.machine(store_machine(number)) if network else None
            proxy = Proxy(
                lambda number=number: connect(number),  # type: ignore[misc]
                Random(f"{seed} store {number}"),
                listener=machine.listener() if machine else None,
            )
            await ends.enter_async_context(proxy)
            server = ChaosMember(place, record, number, proxy.address, machine)
            disk = ends.enter_context(small_disk(server.directory)) if tools.disk else None
            member = Member(server, proxy, number=number, network=network, disk=disk)
            ends.callback(member.stop)
            members.append(member)
        await asyncio.gather(*(member.start() for member in members))
        environment = {
            "REDIS_URL": url_of(members[:count]),
            "MILLSTREAM_DURABILITY": "replicated",
        }
        yield HotStore(
            f"{count} stores" + (" on machines of their own" if network else ""),
            environment,
            {member.name: member.proxy for member in members},
            members=members,
        )


def url_of(members: Sequence[Member]) -> str:
    """Return the URL of a replica set of these members."""
    return f"redis://:{PASSWORD}@{','.join(member.proxy.address for member in members)}/0"


class ReplicaSetFaults:
    """The faults of a replica set; each is undone when it returns."""

    def __init__(self, site: Site) -> None:
        self._members = [member for member in site.hot.members if isinstance(member, Member)]
        self._site = site
        self._network = site.network

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
        primary, replicas = await self._by_role()
        has_copies = await self._until_copied(replicas)
        primary.lose()
        if has_copies:
            primary.wipe()
        await asyncio.sleep(seconds)
        await primary.return_()

    async def _until_copied(self, replicas: Sequence[Member]) -> bool:
        """Wait until the replicas have a copy; return whether they have.

        A disk that is lost while another one is empty is more than is promised: only the third member has all data then.
        """
        for _ in range(int(COPIED_S / POLL_S)):
            if all(await asyncio.gather(*map(_has_copy, replicas))):
                return True
            await asyncio.sleep(POLL_S)
        return False

    async def _kill_replica(self, seconds: float, luck: float) -> None:
        _, replicas = await self._by_role()
        await _away([_chosen(replicas, luck)], seconds)

    async def _kill_two_stores(self, seconds: float, luck: float) -> None:
        primary, replicas = await self._by_role()
        await _away([primary, _chosen(replicas, luck)], seconds)

    async def _wipe_replica(self, seconds: float, luck: float) -> None:
        """A replica returns with an empty disk as the primary goes."""
        primary, replicas = await self._by_role()
        empty = _chosen(replicas, luck)
        has_copies = await self._until_copied(replicas)
        empty.lose()
        if has_copies:
            empty.wipe()
        primary.lose()
        await empty.return_()
        await asyncio.sleep(seconds)
        await primary.return_()

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

    async def _stop_controller(self, seconds: float, luck: float) -> None:
        """The process that changes the primary stalls at some step, and another one takes over."""
        primary, _ = await self._by_role()
        primary.lose()
        await asyncio.sleep(luck * CHANGE_S)
        with ExitStack() as stalled:
            if (pid := await self._controller()) is not None:
                stalled.enter_context(stopped(pid))
            await asyncio.sleep(seconds)
        await primary.return_()

    async def _controller(self) -> int | None:
        """Return the process that has the controllers' lease, or None if Postgres does not answer."""
        with suppress(psycopg.Error):
            url = self._site.postgres.url
            async with await psycopg.AsyncConnection.connect(url, connect_timeout=1) as connection:
                row = await (await connection.execute(_HOLDER)).fetchone()
                return int(row[0].split(":")[1]) if row else None
        return None

    async def _deafen_replica(self, seconds: float, luck: float) -> None:
        """A replica misses what the other one has, and then the primary is gone."""
        primary, replicas = await self._by_role()
        with self._parted([primary], [_chosen(replicas, luck)]):
            await asyncio.sleep(BLIP_S[0] + luck * (BLIP_S[1] - BLIP_S[0]))
        await _away([primary], seconds)

    async def _part_primary(self, seconds: float, luck: float) -> None:
        primary, replicas = await self._by_role()
        with self._parted([primary], replicas, *self._others()):
            await asyncio.sleep(seconds)

    async def _part_replica(self, seconds: float, luck: float) -> None:
        primary, replicas = await self._by_role()
        alone = _chosen(replicas, luck)
        others = [member for member in (primary, *replicas) if member is not alone]
        with self._parted([alone], others, *self._others()):
            await asyncio.sleep(seconds)

    async def _part_primary_and_clients(self, seconds: float, luck: float) -> None:
        """The primary and its clients on one side; the replicas, Postgres and a controller on the other."""
        primary, replicas = await self._by_role()
        with self._separated([primary.name, HERE], [*_names(replicas), POSTGRES, CONTROLLER]):
            await asyncio.sleep(seconds)

    async def _part_half(self, seconds: float, luck: float) -> None:
        """The primary, a replica and the clients on one side, and the rest on the other."""
        primary, replicas = await self._by_role()
        near = _chosen(replicas, luck)
        far = [name for name in _names(replicas) if name != near.name]
        with self._separated([primary.name, near.name, HERE], [*far, POSTGRES, CONTROLLER]):
            await asyncio.sleep(seconds)

    async def _part_controller(self, seconds: float, luck: float) -> None:
        """The controller that acts reaches Postgres and no store, and then the primary is gone."""
        primary, _ = await self._by_role()
        remote = self._site.controller
        is_remote = remote is not None and await self._controller() == remote.pid
        with self._separated([CONTROLLER if is_remote else HERE], _names(self._members)):
            await asyncio.sleep(luck * CHANGE_S)
            await _away([primary], seconds)

    async def _part_postgres(self, seconds: float, luck: float) -> None:
        with self._separated([POSTGRES], [HERE, CONTROLLER]):
            await asyncio.sleep(seconds)

    async def _slow_replica(self, seconds: float, luck: float) -> None:
        primary, replicas = await self._by_role()
        with _disturbed(primary, [_chosen(replicas, luck)], Fault.SLOW):
            await asyncio.sleep(seconds)

    async def _disk_full_store(self, seconds: float, luck: float) -> None:
        """Fill a store's disk; the store exits, and is restarted with free space."""
        member = _chosen(self._members, luck)
        assert member.disk is not None
        member.disk.fill()
        try:
            await asyncio.sleep(seconds)
        finally:
            member.disk.empty()
        await member.revive()

    async def _fsync_error_store(self, seconds: float, luck: float) -> None:
        strace = self._site.tools.strace
        assert strace is not None
        member = _chosen(self._members, luck)
        with failing_fsync(strace, member.pid):
            await asyncio.sleep(seconds)
        await member.revive()

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
            async with httpx.AsyncClient(base_url=self._site.url, timeout=SWITCH_S) as http:
                response = await http.request(method, path, json=body)
                return dict(response.json())
        except (httpx.TransportError, ValueError):
            return {}

    def _others(self) -> list[str]:
        """Machines that are no stores."""
        return [HERE, POSTGRES, CONTROLLER] if self._network else [HERE]

    @contextmanager
    def _parted(
        self, side: Sequence[Member], others: Sequence[Member], *machines: str
    ) -> Iterator[None]:
        """Separate members from others, and from these machines, in both directions."""
        if self._network is not None:
            with self._network.parted(_names(side), [*_names(others), *machines]):
                yield
            return
        with ExitStack() as parted:
            for member in side:
                if machines:
                    parted.enter_context(_swallowing(member))
                parted.enter_context(_disturbed(member, others, Fault.HALF_OPEN))
            for other in others:
                parted.enter_context(_disturbed(other, side, Fault.HALF_OPEN))
            yield

    @contextmanager
    def _separated(self, *sides: Sequence[str]) -> Iterator[None]:
        assert self._network is not None
        with self._network.parted(*sides):
            yield


async def _away(members: Sequence[Member], seconds: float) -> None:
    for member in members:
        member.lose()
    await asyncio.sleep(seconds)
    await asyncio.gather(*(member.return_() for member in members))


@contextmanager
def _disturbed(member: Member, others: Sequence[Member], fault: Fault) -> Iterator[None]:
    """Apply a fault to the connections of others to a member."""
    for other in others:
        member.proxy.be(fault, other.source)
    try:
        yield
    finally:
        for other in others:
            member.proxy.be(Fault.NONE, other.source)


@contextmanager
def _swallowing(member: Member) -> Iterator[None]:
    """Deliver nothing that is sent to a member."""
    member.proxy.be(Fault.HALF_OPEN)
    try:
        yield
    finally:
        member.proxy.be(Fault.NONE)


def _names(members: Sequence[Member]) -> list[str]:
    return [member.name for member in members]


def _chosen(members: Sequence[Member], luck: float) -> Member:
    return members[int(luck * len(members))]
