"""Copies of routes with a transform, a format, a key, a delay or a time to live."""

import msgspec
import pytest

from storage.bootstrap import Storage
from storage.domain.log.record_batch import SUBJECT
from storage.domain.names import QueueName
from storage.domain.queues.message import MessageState
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.stream import LogRecord, ReadFrom
from storage.domain.topics.copy_key import ConstantKey
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.topic import KEY, NewPublication, Published
from storage.domain.topics.transform import HeaderTransform, Transform
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    publish,
    read_all,
    receive_all,
    receive_first,
    until,
)

pytestmark = pytest.mark.one_store

BODY = b'{"order": {"id": 7}, "customer": "ada"}'
FIFO = QueueName("fifo")


async def publish_one(storage: Storage, body: bytes = BODY, **fields) -> str:
    """Publish a message; return its id."""
    [published] = await storage.topics.publish(ORDERS, [NewPublication(body, **fields)])
    assert isinstance(published, Published)
    stream = await storage.topics.get(ORDERS)
    return f"{stream.stream_id}-{published.shard}-{published.offset}"


async def first_record(storage: Storage) -> LogRecord:
    """Return the first record of the target stream."""
    await read_all(storage, AUDIT, 1)
    return (await storage.record_reader.read_shard(AUDIT, 0, ReadFrom(offset=0))).records[0]


async def test_transform_makes_copy_for_queue(topics, put_route, router):
    transform = Transform(
        paths={"order": "/body/order/id"},
        template={"order": "<order>", "message": "<id>"},
        headers=HeaderTransform(templates={"customer": "<key>"}, remove=("debug",)),
        subject="order.<order>",
    )
    await put_route("billing", BILLING, transform=transform)
    await put_route("crm", CRM)

    message_id = await publish_one(topics, key="c7", headers=(("debug", "", b"on"),))

    copy = await receive_first(topics, BILLING)
    assert msgspec.json.decode(copy.body) == {"order": 7, "message": message_id}
    assert copy.content_type == "application/json"
    assert copy.headers == (("customer", "", b"c7"),)
    assert (SUBJECT, "", b"order.7") in copy.system
    assert (KEY, "", b"c7") in copy.system
    assert await receive_all(topics, CRM, 1) == [BODY]


async def test_envelope_and_cloudevent_name_message(topics, put_route, router):
    await put_route("billing", BILLING, format=CopyFormat.ENVELOPE)
    await put_route("audit", AUDIT, format=CopyFormat.CLOUDEVENTS)

    message_id = await publish_one(topics, subject="order.created")

    envelope = msgspec.json.decode((await receive_first(topics, BILLING)).body)
    assert (envelope["id"], envelope["body"]) == (message_id, BODY.decode())
    record = (await first_record(topics)).record
    assert msgspec.json.decode(record.data)["id"] == message_id
    assert (":content_type", "", b"application/cloudevents+json") in record.headers


async def test_key_of_route_becomes_group_and_key(topics, put_route, router):
    await topics.catalog.put_queue(FIFO, QueueSpec(type=QueueType.FIFO))
    await put_route("fifo", FIFO, key="/body/customer")
    await put_route("audit", AUDIT, key=ConstantKey("one"))

    await publish_one(topics)

    copy = await receive_first(topics, FIFO)
    assert copy.group == "ada"
    assert KEY not in {name for name, _, _ in copy.system}
    assert (await first_record(topics)).record.key == "one"


async def test_delay_and_ttl_of_route_apply_to_copy(topics, put_route, router):
    await put_route("billing", BILLING, delay_ms=3_600_000)
    await put_route("crm", CRM, ttl_ms=3_600_000)

    await publish(topics, "a")

    assert await receive_all(topics, CRM, 1) == [b"a"]

    async def is_delayed() -> bool:
        delayed, _ = await topics.inspector.browse(BILLING, state=MessageState.DELAYED)
        return [one.body for one in delayed] == [b"a"]

    await until(is_delayed)


async def test_changed_transform_keeps_earlier_messages(topics, put_route):
    first = await put_route("billing", BILLING, transform=Transform(template="first <message>"))
    await publish(topics, "a")
    second = await put_route("billing", BILLING, transform=Transform(template="second <message>"))
    await publish(topics, "b")
    assert second.number > first.number

    async with RunningRouter(topics):
        assert await receive_all(topics, BILLING, 2) == [b"first a", b"second b"]
