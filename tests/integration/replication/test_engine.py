"""Operations on a replica set of real stores, some while it is written to."""

import asyncio
import signal

import pytest

from storage.concurrency.tasks import in_background
from storage.domain.clock import SystemClock
from storage.domain.errors import ReplicaSetRefused, StorageUnavailable, ValidationFailed
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    Phase,
    PrimaryChange,
)
from storage.hot_store.members import WriteOutcome
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.redis.keys import STORE_KEY
from storage.replication.dissolution import dissolve
from tests.integration.replication.conftest import Deployment, until


async def test_status_names_roles_states_and_positions(deployment):
    row = await deployment.begin()
    assert deployment.write(row.primary, "one", replicas=2)
    absent = deployment.addresses[2]
    deployment.at(absent).kill()

    status = await deployment.engine.status()

    assert status.replica_set == row
    primary, replica, lost = status.members
    assert (primary.role, primary.state) == (MemberRole.PRIMARY, MemberState.INSYNC)
    assert (replica.role, replica.state) == (MemberRole.REPLICA, MemberState.INSYNC)
    assert (lost.address, lost.role, lost.state) == (absent, MemberRole.AWAY, MemberState.AWAY)
    assert primary.position == replica.position
    assert primary.position.epoch == row.epoch
    assert replica.version.count(".") == 2
    assert status.insync_replicas == 2
    now_ms = SystemClock().now_ms()
    assert all(abs(one.time_ms - now_ms) < 10_000 for one in (primary, replica))


async def test_status_in_outage_of_postgres_is_that_of_the_members(deployment, monkeypatch):
    """The processes of a deployment were not ready while Postgres was away, and took no calls."""
    row = await deployment.begin()
    engine = deployment.engine
    assert (await engine.status()).insync_replicas == 3

    async def refuse(_rows: ReplicaSetRows) -> None:
        raise StorageUnavailable

    monkeypatch.setattr(ReplicaSetRows, "read", refuse)
    deployment.at(deployment.addresses[2]).kill()
    status = await engine.status()

    assert (status.replica_set, status.insync_replicas) == (row, 2)
    with pytest.raises(StorageUnavailable):
        await engine.set_min_insync(3)


async def test_confirmed_write_needs_enough_replicas(deployment, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.CONFIRM_WAIT_MS", 100)
    await deployment.begin()
    confirmed = await deployment.engine.confirm_write()
    for address in deployment.addresses[1:]:
        deployment.at(address).kill()

    assert confirmed is WriteOutcome.CONFIRMED
    assert await deployment.engine.confirm_write() is WriteOutcome.UNCONFIRMED


async def test_replica_that_is_no_member_is_reported(deployment):
    row = await deployment.begin()
    stranger = deployment.stores[3]
    host, port = row.primary.split(":")
    stranger.run("REPLICAOF", host, port)

    async def is_reported():
        return (await deployment.engine.status()).unknown_replicas == (stranger.address,)

    await until(is_reported)
    stranger.run("REPLICAOF", "127.0.0.1", 1)


async def test_detached_member_is_behind(deployment):
    await deployment.begin()
    deployment.at(deployment.addresses[2]).run("REPLICAOF", "127.0.0.1", 1)

    status = await deployment.engine.status()

    assert status.members[2].state is MemberState.BEHIND


async def test_switch_over_makes_the_named_member_the_primary(deployment):
    row = await deployment.begin()
    old, target = row.primary, deployment.addresses[2]
    assert deployment.write(old, "one")
    full = await full_resyncs(deployment)

    after = await deployment.engine.switch_over(target)

    assert (after.primary, after.phase) == (target, Phase.NORMAL)
    assert after.epoch == after.term > row.epoch
    await deployment.until_insync(replicas=2)
    assert deployment.values(old) == ["one"]
    assert await full_resyncs(deployment) == full > 0
    assert deployment.changes == [PrimaryChange.SWITCH_OVER]


async def full_resyncs(deployment: Deployment) -> int:
    status = await deployment.engine.status()
    return sum(member.full_resyncs or 0 for member in status.members)


async def test_switch_over_needs_a_member_in_sync(deployment):
    row = await deployment.begin()
    behind = deployment.addresses[2]
    deployment.at(behind).run("REPLICAOF", "127.0.0.1", 1)

    for target, reason in [
        (behind, "not in sync"),
        (row.primary, "the primary already"),
        ("127.0.0.1:1", "not a member"),
    ]:
        with pytest.raises(ReplicaSetRefused, match=reason):
            await deployment.engine.switch_over(target)
    with pytest.raises(ValidationFailed):
        await deployment.engine.switch_over("no address:x")
    assert await deployment.row() == row


async def test_switch_over_is_undone_when_writes_do_not_stop(deployment, monkeypatch):
    """A process that does not hold its writes back keeps the target from catching up."""
    row = await deployment.begin()
    monkeypatch.setattr("storage.domain.limits.SWITCH_OVER_WAIT_MS", 100)
    async with in_background(_bump(deployment, row.primary), "writer"):
        with pytest.raises(ReplicaSetRefused, match="did not become the primary"):
            await deployment.engine.switch_over()

    after = await deployment.row()
    assert (after.primary, after.epoch, after.phase) == (row.primary, row.epoch, Phase.NORMAL)


async def _bump(deployment, address):
    with deployment.at(address).client() as client:
        while True:
            client.hincrby("ms:store", "position", 1)
            await asyncio.sleep(0)


async def test_operations_wait_for_the_end_of_a_change(deployment):
    row = await deployment.begin()
    await deployment.rows.begin(row.term + 1, after=row, phase=Phase.FENCE)

    with pytest.raises(ReplicaSetRefused, match="being changed"):
        await deployment.engine.switch_over()


async def test_member_is_replaced_while_writes_go_on(deployment):
    row = await deployment.begin()
    old, new = deployment.addresses[2], deployment.stores[3]
    new.empty()
    assert deployment.write(row.primary, "one", replicas=2)

    after = await deployment.engine.replace(old, new.address)

    assert after.members == (*row.members[:2], new.address)
    assert after.term == row.term + 1
    assert deployment.write(row.primary, "two")
    await deployment.until_insync(replicas=2)
    assert deployment.values(new.address) == ["one", "two"]
    assert (await deployment.engine.status()).unknown_replicas == ()


async def test_lost_member_is_replaced(deployment):
    row = await deployment.begin()
    lost, new = deployment.addresses[2], deployment.stores[3]
    new.empty()
    deployment.at(lost).kill()

    assert (await deployment.engine.replace(lost, new.address)).members[2] == new.address
    assert deployment.write(row.primary, "one")


async def test_member_that_hangs_attached_is_not_replaced(deployment):
    row = await deployment.begin()
    hanging = deployment.addresses[2]
    deployment.stores[3].empty()
    deployment.at(hanging).signal(signal.SIGSTOP)

    with pytest.raises(ReplicaSetRefused, match="still follows"):
        await deployment.engine.replace(hanging, deployment.stores[3].address)

    assert (await deployment.row()).members == row.members


async def test_member_stays_when_others_are_not_in_sync(deployment, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.CONFIRM_WAIT_MS", 100)
    row = await deployment.begin()
    deployment.stores[3].empty()
    deployment.at(deployment.addresses[1]).kill()

    with pytest.raises(ReplicaSetRefused, match="not confirmed"):
        await deployment.engine.replace(deployment.addresses[2], deployment.stores[3].address)

    assert (await deployment.row()).members == row.members


async def test_store_with_data_does_not_join(deployment):
    await deployment.begin()
    other = deployment.stores[3]
    other.run("REPLICAOF", "NO", "ONE")
    other.run("HSET", "ms:store", "epoch", 3)

    with pytest.raises(ReplicaSetRefused, match="has data"):
        await deployment.engine.add(other.address)

    other.empty()
    with pytest.raises(ReplicaSetRefused, match="already a member"):
        await deployment.engine.add(deployment.addresses[1])
    with pytest.raises(ReplicaSetRefused, match="does not answer"):
        await deployment.engine.add("127.0.0.1:1")


async def test_members_are_added_and_removed(deployment):
    row = await deployment.begin()
    added = deployment.stores[3]
    added.empty()

    assert (await deployment.engine.add(added.address)).members == (*row.members, added.address)
    await deployment.until_insync(replicas=3)
    after = await deployment.engine.remove(deployment.addresses[1])

    assert after.members == (row.members[0], row.members[2], added.address)
    with pytest.raises(ReplicaSetRefused, match="switch over first"):
        await deployment.engine.remove(row.primary)
    await deployment.engine.remove(row.members[2])
    with pytest.raises(ReplicaSetRefused, match="min_insync_replicas"):
        await deployment.engine.remove(added.address)


async def test_higher_min_insync_begins_with_a_new_epoch(deployment):
    row = await deployment.begin()

    raised = await deployment.engine.set_min_insync(3)
    lowered = await deployment.engine.set_min_insync(2)

    assert (raised.min_insync_replicas, raised.primary) == (3, row.primary)
    assert raised.epoch > row.epoch
    assert deployment.changes == [PrimaryChange.RENEWAL]
    assert (lowered.min_insync_replicas, lowered.epoch) == (2, raised.epoch)
    stored = deployment.at(raised.primary).run("HGET", STORE_KEY, "min_insync")
    assert stored == b"2"
    for count in (1, 4):
        with pytest.raises(ReplicaSetRefused, match="2 to 3"):
            await deployment.engine.set_min_insync(count)
    deployment.at(deployment.addresses[2]).kill()
    with pytest.raises(ReplicaSetRefused, match="2 members are in sync"):
        await deployment.engine.set_min_insync(3)


async def test_store_that_has_everything_goes_on_alone(deployment):
    row = await deployment.begin()
    assert deployment.write(row.primary, "one", replicas=2)
    follow_nobody(deployment)

    await dissolve(deployment.rows, deployment.members, deployment.addresses[1])

    assert await deployment.rows.read() is None
    assert await deployment.rows.last_term() == row.term + 1
    await dissolve(deployment.rows, deployment.members, deployment.addresses[1])  # repeated


async def test_store_that_lacks_a_write_does_not_go_on_alone(deployment):
    row = await deployment.begin()
    behind = deployment.addresses[1]
    deployment.at(behind).run("REPLICAOF", "127.0.0.1", 1)
    assert deployment.write(row.primary, "one", replicas=1)
    follow_nobody(deployment)

    with pytest.raises(ReplicaSetRefused, match=f"{behind} does not have all"):
        await dissolve(deployment.rows, deployment.members, behind)

    assert await deployment.row() == row


@pytest.mark.parametrize("is_away", [False, True])
async def test_store_does_not_go_on_alone_without_quorum(is_away, deployment):
    """Two lost stores may have confirmed what the third lacks."""
    row = await deployment.begin()
    follow_nobody(deployment)
    if is_away:
        deployment.at(row.primary).kill()
    else:
        for address in (row.primary, deployment.addresses[1]):
            deployment.at(address).empty()

    with pytest.raises(StorageUnavailable if is_away else ReplicaSetRefused):
        await dissolve(deployment.rows, deployment.members, deployment.addresses[2])

    assert await deployment.row() == row


def follow_nobody(deployment):
    """Leave all members as they are after a start."""
    for address in deployment.addresses:
        deployment.at(address).run("REPLICAOF", "127.0.0.1", 1)


async def test_recovery_promotes_what_is_left(deployment):
    row = await deployment.begin()
    left = deployment.addresses[2]
    assert deployment.write(row.primary, "one", replicas=2)
    for address in deployment.addresses[:2]:
        deployment.at(address).kill()
    with pytest.raises(ReplicaSetRefused, match="accept_loss"):
        await deployment.engine.recover(left, accept_loss=False)

    after = await deployment.engine.recover(left, accept_loss=True)

    assert (after.members, after.primary, after.phase) == ((left,), left, Phase.NORMAL)
    assert deployment.changes == [PrimaryChange.RECOVERY]
    assert after.epoch > row.epoch
    assert deployment.values(left) == ["one"]
    assert not deployment.write(left, "two")
    added = deployment.stores[3]
    added.empty()
    await deployment.engine.add(added.address)
    await deployment.until_insync(replicas=1)
    assert deployment.values(added.address) == ["one", "two"]


async def test_empty_or_absent_store_is_no_source_of_recovery(deployment):
    await deployment.begin()
    empty, absent = deployment.addresses[1:]
    deployment.at(empty).empty()
    deployment.at(absent).kill()

    for source in (empty, absent):
        with pytest.raises(ReplicaSetRefused, match="no data"):
            await deployment.engine.recover(source, accept_loss=True)
    with pytest.raises(ReplicaSetRefused, match="not a member"):
        await deployment.engine.recover("127.0.0.1:1", accept_loss=True)
