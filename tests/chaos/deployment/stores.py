"""Hosts of the two stores: members of the replica set, with a spare one, and the Postgres pair."""

import asyncio
from collections.abc import Callable, Sequence

import httpx
from redis.exceptions import RedisError

from tests.acceptance.deployment import descendants
from tests.chaos.deployment.hosts import Host
from tests.chaos.network import Network
from tests.chaos.postgres_pair import Node, PostgresPair
from tests.chaos.replica_set import Member
from tests.chaos.requests import GIVES_UP_S, RETRY_S

PRIMARY, REPLICA, STANDBY = "primary", "replica", "standby"


class StoreHost(Host):
    """A place in the replica set, whose member may be replaced by the spare one."""

    def __init__(self, name: str, network: Network, stores: "Stores", member: Member) -> None:
        super().__init__(name, network)
        self.member = member
        self._stores = stores

    @property
    def machine(self) -> str:
        return self.member.name

    @property
    def pids(self) -> set[int]:
        return {self.member.pid, *descendants(self.member.pid)}

    def lose(self) -> None:
        self.member.kill()

    async def start(self) -> None:
        await self.member.start()

    async def replace(self, seconds: float) -> None:
        """Lose it with its disk; `millstream store replace` then puts the spare one in its place."""
        lost = self.member
        lost.lose()
        lost.wipe()
        await asyncio.sleep(seconds)
        self.member = await self._stores.replace(lost)
        await lost.return_()

    async def role(self) -> str:
        """Return its role."""
        try:
            return PRIMARY if (await self.member.say("ROLE"))[0] == "master" else REPLICA
        except (RedisError, OSError):
            return REPLICA


class Stores:
    """Members of a replica set, and a spare store."""

    def __init__(
        self, members: Sequence[Member], url: str, on_change: Callable[[Sequence[Member]], None]
    ) -> None:
        *self.members, self._spare = members
        self._url = url
        self._on_change = on_change

    async def replace(self, lost: Member) -> Member:
        """Replace a lost member by the spare store, which the lost one then is. Returns the new member."""
        new = self._spare
        change = {"old": lost.proxy.address, "new": new.proxy.address}
        async with (
            asyncio.timeout(GIVES_UP_S),
            httpx.AsyncClient(base_url=self._url, trust_env=False, timeout=GIVES_UP_S) as http,
        ):
            await _until_replaced(http, change)
        self.members[self.members.index(lost)], self._spare = new, lost
        self._on_change(self.members)
        return new


async def _until_replaced(http: httpx.AsyncClient, change: dict[str, str]) -> None:
    while True:
        if await _is_replaced(http, change):
            return
        await asyncio.sleep(RETRY_S)


async def _is_replaced(http: httpx.AsyncClient, change: dict[str, str]) -> bool:
    """Ask for the change; return whether it is made, also by an earlier request."""
    try:
        if (await http.post("/v1/stores/replace", json=change)).is_success:
            return True
        stores = (await http.get("/v1/stores")).json()
    except (httpx.TransportError, ValueError):
        return False
    return change["new"] in [member["address"] for member in stores.get("members", [])]


class PostgresHost(Host):
    """A machine of the Postgres pair."""

    def __init__(self, network: Network, pair: PostgresPair, node: Node, url: str) -> None:
        super().__init__(node.name, network)
        self._pair = pair
        self._node = node
        self._url = url

    @property
    def machine(self) -> str:
        return self._node.name

    @property
    def pids(self) -> set[int]:
        return {self._node.store.pid, *descendants(self._node.store.pid)}

    def lose(self) -> None:
        self._node.store.kill()

    async def start(self) -> None:
        await self._node.store.start()

    async def replace(self, seconds: float) -> None:
        """Lose it with its disk. Promote the standby if it was the primary, and attach another standby."""
        if self._pair.primary is self._node:
            await self._pair.fail_over(self._url, seconds, luck=0.0)
            return
        self._node.lose(is_silent=True)
        await asyncio.sleep(seconds)
        await self._pair.attach()

    @property
    def role(self) -> str:
        """Its role."""
        return PRIMARY if self._pair.primary is self._node else STANDBY
