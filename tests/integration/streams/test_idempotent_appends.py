"""Appends of producers with increasing sequences are added once (S4)."""

import pytest
import redis

from storage.bootstrap import open_storage
from storage.domain.errors import (
    FenceMismatch,
    MessageTooLarge,
    OutcomeUnknown,
    ProducerFenced,
    QueueFull,
    StreamReadOnly,
    TooManyProducers,
    ValidationFailed,
)
from storage.domain.limits import DAY_MS, Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.idempotence import AppendCounts, SequencedBatch
from storage.domain.streams.stream import RING_SIZE, ReadFrom, StreamSpec
from storage.redis.keys import every_key
from storage.settings import StorageSettings
from storage.streams.engine import Streams
from tests.integration.fault_proxy import running_fault_proxy

CLICKS = StreamName("clicks")
WORK = QueueName("work")
LOW, HIGH = 1, RING_SIZE - 2


def records(*numbers: int, key: str = "k") -> list[Record]:
    return [Record(b"%d" % number, key) for number in numbers]


def messages(*numbers: int, group: str = "") -> list[NewMessage]:
    return [NewMessage(b"%d" % number, group=group) for number in numbers]


async def append_numbers(streams: Streams, *numbers: int, producer_id: str = "p") -> AppendCounts:
    return await streams.append_idempotent(CLICKS, producer_id, numbers, records(*numbers))


async def everything(reader) -> list[bytes]:
    data: list[bytes] = []
    positions: dict[int, int] = {}
    while True:
        read = await reader.read(CLICKS, positions)
        data += [record.record.data for shard in read.shards for record in shard.records]
        if read.positions == positions:
            return data
        positions = read.positions


@pytest.fixture
async def streams(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=1_000 * DAY_MS))
    return engines.streams


@pytest.fixture
async def queues(engines):
    await engines.catalog.put_queue(WORK, QueueSpec())
    return engines.queues


async def test_repeated_batch_in_other_portions_adds_only_new_records(streams, reader):
    assert await append_numbers(streams, 2, 4, 6) == AppendCounts(3, 0)

    assert await append_numbers(streams, 2, 4, 6) == AppendCounts(0, 3)
    assert await append_numbers(streams, 2, 4) == AppendCounts(0, 2)
    assert await append_numbers(streams, 4, 6, 7, 9) == AppendCounts(2, 2)

    assert await everything(reader) == [b"2", b"4", b"6", b"7", b"9"]


async def test_producers_are_independent(streams):
    await append_numbers(streams, 5)

    assert await append_numbers(streams, 3, producer_id="q") == AppendCounts(1, 0)


async def test_producers_share_batch_and_keep_order(streams, reader):
    together = SequencedBatch(["p", "q", "p", "q"], [1, 5, 2, 6])
    await streams.append_idempotent(CLICKS, "q", [5], records(0))

    counts = await streams.append_idempotent_batch(CLICKS, together, records(1, 2, 3, 4))

    assert counts == AppendCounts(3, 1)
    assert await everything(reader) == [b"0", b"1", b"3", b"4"]


async def test_record_without_key_is_retried_on_same_shard(streams, reader):
    await streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
    keyless = [Record(b"%d" % number) for number in range(20)]

    await streams.append_idempotent(CLICKS, "p", range(20), keyless)
    again = await streams.append_idempotent(CLICKS, "p", range(20), keyless)

    assert again == AppendCounts(0, 20)
    assert {state.next > 0 for state in (await reader.shards(CLICKS))[1:]} == {True}


async def test_merged_shard_adds_what_each_parent_lacked(engines, streams, reader):
    """A design that starts at the lower of two parents fails here: see ADR 0018."""
    await streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
    batch = [Record(b"%d" % n, hash_key=LOW if n % 2 else HIGH) for n in range(6)]
    odd = [number for number in range(6) if number % 2]
    await streams.append_idempotent(CLICKS, "p", odd, [batch[n] for n in odd])
    await streams.resharder.merge(CLICKS, 1, 2)

    first = await streams.append_idempotent(CLICKS, "p", range(3), batch[:3])
    rest = await streams.append_idempotent(CLICKS, "p", range(3, 6), batch[3:])

    assert (first, rest) == (AppendCounts(2, 1), AppendCounts(1, 2))
    assert sorted(await everything(reader)) == [b"%d" % n for n in range(6)]


async def test_producer_state_survives_one_day_and_10000_others(redis_url, database_url, clock):
    few = Limits(producers_max=4)
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock, limits=few) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(retention_ms=1_000 * DAY_MS))
        await append_numbers(storage.streams, 1, 2)
        for number in range(20):
            clock.advance(ms=DAY_MS)
            await append_numbers(storage.streams, 1, producer_id=f"other {number}")

        assert await append_numbers(storage.streams, 1, 2, 3) == AppendCounts(1, 2)


async def test_producer_limit_rejects_new_producer_and_forgets_none(redis_url, database_url, clock):
    few = Limits(monotonic_writers_max=2)
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock, limits=few) as storage:
        streams, queues = storage.streams, storage.queues
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.catalog.put_queue(WORK, QueueSpec())
        for producer_id in ("p", "q"):
            await append_numbers(streams, 1, producer_id=producer_id)
            await queues.send_idempotent(WORK, producer_id, [1], messages(1))

        with pytest.raises(TooManyProducers):
            await append_numbers(streams, 1, producer_id="r")
        with pytest.raises(TooManyProducers):
            await queues.send_idempotent(WORK, "r", [1], messages(1))
        assert await append_numbers(streams, 1, 2) == AppendCounts(1, 1)
        await streams.retire_writers(CLICKS, ["q"])
        await queues.retire_writers(WORK, ["q"])

        assert await append_numbers(streams, 1, producer_id="r") == AppendCounts(1, 0)
        assert await queues.send_idempotent(WORK, "r", [1], messages(1)) == AppendCounts(1, 0)


async def test_forgotten_producer_is_fenced(streams, reader):
    await append_numbers(streams, 1)
    await streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
    await streams.retire_writers(CLICKS, ["p"])
    await streams.resharder.merge(CLICKS, 1, 2)

    with pytest.raises(ProducerFenced):
        await append_numbers(streams, 1)

    assert await everything(reader) == [b"1"]


async def test_forgetting_producers_of_unknown_stream_is_no_op(streams):
    await streams.retire_writers(StreamName("none"), ["p"])


async def test_closed_shard_with_open_producer_does_not_expire(streams, clock):
    await append_numbers(streams, 1)
    await streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
    await streams.truncate(CLICKS, 0, 1)
    clock.advance(ms=400 * DAY_MS)

    assert await streams.expire_shards(CLICKS) == 0
    assert await append_numbers(streams, 1, 2) == AppendCounts(1, 1)
    await streams.retire_writers(CLICKS, ["p"])

    assert await streams.expire_shards(CLICKS) == 1


async def test_fence_applies_to_idempotent_appends(streams):
    await append_numbers(streams, 1)
    await streams.set_fence(CLICKS, 0, "mine")

    with pytest.raises(FenceMismatch):
        await append_numbers(streams, 2)
    assert await append_numbers(streams, 1) == AppendCounts(0, 1)


async def test_latest_of_key_finds_idempotently_appended_record(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(key_index=True))

    await append_numbers(engines.streams, 1, 2)

    _, newest = await engines.record_reader.latest_of_key(CLICKS, "k")
    assert newest.record.data == b"2"


async def test_reserved_headers_are_rejected_unless_set_by_sender(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(record_bytes_max=10))
    marked = [Record(b"x" * 10, headers=((":from", "", b"y" * 10),))]
    append = engines.streams.append_idempotent

    with pytest.raises(ValidationFailed):
        await append(CLICKS, "p", [1], [Record(b"x", headers=((":from", "", b"y"),))])
    assert await append(CLICKS, "p", [1], marked, own=frozenset({":from"})) == AppendCounts(1, 0)
    with pytest.raises(MessageTooLarge):
        await append(CLICKS, "p", [2], [Record(b"x" * 11)], own=frozenset({":from"}))


async def test_stream_view_rejects_idempotent_appends(engines):
    await engines.catalog.put_queue(WORK, QueueSpec(stream_view=True))

    with pytest.raises(StreamReadOnly):
        await engines.streams.append_idempotent(StreamName("work"), "p", [1], records(1))


async def test_deleted_stream_leaves_no_producer_state(engines, streams, redis_url):
    await append_numbers(streams, 1)
    log_id = (await engines.catalog.stream(CLICKS)).shards[0].log_id
    await engines.catalog.delete_stream(CLICKS)
    await engines.maintenance.tombstone_deleted()

    with redis.Redis.from_url(redis_url) as client:
        left = [key for key in every_key("default", log_id) if client.exists(key)]
    assert left in ([], [f"ms:default:{{{log_id}}}:meta".encode()])


@pytest.mark.parametrize("redis_url", ["plain"], indirect=True)
async def test_retry_recovers_from_lost_response(redis_url, database_url, tmp_path, short_folder):
    async with running_fault_proxy(redis_url, short_folder) as (url, faults):
        settings = StorageSettings(redis_url=url, database_url=database_url)
        quick = Limits(redis_reply_ms_max=300)
        async with open_storage(settings, limits=quick) as storage:
            streams, queues = storage.streams, storage.queues
            await storage.catalog.put_stream(CLICKS, StreamSpec())
            await storage.catalog.put_queue(WORK, QueueSpec())
            await append_numbers(streams, 1)
            await queues.send_idempotent(WORK, "p", [1], messages(1))

            for work in (
                append_numbers(streams, 2, 3),
                queues.send_idempotent(WORK, "p", [2, 3], messages(2, 3)),
            ):
                faults.swallow_answers = True
                with pytest.raises(OutcomeUnknown):
                    await work
                faults.swallow_answers = False
                faults.cut()
                await queues.stats(WORK)

            assert await append_numbers(streams, 2, 3, 4) == AppendCounts(1, 2)
            assert await queues.send_idempotent(
                WORK, "p", [2, 3, 4], messages(2, 3, 4)
            ) == AppendCounts(1, 2)
            assert await everything(storage.record_reader) == [b"1", b"2", b"3", b"4"]
            received = await queues.receive(WORK, messages_max=9)
            assert [message.body for message in received] == [b"1", b"2", b"3", b"4"]


# Queues


async def drained(queues, name: QueueName = WORK) -> list[bytes]:
    bodies: list[bytes] = []
    while received := await queues.receive(name, messages_max=10):
        bodies += [message.body for message in received]
        verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in received]
        await queues.settle(name, verdicts)
    return bodies


async def test_queue_adds_each_message_once_even_after_ack(queues):
    assert await queues.send_idempotent(WORK, "p", [1, 2], messages(1, 2)) == AppendCounts(2, 0)
    assert await drained(queues) == [b"1", b"2"]

    assert await queues.send_idempotent(WORK, "p", [1, 2, 3], messages(1, 2, 3)) == AppendCounts(
        1, 2
    )
    assert await queues.send_idempotent(WORK, "p", [3], messages(3)) == AppendCounts(0, 1)

    assert await drained(queues) == [b"3"]


async def test_fifo_queue_keeps_order_of_each_group(engines):
    name = QueueName("line.fifo")
    await engines.catalog.put_queue(name, QueueSpec(type=QueueType.FIFO))
    line = [NewMessage(b"%d" % n, group=f"g{n % 2}", dedup_id=f"d{n}") for n in range(8)]

    await engines.queues.send_idempotent(name, "p", range(5), line[:5])
    again = await engines.queues.send_idempotent(name, "p", range(2, 8), line[2:])

    assert again == AppendCounts(3, 3)
    found = await drained(engines.queues, name)
    assert [n for n in found if int(n) % 2] == [b"1", b"3", b"5", b"7"]
    assert [n for n in found if int(n) % 2 == 0] == [b"0", b"2", b"4", b"6"]


async def test_idempotent_send_to_full_queue_can_be_retried(engines):
    await engines.catalog.put_queue(WORK, QueueSpec(messages_max=3))
    queues = engines.queues
    await queues.send_idempotent(WORK, "p", [1, 2], messages(1, 2))

    with pytest.raises(QueueFull):
        await queues.send_idempotent(WORK, "p", [2, 3, 4], messages(2, 3, 4))
    assert await drained(queues) == [b"1", b"2"]
    assert await queues.send_idempotent(WORK, "p", [2, 3, 4], messages(2, 3, 4)) == AppendCounts(
        2, 1
    )

    assert await drained(queues) == [b"3", b"4"]


async def test_stream_view_shows_idempotently_sent_messages(engines):
    await engines.catalog.put_queue(WORK, QueueSpec(stream_view=True))

    await engines.queues.send_idempotent(WORK, "p", [1, 2], messages(1, 2))
    await engines.queues.send_idempotent(WORK, "p", [1, 2], messages(1, 2))

    view = await engines.record_reader.read_shard(StreamName("work"), 0, ReadFrom(offset=0))
    assert [record.record.data for record in view.records] == [b"1", b"2"]


async def test_queue_fences_forgotten_producer(queues):
    await queues.send_idempotent(WORK, "p", [1], messages(1))
    await queues.retire_writers(WORK, ["p"])

    with pytest.raises(ProducerFenced):
        await queues.send_idempotent(WORK, "p", [1], messages(1))
    await queues.retire_writers(QueueName("none"), ["p"])
