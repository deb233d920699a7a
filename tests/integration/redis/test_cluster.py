"""A cluster of several masters: every log is found at its slot, wherever it moves."""

import asyncio
from pathlib import Path

import pytest
from redis.crc import key_slot

from storage.bootstrap import open_storage
from storage.domain.errors import OutcomeUnknown, StorageUnavailable
from storage.domain.log.record_batch import Record
from storage.domain.log.store_epoch import StoreIdentity
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.redis.cluster_store import RedisServers
from storage.redis.keys import STORE_KEY, every_key, log_keys, queue_keys
from storage.redis.transport.topology import Nodes
from storage.settings import StorageSettings
from tests.clusters import MASTERS, running_masters
from tests.conditions import PATIENCE_S, eventually

pytestmark = pytest.mark.one_store

QUEUES = [QueueName(f"queue-{number}") for number in range(12)]
WORK = QUEUES[0]
CLICKS = StreamName("clicks")


@pytest.fixture
def masters(valkey_masters):
    valkey_masters.empty()
    return valkey_masters


@pytest.fixture
async def storage(masters, database_url):
    settings = StorageSettings(redis_url=masters.url, database_url=database_url)
    async with open_storage(settings) as storage:
        for name in QUEUES:
            await storage.catalog.put_queue(name, QueueSpec())
        yield storage


async def bodies_in(storage, name):
    received = await storage.queues.receive(name, messages_max=10)
    return [message.body for message in received]


def owner_of(masters, key):
    """Return the number of the master that owns a key."""
    slot = key_slot(key)
    for nth in range(MASTERS):
        with masters.direct(nth) as client:
            for first, last, (_, port, *_), *_ in _slots(client):
                if first <= slot <= last:
                    return next(n for n, node in enumerate(masters.nodes) if node.port == port)
    raise AssertionError("nobody has it")


def _slots(client):
    told = client.execute_command("CLUSTER SLOTS")
    return (
        told
        if isinstance(told, list)
        else [[first, last, one["primary"]] for (first, last), one in told.items()]
    )


async def test_logs_are_spread_over_all_masters(storage, masters):
    for name in QUEUES:
        await storage.queues.send(name, [NewMessage(name.name.encode())])

    bodies = [await bodies_in(storage, name) for name in QUEUES]

    assert bodies == [[name.name.encode()] for name in QUEUES]
    for nth in range(MASTERS):
        with masters.direct(nth) as client:
            assert client.dbsize() > 0


async def test_concurrent_calls_reach_their_masters(storage):
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=8))
    appended = [
        storage.streams.append(CLICKS, [Record(b"%d" % nth, key=f"key-{nth}")]) for nth in range(40)
    ]
    sent = [storage.queues.send(name, [NewMessage(b"x")]) for name in QUEUES]
    await asyncio.gather(*appended, *sent)

    reads = [
        await storage.record_reader.read_shard(CLICKS, nth, ReadFrom(offset=0)) for nth in range(8)
    ]

    assert sum(len(read.records) for read in reads) == 40


async def test_log_is_rejected_during_slot_migration_then_followed(storage, masters):
    """A script names all keys of its log; half are not yet moved, and the caller retries."""
    queue = await storage.catalog.queue(WORK)
    await storage.queues.send(WORK, [NewMessage(b"before")])
    key = queue_keys("default", queue.log_id)[0]
    slot, old = key_slot(key), owner_of(masters, key)
    new = (old + 1) % MASTERS
    try:
        with masters.direct(old) as source, masters.direct(new) as target:
            keys = [one for one in every_key("default", queue.log_id) if source.exists(one)]
            ids = [one.execute_command("CLUSTER MYID").decode() for one in (source, target)]
            target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[0])
            source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[1])
            node = masters.nodes[new]
            where = ("127.0.0.1", node.port, "", 0, 5_000, "AUTH", node.password)
            source.execute_command("MIGRATE", *where, "KEYS", *keys)
            with pytest.raises(StorageUnavailable):
                await storage.queues.send(WORK, [NewMessage(b"meanwhile")])
            for one in (target, source):
                one.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[1])
        await storage.queues.send(WORK, [NewMessage(b"after")])
        sent = await bodies_in(storage, WORK)
    finally:
        _move_back(masters, slot, new, old)

    assert sent == [b"before", b"after"]


def _move_back(masters, slot, now, then):
    with masters.direct(then) as client:
        text = client.execute_command("CLUSTER MYID").decode()
    masters.empty()
    for nth in (then, now):
        with masters.direct(nth) as client:
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", text)
    with masters.direct(then) as client:
        client.execute_command("CLUSTER BUMPEPOCH")  # otherwise the others might not accept it


async def test_store_is_found_when_one_server_has_stale_slot_map(masters):
    """Its slot map names a master that does not have the store's own key."""
    slot = key_slot(STORE_KEY.encode())
    owner = owner_of(masters, STORE_KEY.encode())
    nodes = Nodes(masters.url)
    store = RedisServers(nodes)
    await asyncio.gather(*[store.run_id() for _ in range(MASTERS)])
    with masters.direct((owner + 1) % MASTERS) as behind:
        with masters.direct((owner + 2) % MASTERS) as another:
            wrong = another.execute_command("CLUSTER MYID").decode()
        behind.execute_command("CLUSTER SETSLOT", slot, "NODE", wrong)

    asked = [store.facts(StoreIdentity(0, "", 0)) for _ in range(MASTERS)]
    results = await asyncio.gather(*asked)
    await nodes.close()

    assert {len(facts.replid.split(",")) for facts in results} == {MASTERS}


async def test_doctor_names_servers_that_differ(storage, masters):
    """Replicas too: one that evicts would lose messages once it is promoted."""
    before = await hot_findings(storage)
    replica = MASTERS + 1
    with masters.direct(1) as master, masters.direct(replica) as client:
        master.config_set("appendfsync", "everysec")
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            during = await hot_findings(storage)
        finally:
            master.config_set("appendfsync", "always")
            client.config_set("maxmemory-policy", "noeviction")

    assert [before[name].ok for name in ("store cluster", "fsync", "memory policy")] == [True] * 3
    assert before["store cluster"].detail == "primaries: 3, replicas: 3"
    assert before["fsync"].detail == "always"
    address = f"127.0.0.1:{masters.nodes[1].port}"
    assert (during["fsync"].ok, during["fsync"].detail) == (False, f"always; everysec at {address}")
    address = f"127.0.0.1:{masters.nodes[replica].port}"
    assert not during["memory policy"].ok
    assert during["memory policy"].detail == f"noeviction; allkeys-lru at {address}"


async def hot_findings(storage):
    return {finding.check: finding for finding in await storage.health.diagnose(pings=1)}


async def test_waiting_receive_is_woken_by_any_master(storage):
    """One subscription is enough: a publish reaches every server of a cluster."""
    waiting = [asyncio.create_task(storage.queues.receive(name, wait_ms=10_000)) for name in QUEUES]
    await asyncio.sleep(0.3)
    for name in QUEUES:
        await storage.queues.send(name, [NewMessage(b"x")])

    async with asyncio.timeout(PATIENCE_S):
        results = await asyncio.gather(*waiting)

    assert [len(messages) for messages in results] == [1] * len(QUEUES)


async def test_promoted_replica_reuses_no_offset(short_folder, database_url):
    """Replication is asynchronous: records the replica lacks become a gap before new ones."""
    with running_masters(Path(short_folder)) as masters:
        settings = StorageSettings(redis_url=masters.url, database_url=database_url)
        async with open_storage(settings) as storage:
            await storage.catalog.put_stream(CLICKS, StreamSpec(shards=8))
            stream = await storage.catalog.stream(CLICKS)
            lost = owner_of(masters, log_keys("default", stream.shards[0].log_id)[0])
            before = {nth: await _offset(storage, nth) for nth in range(8)}
            with masters.direct(lost) as client:
                client.shutdown(nosave=True)
            after = {nth: await _offset_at_last(storage, nth) for nth in range(8)}
            cluster = (await hot_findings(storage))["store cluster"]

        assert all(after[nth] > before[nth] for nth in before)
        promoted = f"127.0.0.1:{masters.nodes[MASTERS + lost].port}"
        assert cluster.ok is None
        assert cluster.detail.endswith(f"no replica in sync for {promoted}")
        survivor = (lost + 1) % MASTERS
        await eventually(lambda: _is_master(masters, survivor, lost), False)


async def _offset(storage, shard):
    [appended] = await storage.streams.append_to_shard(CLICKS, shard, [Record(b"x")])
    return appended.offset


async def _offset_at_last(storage, shard):
    """Append until the replica has taken over; returns the offset."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await _offset(storage, shard)
            except (StorageUnavailable, OutcomeUnknown):
                await asyncio.sleep(0.1)


async def _is_master(masters, asked, nth):
    """Return whether a server believes another to be a master; not all learn at once."""
    with masters.direct(asked) as client:
        return masters.nodes[nth].port in [port for _, _, (_, port, *_), *_ in _slots(client)]
