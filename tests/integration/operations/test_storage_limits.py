"""A full store or namespace rejects writes, and still delivers what it has."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import BacklogFull, QuotaExceeded
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import Quotas
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.embedded.valkey import running_valkey
from storage.quotas.memory_guard import is_full
from storage.settings import StorageSettings

ORDERS, CLICKS = QueueName("orders"), StreamName("clicks")
MIB = limits.MIB


@pytest.mark.parametrize(
    ("was_full", "used", "most", "full"),
    [
        (False, 849, 1_000, False),
        (False, 850, 1_000, True),
        (True, 800, 1_000, True),
        (True, 799, 1_000, False),
        (True, 10**12, 0, False),
    ],
)
def test_memory_guard_sheds_at_85_percent_and_accepts_below_80(was_full, used, most, full):
    assert is_full(was_full, used, most) is full


@pytest.fixture
async def small(database_url):
    """Storage over a Valkey of 20 MiB."""
    with (
        TemporaryDirectory(prefix="ms-") as folder,
        running_valkey(Path(folder), memory_bytes=20 * MIB) as url,
    ):
        settings = StorageSettings(redis_url=url, database_url=database_url)
        async with open_storage(settings) as storage:
            yield storage


async def _fill(storage) -> int:
    """Send until the guard sheds; any other error fails, an out-of-memory error too."""
    sent = 0
    while not storage.memory_guard.full:
        await storage.queues.send(ORDERS, [NewMessage(b"x" * 10_000)] * 10)
        sent += 10
        await storage.memory_guard.refresh()
    return sent


@pytest.mark.one_store
async def test_nearly_full_store_rejects_writes_only(small):
    await small.catalog.put_queue(ORDERS, QueueSpec())
    await small.catalog.put_stream(CLICKS, StreamSpec())
    await small.streams.append(CLICKS, [Record(b"one", "key")])
    sent = await _fill(small)

    with pytest.raises(BacklogFull) as refused:
        await small.queues.send(ORDERS, [NewMessage(b"one")])
    with pytest.raises(BacklogFull):
        await small.streams.append(CLICKS, [Record(b"two", "key")])
    with pytest.raises(BacklogFull):
        await small.streams.append_idempotent(CLICKS, "p", [1], [Record(b"two", "key")])

    assert refused.value.facts["retry_after_seconds"] == limits.GUARD_RETRY_S
    assert sent > 1_000
    assert len((await small.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=0))).records) == 1
    drained = 0
    while small.memory_guard.full:
        messages = await small.queues.receive(ORDERS, messages_max=10)
        verdicts = [Settlement(one.receipt_handle, SettleAction.ACK) for one in messages]
        settled = await small.queues.settle(ORDERS, verdicts)
        assert all(one.error is None for one in settled)
        drained += len(messages)
        await small.memory_guard.refresh()
    await small.queues.send(ORDERS, [NewMessage(b"again")])
    await small.streams.append(CLICKS, [Record(b"two", "key")])
    assert 0 < drained < sent
    assert small.memory_guard.refused == {"memory": 3}


async def test_namespace_over_its_byte_limit_is_rejected_until_drained(engines):
    await engines.namespaces.put("acme", Quotas(stored_bytes_max=8_000))
    orders, clicks = QueueName("orders", "acme"), StreamName("clicks", "acme")
    await engines.catalog.put_queue(orders, QueueSpec(stream_view=True))
    await engines.catalog.put_stream(clicks, StreamSpec(shards=2))
    await engines.catalog.put_queue(ORDERS, QueueSpec())
    await engines.queues.send(orders, [NewMessage(b"x" * 1_000)] * 3)

    await engines.usage.measure_all()
    light = engines.namespaces.table["acme"]
    await engines.streams.append(clicks, [Record(b"y" * 1_000, str(key)) for key in range(4)])
    await engines.usage.measure_all()
    await engines.namespaces.read_again()
    heavy = engines.namespaces.table["acme"]

    assert not light.over_storage_quota
    assert heavy.over_storage_quota
    assert 8_000 < heavy.stored_bytes < 11_500
    with pytest.raises(QuotaExceeded) as refused:
        await engines.queues.send(orders, [NewMessage(b"one more")])
    with pytest.raises(QuotaExceeded):
        await engines.streams.append(clicks, [Record(b"one more", "key")])
    assert refused.value.facts["policy"] == "stored_bytes"
    await engines.queues.send(ORDERS, [NewMessage(b"another tenant's")])
    for shard in (0, 1):
        state = (await engines.record_reader.shards(clicks))[shard]
        await engines.streams.truncate(clicks, shard, state.next)
    await engines.usage.measure_all()
    await engines.namespaces.read_again()
    await engines.queues.send(orders, [NewMessage(b"one more")])


async def test_acknowledged_and_trimmed_data_is_not_counted(engines):
    await engines.catalog.put_queue(ORDERS, QueueSpec())
    await engines.queues.send(ORDERS, [NewMessage(b"x" * 1_000)] * 3)
    namespace = engines.namespaces.table["default"]
    before = await engines.usage.measure(namespace)

    messages = await engines.queues.receive(ORDERS, messages_max=3)
    verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in messages]
    await engines.queues.settle(ORDERS, verdicts)

    assert before > 3_000
    assert await engines.usage.measure(namespace) == 0


async def test_lifting_limit_takes_effect_immediately(engines):
    await engines.namespaces.put("acme", Quotas(stored_bytes_max=0))
    orders = QueueName("orders", "acme")
    await engines.catalog.put_queue(orders, QueueSpec())
    await engines.queues.send(orders, [NewMessage(b"one")])
    await engines.usage.measure_all()
    await engines.namespaces.read_again()
    assert engines.memory_guard.is_shedding

    await engines.namespaces.put("acme", Quotas())

    assert not engines.memory_guard.is_shedding
    await engines.queues.send(orders, [NewMessage(b"two")])
