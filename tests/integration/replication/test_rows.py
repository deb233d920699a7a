"""Steps of a change of the primary in Postgres: each takes effect in its own term only."""

import asyncio

import psycopg
import pytest

from storage.domain.backup_manifest import RESTORING, RestoreUnfinished
from storage.domain.log.store_epoch import StoreFacts, needs_new_epoch
from storage.domain.replication.replica_set import Phase, ReplicaSet
from storage.postgres.repositories.offset_reservations import StoreIdentities
from storage.postgres.repositories.replica_set import REPLICA_SET_CHANNEL

A, B, C, D = (f"127.0.0.1:{port}" for port in range(7001, 7005))
FIRST = ReplicaSet(
    members=(A, B, C), primary=A, term=5, epoch=5, phase=Phase.NORMAL, min_insync_replicas=2
)


@pytest.fixture
async def replica_set(rows):
    assert await rows.initialize((A, B, C), A, 5, 2)


async def test_replica_set_is_absent_before_it_is_initialized(rows):
    assert await rows.read() is None
    assert not await rows.begin(6, after=FIRST, phase=Phase.FENCE)


async def test_replica_set_is_initialized_once(rows):
    outcomes = await asyncio.gather(*(rows.initialize((A, B, C), A, 5, 2) for _ in range(4)))

    assert sorted(outcomes) == [False, False, False, True]
    assert await rows.read() == FIRST


async def test_first_epoch_is_above_the_remembered_one(rows, database):
    async with StoreIdentities(database).decide() as decision:
        await decision.remember(decision.remembered.__class__(5, "one", 0))

    assert await rows.last_term() == 5
    assert not await rows.initialize((A, B, C), A, 5, 2)
    assert await rows.initialize((A, B, C), A, 6, 2)


async def test_one_of_two_controllers_begins_a_term(rows, replica_set):
    outcomes = await asyncio.gather(
        *(rows.begin(6, after=FIRST, phase=Phase.FENCE) for _ in range(2))
    )

    assert sorted(outcomes) == [False, True]


async def test_fail_over_passes_through_its_phases(rows, replica_set):
    assert await rows.begin(6, after=FIRST, phase=Phase.FENCE)
    assert await rows.promote(6, B)
    assert await rows.end(6)

    assert await rows.read() == ReplicaSet(
        members=(A, B, C), primary=B, term=6, epoch=6, phase=Phase.NORMAL, min_insync_replicas=2
    )


async def test_steps_of_an_earlier_term_change_nothing(rows, replica_set):
    await rows.begin(6, after=FIRST, phase=Phase.FENCE)
    await rows.begin(7, after=await rows.read(), phase=Phase.FENCE)
    before = await rows.read()

    assert not await rows.promote(6, B)
    assert not await rows.end(6)
    assert not await rows.recover(6, B, [B])
    assert not await rows.begin(7, after=FIRST, phase=Phase.FENCE)
    assert await rows.read() == before


async def test_term_does_not_begin_from_an_earlier_primary(rows, replica_set):
    """A controller read the primary, and stalled while the same term promoted another one."""
    await rows.begin(6, after=FIRST, phase=Phase.FENCE)
    stale = await rows.read()
    await rows.promote(6, B)

    assert not await rows.begin(7, after=stale, phase=Phase.FENCE)
    assert await rows.begin(7, after=await rows.read(), phase=Phase.FENCE)


async def test_primary_is_promoted_only_while_others_are_fenced(rows, replica_set):
    assert not await rows.promote(5, B)
    assert not await rows.promote(5, "127.0.0.1:9")


async def test_members_change_in_a_term_of_their_own(rows, replica_set):
    assert await rows.replace(5, B, D)
    assert await rows.add(6, B)
    assert await rows.set_min_insync(7, 3)
    assert await rows.remove(8, C)

    changed = await rows.read()
    assert changed.members == (A, D, B)
    assert (changed.term, changed.epoch, changed.min_insync_replicas) == (9, 5, 3)


async def test_members_do_not_change_in_another_term_or_phase(rows, replica_set):
    assert not await rows.replace(4, B, D)
    await rows.begin(6, after=FIRST, phase=Phase.FENCE)

    assert not await rows.add(6, D)
    assert (await rows.read()).members == (A, B, C)


async def test_recovery_keeps_the_given_members_only(rows, replica_set):
    await rows.begin(6, after=FIRST, phase=Phase.FENCE)

    assert await rows.recover(6, C, [C])

    assert (await rows.read()).members == (C,)


async def test_every_step_is_announced(rows, replica_set, database_url):
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(f"LISTEN {REPLICA_SET_CHANNEL}".encode())
        steps = (
            rows.begin(6, after=FIRST, phase=Phase.FENCE),
            rows.promote(6, B),
            rows.end(6),
            rows.replace(6, C, D),
        )
        for step in steps:
            assert await step
            [notice] = [notice async for notice in connection.notifies(timeout=5, stop_after=1)]
            assert notice.channel == REPLICA_SET_CHANNEL


async def test_member_used_alone_later_gets_a_new_epoch(rows, replica_set, database):
    remembered = await StoreIdentities(database).read()
    facts = StoreFacts(
        epoch=5, beacon=10**9, replid="any", promoted=False, fsync_always=True, restarted=True
    )

    assert remembered.epoch == 5
    assert needs_new_epoch(remembered, facts)


async def test_nothing_is_read_during_a_restore(rows, database_url):
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("UPDATE deployment SET replid = %s", [RESTORING])

    for call in (rows.read(), rows.last_term(), rows.initialize((A,), A, 5, 2)):
        with pytest.raises(RestoreUnfinished):
            await call
