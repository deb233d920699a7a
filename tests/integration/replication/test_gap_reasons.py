"""Reasons of holes: a fail-over that lost nothing is told apart from every loss."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import psycopg
import pytest

from storage.bootstrap import Storage, open_storage
from storage.domain.groups.group import Commit, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.log.store_epoch import StoreFacts, StoreIdentity, lossless_since
from storage.domain.names import GroupName, LogId, StreamName
from storage.domain.replication.replica_set import Phase
from storage.domain.streams.stream import Gap, GapReason, ReadFrom, StreamSpec
from storage.postgres.database import Database
from storage.postgres.repositories.offset_reservations import Reservations, StoreIdentities
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.settings import StorageSettings
from tests.integration.replication.conftest import Deployment
from tests.integration.replication.test_group_offsets import repeated
from tests.integration.reservations import open_log
from tests.replica_sets import url_of

A, B, C = (f"127.0.0.1:{port}" for port in range(7001, 7004))
CLICKS, READERS = StreamName("clicks"), GroupName("readers")
LOG = LogId("log")
HOLE, FAILOVER = GapReason.HOLE, GapReason.FAILOVER


@dataclass
class History:
    """A log that is opened between changes of the store, and has 10 records in each epoch."""

    rows: ReplicaSetRows
    database: Database
    database_url: str
    epoch: int = 0
    next: int | None = None

    async def open(self, *, next_: int | None = -1) -> None:
        """Open the log in the present epoch; `next_`: what the store knows, by default everything."""
        hot_next = self.next if next_ == -1 else next_
        opened = await open_log(Reservations(self.database), LOG, self.epoch, hot_next, 100)
        assert opened is not None
        self.next = opened.next + 10

    async def create_replica_set(self) -> None:
        self.epoch += 1
        assert await self.rows.initialize((A, B, C), A, self.epoch, 2)

    async def fail_over(self) -> None:
        await self._change(lambda term: self.rows.promote(term, B))

    async def raise_min_insync(self) -> None:
        await self._change(lambda term: self.rows.promote(term, A, min_insync_replicas=3))

    async def recover(self) -> None:
        await self._change(lambda term: self.rows.recover(term, B, (A, B, C)))

    async def fail_over_by_earlier_version(self) -> None:
        """Promote a member as a version that does not record what is lossless."""
        self.epoch += 1
        await self.execute(
            f"update deployment set store_epoch = {self.epoch}, store_term = {self.epoch}"
        )

    async def _change(self, promote: Callable[[int], Awaitable[bool]]) -> None:
        self.epoch += 1
        row = await self.rows.read()
        assert row is not None
        assert await self.rows.begin(self.epoch, after=row, phase=Phase.FENCE)
        assert await promote(self.epoch)
        assert await self.rows.end(self.epoch)

    async def decide(
        self, *, is_replicated: bool, beacon: int = 100, epoch: int | None = None
    ) -> None:
        """Give a store that is used alone a new epoch, as after the fail-over of an engine or a Sentinel."""
        async with StoreIdentities(self.database).decide() as decision:
            remembered = decision.remembered
            facts = StoreFacts(
                epoch=remembered.epoch if epoch is None else epoch,
                beacon=beacon,
                replid="other",
                promoted=True,
                fsync_always=True,
                restarted=True,
            )
            self.epoch = remembered.epoch + 1
            since = lossless_since(remembered, facts, self.epoch, is_replicated=is_replicated)
            await decision.remember(StoreIdentity(self.epoch, "other", beacon, since))

    async def archive(self, up_to: int) -> None:
        await self.execute(
            "insert into archive_shards (stream_id, shard, namespace, log_id, start, archived, archived_at_ms)"
            f" values ('s', 0, 'default', '{LOG}', 0, {up_to}, 0)"
        )

    async def execute(self, statement: str) -> None:
        async with await psycopg.AsyncConnection.connect(
            self.database_url, autocommit=True
        ) as connection:
            await connection.execute(statement.encode())

    async def reasons(self) -> list[GapReason]:
        return [hole.reason for hole in await Reservations(self.database).holes(LOG)]


@pytest.fixture
async def history(rows: ReplicaSetRows, database: Database, database_url: str) -> History:
    history = History(rows, database, database_url)
    await history.execute(
        f"insert into logs (log_id, namespace, ceiling, log_epoch, epoch_start) values ('{LOG}', 'default', 0, 0, 0)"
    )
    return history


async def opened(history: History) -> None:
    await history.create_replica_set()
    await history.open(next_=None)


async def test_fail_over_of_replica_set_is_told(history):
    await opened(history)
    await history.fail_over()
    await history.open()

    assert await history.reasons() == [FAILOVER]


async def test_several_changes_of_primary_are_told_as_fail_over(history):
    await opened(history)
    await history.fail_over()
    await history.raise_min_insync()
    await history.fail_over()
    await history.open()

    assert await history.reasons() == [FAILOVER]


async def test_fail_over_of_replicating_engine_is_told(history):
    await history.decide(is_replicated=True)
    await history.open(next_=None)
    await history.decide(is_replicated=True)
    await history.open()

    assert await history.reasons() == [FAILOVER]


async def recovery(history: History) -> None:
    await opened(history)
    await history.recover()
    await history.open()


async def recovery_before_fail_over(history: History) -> None:
    await opened(history)
    await history.recover()
    await history.fail_over()
    await history.open()


async def recovery_after_fail_over(history: History) -> None:
    await opened(history)
    await history.fail_over()
    await history.recover()
    await history.open()


async def earlier_version_lost_something(history: History) -> None:
    await opened(history)
    await history.fail_over_by_earlier_version()
    await history.fail_over()
    await history.open()


async def replica_set_begins_with_a_store_used_alone(history: History) -> None:
    await history.decide(is_replicated=False)
    await history.open(next_=None)
    await history.create_replica_set()
    await history.open()


async def sentinel(history: History) -> None:
    await history.decide(is_replicated=False)
    await history.open(next_=None)
    await history.decide(is_replicated=False)
    await history.open()


async def engine_that_was_not_replicated_before(history: History) -> None:
    await history.decide(is_replicated=False)
    await history.open(next_=None)
    await history.decide(is_replicated=True)
    await history.open()


async def engine_that_is_not_replicated_any_more(history: History) -> None:
    await history.decide(is_replicated=True)
    await history.open(next_=None)
    await history.decide(is_replicated=False)
    await history.open()


async def restored_copy_of_engine(history: History) -> None:
    await history.decide(is_replicated=True)
    await history.open(next_=None)
    await history.decide(is_replicated=True, beacon=99)
    await history.open()


async def empty_engine(history: History) -> None:
    await history.decide(is_replicated=True)
    await history.open(next_=None)
    await history.decide(is_replicated=True, epoch=0, beacon=0)
    await history.open(next_=None)


async def member_used_alone(history: History) -> None:
    await opened(history)
    await history.decide(is_replicated=True)
    await history.open()


async def log_that_the_store_does_not_know(history: History) -> None:
    await opened(history)
    await history.fail_over()
    await history.open(next_=None)


async def log_that_is_behind_its_archive(history: History) -> None:
    await opened(history)
    await history.archive(up_to=11)
    await history.fail_over()
    await history.open()


async def loss_in_the_same_epoch(history: History) -> None:
    await opened(history)
    await history.open(next_=None)


async def loss_that_no_process_came_to_advance(history: History) -> None:
    """The hole of a fail-over takes the place of one of a loss, at the same offset."""
    await opened(history)
    await history.recover()
    await history.open(next_=10)
    await history.fail_over()
    await history.open(next_=10)


@pytest.mark.parametrize(
    "lose",
    [
        recovery,
        recovery_before_fail_over,
        recovery_after_fail_over,
        earlier_version_lost_something,
        replica_set_begins_with_a_store_used_alone,
        sentinel,
        engine_that_was_not_replicated_before,
        engine_that_is_not_replicated_any_more,
        restored_copy_of_engine,
        empty_engine,
        member_used_alone,
        log_that_the_store_does_not_know,
        log_that_is_behind_its_archive,
        loss_in_the_same_epoch,
        loss_that_no_process_came_to_advance,
    ],
    ids=lambda lose: lose.__name__,
)
async def test_possible_loss_is_told_as_hole(history, lose):
    await lose(history)

    assert await history.reasons() == [HOLE]


async def test_holes_of_a_loss_and_a_fail_over_keep_their_reasons(history):
    await opened(history)
    await history.recover()
    await history.open()
    await history.fail_over()
    await history.open()

    assert await history.reasons() == [HOLE, FAILOVER]


async def test_hole_recorded_by_earlier_version_may_be_a_loss(history):
    await history.execute(f"insert into log_holes (log_id, first, next) values ('{LOG}', 0, 1)")

    assert await history.reasons() == [HOLE]


# With stores


@pytest.fixture
async def settings(deployment: Deployment, database_url: str) -> StorageSettings:
    row = await deployment.begin()
    deployment.at(row.primary).run("DEL", "ms:version")
    return StorageSettings(
        redis_url=url_of(deployment.stores[:3]), database_url=database_url, durability="replicated"
    )


@pytest.fixture
async def storage(settings: StorageSettings) -> AsyncIterator[Storage]:
    async with open_storage(settings) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=1))
        await storage.groups.put(READERS, GroupSpec(stream=CLICKS.name))
        yield storage


async def append(storage: Storage) -> int:
    """Append a record once a primary answers; return its offset."""
    [one] = await repeated(lambda: storage.streams.append_to_shard(CLICKS, 0, [Record(b"one")]))
    return int(one.offset)


async def gaps_of_all_readers(storage: Storage, offset: int) -> list[Gap | None]:
    read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=offset))
    pages = await storage.record_reader.read(CLICKS, {0: offset})
    table = await storage.arrow_reader.read(CLICKS, 0, offset=offset, end=None, bytes_max=100)
    columns = await storage.arrow_reader.read_columns(
        CLICKS, 0, offset=offset, end=10**9, bytes_max=100
    )
    return [read.gap, pages.shards[0].gap, table.gap, columns.gap]


async def test_every_reader_is_told_of_the_fail_over(deployment, settings, storage):
    """Also after a restart."""
    assert await append(storage) == 0
    member = await storage.groups.join(READERS, member_id="a")
    await storage.groups.commit(READERS, [Commit(0, 1, "a", member.generation)])
    deployment.at((await deployment.row()).primary).kill()
    offset = await append(storage)

    gaps = await gaps_of_all_readers(storage, 1)
    fetched = await repeated(lambda: storage.groups.fetcher.fetch(READERS, "a"))
    async with open_storage(settings) as another:
        later = await gaps_of_all_readers(another, 1)

    assert offset > 1
    assert {*gaps, *later, fetched.reads[0].gap} == {Gap(1, offset, FAILOVER)}


async def test_every_reader_is_told_of_an_accepted_loss(deployment, storage):
    await append(storage)
    row = await deployment.row()
    other = next(address for address in row.members if address != row.primary)
    await deployment.engine.recover(other, accept_loss=True)
    offset = await append(storage)

    assert set(await gaps_of_all_readers(storage, 1)) == {Gap(1, offset, HOLE)}
