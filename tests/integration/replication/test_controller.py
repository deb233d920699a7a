"""Fail-over of three real stores: nothing acknowledged is lost, whoever dies, hangs or comes late."""

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from storage.domain.errors import ReplicaSetRefused, StorageUnavailable
from storage.domain.replication.replica_set import Phase, PrimaryChange, ReplicaSet
from storage.postgres.listener import Listener, running
from storage.replication.controller import MembersUnreachable
from storage.replication.initialization import initialize
from storage.replication.primary_change import attach_members, fail_over
from tests.integration.replication.conftest import Deployment, until
from tests.replica_sets import PASSWORD


async def start(deployment: Deployment) -> ReplicaSet:
    return await initialize(deployment.rows, deployment.members, deployment.addresses, 2)


async def has_reported(deployment: Deployment, *kinds: PrimaryChange) -> bool:
    return deployment.changes == list(kinds)


async def test_first_start_promotes_the_first_of_empty_stores(deployment, empty_stores):
    row = await start(deployment)

    assert row.members == tuple(deployment.addresses)
    assert (row.primary, row.epoch, row.phase) == (deployment.addresses[0], 1, Phase.NORMAL)


async def test_first_start_promotes_the_store_with_data(deployment, empty_stores, database_url):
    """The epoch is above the store's and above the one of Postgres, so no offset is used again."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE deployment SET store_epoch = 11")
    store = deployment.stores[1]
    store.run("REPLICAOF", "NO", "ONE")
    store.run("HSET", "ms:store", "epoch", 14)
    store.run("RPUSH", "values", "one")

    row = await start(deployment)
    await deployment.until_insync(replicas=2)

    assert (row.primary, row.epoch) == (store.address, 15)
    assert deployment.values(deployment.addresses[2]) == ["one"]


async def test_two_stores_with_data_are_refused_by_name(deployment, empty_stores):
    for store in deployment.stores[1:3]:
        store.run("REPLICAOF", "NO", "ONE")
        store.run("HSET", "ms:store", "epoch", 3)

    with pytest.raises(ReplicaSetRefused, match=deployment.addresses[2]):
        await start(deployment)

    assert await deployment.rows.read() is None


async def test_first_start_waits_for_every_store(deployment):
    deployment.stores[2].kill()

    with pytest.raises(StorageUnavailable, match=deployment.addresses[2]):
        await start(deployment)


async def test_killed_primary_is_replaced_and_follows_later(deployment):
    first = await deployment.begin()
    old = first.primary
    async with deployment.acting():
        assert deployment.write(old, "one", replicas=2)
        deployment.at(old).kill()

        row = await deployment.until_normal(lambda row: row.primary != old)
        assert row.epoch == row.term > first.epoch
        assert deployment.values(row.primary) == ["one"]
        await until(lambda: has_reported(deployment, PrimaryChange.FAIL_OVER))
        assert deployment.write(row.primary, "two")

        deployment.at(old).start()
        await deployment.until_insync(replicas=2)
        assert deployment.values(old) == ["one", "two"]


async def test_paused_primary_is_replaced_and_acknowledges_nothing(deployment):
    old = (await deployment.begin()).primary
    async with deployment.acting():
        deployment.at(old).signal(signal.SIGSTOP)
        row = await deployment.until_normal(lambda row: row.primary != old)
        deployment.at(old).signal(signal.SIGCONT)

        assert deployment.write(row.primary, "one")
        await deployment.until_insync(replicas=2)
        assert deployment.at(old).run("HGET", "ms:store", "epoch") == str(row.epoch).encode()


async def test_stores_that_lost_power_together_agree_again(deployment):
    """Each of them follows nobody when it starts; the one that is furthest takes writes."""
    first = await deployment.begin()
    deployment.at(deployment.addresses[2]).run("REPLICAOF", "127.0.0.1", 1)
    assert deployment.write(first.primary, "one")
    for store in deployment.stores[:3]:
        store.kill()
    for store in deployment.stores[:3]:
        store.start()

    async with deployment.acting():
        row = await deployment.until_normal(lambda row: row.epoch > first.epoch)

    assert deployment.values(row.primary) == ["one"]


async def test_announced_change_is_read_at_once(deployment, database_url, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLICA_SET_READ_MS", 10**9)
    row = await deployment.begin()
    listener = Listener(database_url)
    controller = deployment.controller(listener=listener)
    async with running(listener):
        await listener.attempted()
        await controller.step()
        await deployment.rows.begin(row.term + 1, after=row, phase=Phase.SWITCH)

        async def is_read():
            await controller.step()
            return controller._replica_set.phase is Phase.SWITCH

        await until(is_read)


async def test_furthest_member_is_promoted(deployment):
    old = (await deployment.begin()).primary
    behind, ahead = deployment.addresses[1:]
    deployment.at(behind).run("REPLICAOF", "127.0.0.1", 1)
    assert deployment.write(old, "one")
    deployment.at(old).kill()

    result = await fail_over(deployment.rows, deployment.members, await deployment.row())

    assert result.primary == ahead
    await deployment.until_insync(replicas=1)
    assert deployment.values(behind) == ["one"]


async def test_empty_member_has_no_vote(deployment):
    old = (await deployment.begin()).primary
    wiped = deployment.at(deployment.addresses[1])
    wiped.kill()
    assert deployment.write(old, "one")
    deployment.at(old).kill()
    wiped.wipe()
    wiped.start()

    result = await fail_over(deployment.rows, deployment.members, await deployment.row())
    assert result.primary is None

    deployment.at(old).start()
    result = await fail_over(deployment.rows, deployment.members, await deployment.row())
    assert result.primary in (old, deployment.addresses[2])
    assert deployment.values(result.primary) == ["one"]


async def test_loading_member_has_no_vote(deployment):
    old = (await deployment.begin()).primary
    loading = deployment.at(deployment.addresses[1])
    fill = "for key = 1, 2000 do redis.call('set', key, key) end"
    deployment.at(old).run("EVAL", fill, 0)
    await deployment.until_insync(replicas=2)
    loading.run("BGREWRITEAOF")
    await until(lambda: _is_rewritten(loading))
    loading.kill()
    loading.start("--key-load-delay", "2000", waits=False)

    promises = await deployment.members.promise(deployment.addresses[1:], 10**6)

    assert set(promises) == {deployment.addresses[2]}
    loading.kill()


async def _is_rewritten(store):
    with store.client() as client:
        return not client.info("persistence")["aof_rewrite_in_progress"]


async def test_without_quorum_the_primary_stays(deployment):
    old = (await deployment.begin()).primary
    absent = deployment.at(deployment.addresses[1])
    deployment.at(old).kill()
    absent.kill()

    result = await fail_over(deployment.rows, deployment.members, await deployment.row())
    row = await deployment.row()
    assert result.primary is None
    assert (row.primary, row.phase) == (old, Phase.NORMAL)

    absent.start()
    result = await fail_over(deployment.rows, deployment.members, row)
    assert result.primary in deployment.addresses[1:]


async def test_replica_that_is_no_member_is_detached(deployment):
    """Cut off when it was replaced, it would acknowledge writes that no member has."""
    row = await deployment.begin()
    other = deployment.stores[3]
    other.run("REPLICAOF", *row.primary.split(":"))
    controller = deployment.controller()

    async def is_detached():
        await controller.step()
        facts = await deployment.members.observe([row.primary, other.address])
        return facts[other.address].promise == row.term and not facts[other.address].follows

    await until(is_detached)
    assert await deployment.row() == row


@pytest.mark.parametrize("is_silent", [False, True])
async def test_replica_with_whole_copy_is_detached(is_silent, deployment):
    """The copy had given it the primary's promise, or it did not answer once: it was counted from then on."""
    row = await deployment.begin()
    other = deployment.stores[3]
    other.run("REPLICAOF", *row.primary.split(":"))
    await until(lambda: is_linked(deployment, row.primary, other.address))
    await deployment.until_insync(replicas=3)
    controller = deployment.controller()
    if is_silent:
        other.signal(signal.SIGSTOP)
        await controller.step()
        other.signal(signal.SIGCONT)

    async def is_detached():
        await controller.step()
        return not await is_linked(deployment, row.primary, other.address)

    await until(is_detached)


async def is_linked(deployment, primary, replica):
    facts = await deployment.members.observe([primary])
    return replica in {link.address for link in facts[primary].replicas}


async def test_backup_that_copies_a_store_is_no_replica(deployment):
    row = await deployment.begin()
    host, port = row.primary.split(":")
    with socket.create_connection((host, int(port))) as copier:
        copier.sendall(f"AUTH {PASSWORD}\r\n".encode())
        assert copier.recv(5) == b"+OK\r\n"
        copier.sendall(b"SYNC\r\n")

        async def is_listed():
            return deployment.at(row.primary).run("INFO", "replication")["connected_slaves"] == 3

        await until(is_listed)
        facts = await deployment.members.observe([row.primary])

    assert len(facts[row.primary].replicas) == 2


async def test_controller_waits_for_a_quorum(deployment, monkeypatch):
    """An attempt that must fail would only drop the clients of the member that is left."""
    monkeypatch.setattr("storage.domain.limits.PRIMARY_FAILED_MS", 0)
    row = await deployment.begin()
    for address in deployment.addresses[:2]:
        deployment.at(address).kill()
    controller = deployment.controller()

    await controller.step()
    await controller.step()
    assert await deployment.row() == row

    deployment.at(deployment.addresses[1]).start()
    await controller.step()
    assert (await deployment.row()).primary in deployment.addresses[1:]


class _Stalled:
    """Steps of a controller that stalls before one of them until it is released."""

    def __init__(self, steps: Any, verb: str) -> None:
        self._steps = steps
        self._verb = verb
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        step = getattr(self._steps, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            if name == self._verb:
                self.reached.set()
                await self.released.wait()
            return await step(*arguments, **options)

        return call


@pytest.mark.parametrize(
    ("part", "verb"),
    [
        ("rows", "begin"),
        ("members", "promise"),
        ("rows", "promote"),
        ("members", "promote"),
        ("members", "attach"),
        ("rows", "end"),
    ],
)
async def test_late_controller_changes_nothing(deployment, part, verb):
    """Another controller fails over while the first stalls before a step of its own."""
    row = await deployment.begin()
    assert deployment.write(row.primary, "one", replicas=2)
    rows = _Stalled(deployment.rows, verb if part == "rows" else "")
    members = _Stalled(deployment.members, verb if part == "members" else "")
    late = asyncio.create_task(fail_over(rows, members, row))
    await (rows if part == "rows" else members).reached.wait()

    result = await fail_over(deployment.rows, deployment.members, await deployment.row())
    row = await deployment.row()
    rows.released.set()
    members.released.set()
    await late

    assert await deployment.row() == row
    assert result.primary == row.primary
    facts = await deployment.members.observe(deployment.addresses)
    primaries = [address for address, state in facts.items() if state.is_primary]
    followers = {state.follows for state in facts.values() if not state.is_primary}
    assert row.primary in primaries
    assert all(
        facts[address].position.epoch < row.epoch for address in primaries if address != row.primary
    )
    assert followers == {row.primary}
    assert deployment.values(row.primary) == ["one"]
    await attach_members(deployment.rows, deployment.members, row, facts)


async def test_stale_attachment_is_refused(deployment):
    """A controller read the row, stalled, and attaches members that were fenced meanwhile."""
    row = await deployment.begin()
    promises = await deployment.members.promise(deployment.addresses[1:], row.term + 1)
    facts = await deployment.members.observe(deployment.addresses)

    await attach_members(deployment.rows, deployment.members, row, facts)
    attached = await deployment.members.attach(deployment.addresses[1:], row.primary, row.term)

    assert all(promise.is_accepted for promise in promises.values())
    assert not attached
    assert not deployment.write(row.primary, "one")


async def test_wiped_member_is_not_attached_by_a_late_controller(deployment):
    """Losing its disk, it forgot its promise; the row is read again after a new one."""
    row = await deployment.begin()
    await deployment.rows.begin(row.term + 1, after=row, phase=Phase.FENCE)
    wiped = deployment.at(deployment.addresses[1])
    wiped.empty()
    facts = await deployment.members.observe([wiped.address])

    await attach_members(deployment.rows, deployment.members, row, facts)

    facts = await deployment.members.observe([wiped.address])
    assert facts[wiped.address].follows is None


async def test_full_store_is_fenced_and_promoted(deployment):
    row = await deployment.begin()
    for store in deployment.stores[:3]:
        store.run("CONFIG", "SET", "maxmemory", 1)

    result = await fail_over(deployment.rows, deployment.members, row)

    assert result.primary in deployment.addresses[1:]


async def test_promise_above_the_row_is_overtaken(deployment, monkeypatch):
    """An operation died after it had fenced a member, or Postgres has lost a term."""
    monkeypatch.setattr("storage.domain.limits.TERM_UNFINISHED_MS", 100)
    first = await deployment.begin()
    fenced = deployment.addresses[2]
    await deployment.members.promise([fenced], first.term + 5)
    async with deployment.acting():
        after = await deployment.until_normal(lambda row: row.term > first.term + 5)

        assert after.primary == first.primary
        await until(lambda: has_reported(deployment, PrimaryChange.RENEWAL))
        await deployment.until_insync(replicas=2)


async def test_unfinished_phase_is_followed(deployment, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.TERM_UNFINISHED_MS", 100)
    row = await deployment.begin()
    await deployment.rows.begin(row.term + 1, after=row, phase=Phase.SWITCH)
    async with deployment.acting():
        after = await deployment.until_normal(lambda now: now.term > row.term + 1)

    assert after.epoch == after.term


async def test_hanging_member_delays_no_other(deployment):
    row = await deployment.begin()
    hanging = deployment.at(deployment.addresses[2])
    hanging.signal(signal.SIGSTOP)
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    facts = await deployment.members.observe(deployment.addresses)

    assert set(facts) == set(deployment.addresses) - {hanging.address}
    assert loop.time() - began_s < 2
    assert deployment.write(row.primary, "one")


async def test_controller_without_majority_lets_another_act(deployment):
    await deployment.begin()
    for store in deployment.stores[:2]:
        store.kill()
    now_ms = 0
    controller = deployment.controller()
    controller._now_ms = controller._unreached._now_ms = lambda: now_ms

    await controller.step()
    now_ms = 2_000

    with pytest.raises(MembersUnreachable, match="1 of 3"):
        await controller.step()
