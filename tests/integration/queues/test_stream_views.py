"""The stream view of a queue: everything it was sent, readable as a stream."""

import asyncio

import pytest

from storage.bootstrap import Storage
from storage.domain.errors import StreamNotFound, StreamReadOnly, ValidationFailed
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction
from storage.domain.queues.queue import DeadLetterTarget, QueueType
from storage.domain.streams.stream import ReadFrom, StreamSpec
from tests.conditions import PATIENCE_S
from tests.queue_operations import DEAD, HOUR_MS, LINE, WORK, create_queue, receive, send, settle


def viewed(name: QueueName) -> StreamName:
    return StreamName(name.name)


async def shown(engines: Storage, name: QueueName = WORK) -> list[tuple[int, bytes]]:
    read = await engines.record_reader.read_shard(viewed(name), 0, ReadFrom(time_ms=0))
    return [(record.offset, record.record.data) for record in read.records]


async def test_messages_are_readable_after_ack_drop_and_purge(engines):
    queues = engines.queues
    await create_queue(engines, WORK, stream_view=True)
    await send(queues, WORK, b"1", b"2", b"3", b"4")
    [first] = await queues.receive(WORK)
    await settle(queues, WORK, first, SettleAction.ACK)
    await engines.inspector.drop(WORK, "1")
    await queues.purge(WORK)
    await send(queues, WORK, b"5")

    assert await shown(engines) == [(0, b"1"), (1, b"2"), (2, b"3"), (3, b"4"), (4, b"5")]
    assert await receive(queues, WORK) == [b"5"]


async def test_record_has_headers_and_group_or_id_as_key(engines):
    await create_queue(engines, WORK, stream_view=True)
    headers = (("colour", "", b"red"),)
    messages = [NewMessage(b"{}", headers, "application/json", group="a"), NewMessage(b"2")]
    _, second = await engines.queues.send(WORK, messages)

    read = await engines.record_reader.read_shard(viewed(WORK), 0, ReadFrom(time_ms=0))

    one, two = (at.record for at in read.records)
    assert (one.key, two.key) == ("a", second.message_id)
    assert one.headers == (*headers, (":content_type", "", b"application/json"))
    assert two.headers == ()


@pytest.mark.parametrize("name", [WORK, LINE])
async def test_delayed_and_grouped_messages_appear_when_sent(engines, name):
    await create_queue(engines, name, stream_view=True, delay_ms=HOUR_MS)
    await send(engines.queues, name, b"1", group="a")

    assert await shown(engines, name) == [(0, b"1")]


async def test_repeated_send_appears_once(engines):
    await create_queue(engines, LINE, stream_view=True)
    for _ in range(2):
        await engines.queues.send(LINE, [NewMessage(b"1", group="a", dedup_id="x")])

    assert await shown(engines, LINE) == [(0, b"1")]


async def test_view_starts_when_enabled_and_restarts_when_reenabled(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"before")
    await create_queue(engines, WORK, stream_view=True)
    await send(queues, WORK, b"1")
    first = await shown(engines)
    await create_queue(engines, WORK)
    await queues.sweep(WORK)
    with pytest.raises(StreamNotFound):
        await shown(engines)
    await send(queues, WORK, b"unseen")
    await create_queue(engines, WORK, stream_view=True)
    await send(queues, WORK, b"2")

    assert first == [(1, b"1")]
    assert await shown(engines) == [(3, b"2")]


async def test_view_of_unused_queue_is_empty(engines):
    await create_queue(engines, WORK, stream_view=True)

    assert await shown(engines) == []
    [state] = await engines.record_reader.shards(viewed(WORK))
    assert (state.start, state.next) == (0, 0)


async def test_view_follows_retention_of_its_queue(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK, stream_view=True, retention_ms=HOUR_MS)
    await send(queues, WORK, b"1")
    clock.advance(ms=HOUR_MS - 1)
    await send(queues, WORK, b"2")
    clock.advance(ms=1)
    await queues.sweep(WORK)
    await queues.sweep(WORK)

    assert await shown(engines) == [(1, b"2")]


async def test_reader_waits_at_end_of_view_beside_consumers(engines):
    queues = engines.queues
    await create_queue(engines, WORK, stream_view=True)
    wait = engines.record_reader.read_shard(viewed(WORK), 0, ReadFrom(offset=0), wait_ms=10_000)
    reading = asyncio.create_task(wait)
    receiving = asyncio.create_task(queues.receive(WORK, wait_ms=10_000))
    await asyncio.sleep(0.1)
    await send(queues, WORK, b"1")

    async with asyncio.timeout(PATIENCE_S):
        read, received = await reading, await receiving

    assert [one.record.data for one in read.records] == [b"1"]
    assert [one.body for one in received] == [b"1"]


async def test_messages_moved_from_another_queue_appear(engines, clock):
    queues = engines.queues
    await create_queue(engines, DEAD, stream_view=True)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"1")
    await queues.receive(WORK, visibility_timeout_ms=1)
    clock.advance(ms=1)
    await receive(queues, WORK)

    assert await shown(engines, DEAD) == [(0, b"1")]


async def test_replaced_body_is_delivered_but_view_keeps_original(engines):
    await create_queue(engines, WORK, stream_view=True)
    await send(engines.queues, WORK, b"sent")
    await engines.inspector.replace(WORK, "0", b"changed")

    assert await receive(engines.queues, WORK) == [b"changed"]
    assert await shown(engines) == [(0, b"sent")]


async def test_view_is_read_only(engines):
    await create_queue(engines, WORK, stream_view=True)
    streams, name = engines.streams, viewed(WORK)

    with pytest.raises(StreamReadOnly):
        await streams.append(name, [Record(b"1")])
    with pytest.raises(StreamReadOnly):
        await streams.append_to_shard(name, 0, [Record(b"1")])
    with pytest.raises(StreamReadOnly):
        await engines.catalog.put_stream(name, StreamSpec())
    with pytest.raises(StreamReadOnly):
        await streams.resharder.set_shard_count(name, 2)


async def test_view_cannot_share_name_with_stream(engines):
    await engines.catalog.put_stream(viewed(WORK), StreamSpec())

    with pytest.raises(ValidationFailed):
        await create_queue(engines, WORK, stream_view=True)


async def test_view_is_deleted_with_its_queue(engines):
    await create_queue(engines, WORK, stream_view=True)
    await send(engines.queues, WORK, b"1")
    await engines.catalog.delete_queue(WORK)

    with pytest.raises(StreamNotFound):
        await shown(engines)

    await create_queue(engines, WORK, stream_view=True)
    assert await shown(engines) == []
    assert (await engines.catalog.queue(WORK)).spec.type is QueueType.STANDARD
