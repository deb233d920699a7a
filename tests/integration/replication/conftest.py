"""Four stores, of which a replica set begins with three, and its engine and steps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest

from storage.concurrency.tasks import in_background
from storage.domain.clock import SystemClock
from storage.domain.replication.replica_set import Phase, PrimaryChange, ReplicaSet
from storage.hot_store.members import WriteOutcome
from storage.postgres.database import Database, open_database
from storage.postgres.listener import Listener
from storage.postgres.repositories.leases import LeaseRows
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.redis.member_store import RedisMembers
from storage.replication.controller import ReplicationController
from storage.replication.engine import ReplicaSetEngine
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.folders import quick_folder
from tests.replica_sets import Store, running_stores, url_of


@pytest.fixture(scope="package")
def started_stores() -> Iterator[list[Store]]:
    with quick_folder("members") as data, running_stores(data, 4) as stores:
        yield stores


@pytest.fixture
def stores(started_stores: list[Store]) -> list[Store]:
    """Stores that run, with what the test before has left in them."""
    for store in started_stores:
        store.revive()
    started_stores[3].run("REPLICAOF", "127.0.0.1", 1)  # WAIT would count it
    return started_stores


@pytest.fixture
def empty_stores(stores: list[Store]) -> list[Store]:
    """Empty stores that follow nobody."""
    for store in stores:
        store.empty()
    return stores


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    settings = StorageSettings(redis_url="redis://127.0.0.1", database_url=database_url)
    async with open_database(settings) as database:
        yield database


@pytest.fixture
def rows(database: Database) -> ReplicaSetRows:
    return ReplicaSetRows(database)


@pytest.fixture
async def members(stores: list[Store]) -> AsyncIterator[RedisMembers]:
    members = RedisMembers(url_of(stores[:3]))
    yield members
    await members.close()


@dataclass
class Deployment:
    """A replica set of the first three stores."""

    stores: list[Store]
    rows: ReplicaSetRows
    members: RedisMembers
    database: Database
    changes: list[PrimaryChange] = field(default_factory=list)
    """Kinds of the changes of the primary that the engine and controllers have reported."""

    def __post_init__(self) -> None:
        self.addresses = [store.address for store in self.stores[:3]]

    @property
    def engine(self) -> ReplicaSetEngine:
        return ReplicaSetEngine(self.rows, self.members, self.changes.append)

    def controller(self, listener: Listener | None = None) -> ReplicationController:
        return ReplicationController(
            rows=self.rows,
            members=self.members,
            leases=LeaseRows(self.database, SystemClock()),
            holder="one",
            listener=listener,
            on_primary_change=self.changes.append,
            addresses=self.addresses,
            min_insync_replicas=2,
        )

    def acting(self) -> Any:
        """Run a controller while the block runs."""
        return in_background(self.controller().run(), "controller")

    def at(self, address: str) -> Store:
        return next(store for store in self.stores if store.address == address)

    async def row(self) -> ReplicaSet:
        row = await self.rows.read()
        assert row is not None
        return row

    async def begin(self) -> ReplicaSet:
        """Create the replica set, whose first address is the primary, and wait until it is in sync.

        The stores of the test before resync partially, which takes no time.
        """
        term = 1 + await self._highest_term()
        promises = await self.members.promise(self.addresses, term)
        self.addresses.sort(
            key=lambda address: (promises[address].position, promises[address].offset),
            reverse=True,
        )
        [primary, *others] = self.addresses
        assert await self.members.promote(primary, term, 2)
        await self.members.attach(others, primary, term)
        self.at(primary).run("DEL", "values")
        assert await self.rows.initialize(self.addresses, primary, term, 2)
        await self.until_insync(replicas=2)
        return await self.row()

    async def _highest_term(self) -> int:
        await until(self._all_answer)
        facts = await self.members.observe(self.addresses)
        return max(max(state.promise, state.position.epoch) for state in facts.values())

    async def _all_answer(self) -> bool:
        return len(await self.members.observe(self.addresses)) == len(self.addresses)

    async def until_insync(self, replicas: int) -> None:
        row = await self.row()

        async def is_confirmed() -> bool:
            outcome = await self.members.confirm(row.primary, row.epoch, replicas, 100)
            return outcome is WriteOutcome.CONFIRMED

        await until(is_confirmed)

    async def until_normal(self, is_expected: Callable[[ReplicaSet], bool]) -> ReplicaSet:
        """Wait until the row is normal and as expected, and confirms writes."""

        async def is_reached() -> bool:
            row = await self.row()
            if row.phase is not Phase.NORMAL or not is_expected(row):
                return False
            outcome = await self.members.confirm(
                row.primary, row.epoch, row.acknowledging_replicas, 100
            )
            return outcome is WriteOutcome.CONFIRMED

        await until(is_reached)
        return await self.row()

    def write(self, address: str, value: str, replicas: int = 1) -> bool:
        """Write as a flush does; return whether it is acknowledged."""
        with self.at(address).client() as client:
            with client.pipeline() as flush:
                flush.rpush("values", value)
                flush.hincrby("ms:store", "position", 1)
                flush.execute()
            received = client.wait(replicas, 500)
            on_disk = client.execute_command("WAITAOF", 1, replicas, 500)
        return bool(received >= replicas and on_disk[0] >= 1 and on_disk[1] >= replicas)

    def values(self, address: str) -> list[str]:
        return [value.decode() for value in self.at(address).run("LRANGE", "values", 0, -1)]


@pytest.fixture
def deployment(
    stores: list[Store], rows: ReplicaSetRows, members: RedisMembers, database: Database
) -> Deployment:
    return Deployment(stores, rows, members, database)


async def until(is_reached: Any) -> None:
    """Wait for a state, until a deadline."""
    give_up_at = monotonic() + PATIENCE_S
    while not await is_reached():
        assert monotonic() < give_up_at, "the state was not reached"
        await asyncio.sleep(0.01)
