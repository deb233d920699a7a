"""Routing of the data plane, and the steps of a request, without a server."""

import asyncio

import msgspec
import pytest
from starlette.types import Message

from api.errors import ClientDisconnected, HttpError
from api.http.body import is_open, read_body
from api.http.codecs import JSON, MSGPACK, NDJSON, Items, ItemsBody, answer_type, media_type
from api.http.query import read_query
from api.http.request_id import request_id_of
from api.http.routing import Dispatcher
from api.native.messages import MessageOrBatch, PackedMessageOrBatch, SendMessages
from api.observability.metric_buffers import MetricBuffers
from api.rest.routes import messages, records
from storage.domain.errors import ValidationFailed
from storage.domain.queues.message import NewMessage


@pytest.fixture
def dispatcher() -> Dispatcher:
    routes = [*messages.fast_routes.routes, *records.fast_routes.routes]
    return Dispatcher(routes, MetricBuffers(), "always")


class Connection:
    """A client's side of one request: its chunks, and whether it is connected."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)
        self.gone = asyncio.Event()

    async def receive(self) -> Message:
        if self._chunks:
            body = self._chunks.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self._chunks)}
        await self.gone.wait()
        return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("POST", "/v1/queues/orders/messages", "send_messages"),
        ("POST", "/v1/queues/messages/receive", "receive_messages"),
        ("POST", "/v1/streams/clicks/shards/3/records", "append_records_to_shard"),
        ("GET", "/v1/streams/clicks/records", "read_stream"),
        ("GET", "/v1/queues/orders/messages", "browse_messages"),
        ("POST", "/v2/queues/orders/messages", None),
        ("POST", "/v1/queues/orders", None),
        ("POST", "/v1/queues/orders/messages/", None),
        ("POST", "/v1/queues/orders/messages/7", None),
        ("POST", "/v1/streams/clicks/messages", None),
        ("POST", "v1/queues/orders/messages", None),
    ],
)
def test_path_is_routed_to_operation(dispatcher, method, path, operation):
    route = dispatcher.find(method, path.split("/"))

    assert (route and route.operation) == operation


def test_methods_of_a_path_are_listed(dispatcher):
    assert dispatcher.methods("/v1/streams/clicks/records") == ["GET", "POST"]
    assert dispatcher.methods("/v1/queues/orders") == []


async def test_body_is_read_in_one_piece_or_many():
    assert await read_body(Connection(b"hello").receive, {}) == b"hello"
    assert await read_body(Connection(b"he", b"", b"llo").receive, {}) == b"hello"


async def test_declared_oversized_body_is_not_read():
    connection = Connection(b"x")

    with pytest.raises(HttpError):
        await read_body(connection.receive, {b"content-length": b"16777217"})

    assert (await connection.receive())["type"] == "http.request"


async def test_truncated_body_raises_client_disconnected():
    connection = Connection()
    connection.gone.set()

    with pytest.raises(ClientDisconnected):
        await read_body(connection.receive, {})


async def test_client_connection_is_checked_without_waiting():
    connection = Connection()

    before = is_open(connection.receive, {})
    connection.gone.set()

    assert (before, is_open(connection.receive, {})) == (True, False)


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (b"application/json", JSON),
        (b"Application/JSON; charset=utf-8", JSON),
        (b"application/x-msgpack", MSGPACK),
        (b"application/jsonl", NDJSON),
        (b"text/plain;x=y", "text/plain"),
        (b"", ""),
    ],
)
def test_media_type_ignores_case_and_parameters(header, kind):
    assert media_type({b"content-type": header}) == kind


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, JSON),
        (b"*/*", JSON),
        (b"text/html", JSON),
        (b"application/msgpack, */*", MSGPACK),
        (b"application/x-ndjson", NDJSON),
    ],
)
def test_response_is_json_unless_requested_otherwise(accept, kind):
    assert answer_type({} if accept is None else {b"accept": accept}) == kind


def test_single_item_is_distinguished_from_batch_of_one():
    body = ItemsBody[NewMessage](
        "messages",
        documented=SendMessages,
        json=MessageOrBatch,
        packed=PackedMessageOrBatch,
        items_max=10,
    )
    headers = {b"content-type": b"application/json"}

    alone: Items[NewMessage] = body.decode(b'{"body":"a"}', headers)
    batch: Items[NewMessage] = body.decode(b'{"messages":[{"body":"a"}]}', headers)

    assert (alone.single, batch.single) == (True, False)
    assert alone.values == batch.values == [NewMessage(b"a")]


def test_query_is_parsed_into_struct():
    class Asked(msgspec.Struct, forbid_unknown_fields=True):
        limit: int = 5
        name: str = ""

    assert read_query(b"", Asked) == Asked()
    assert read_query(b"limit=7&name=a%20b", Asked) == Asked(7, "a b")
    for wrong in (b"limit=x", b"other=1", b"limit=1&limit=2"):
        with pytest.raises(ValidationFailed):
            read_query(wrong, Asked)


def test_request_ids_are_unique():
    assert request_id_of({}) != request_id_of({})


@pytest.mark.parametrize("given", [b"", b"a b", b"x" * 129, b"<script>", b"\xff"])
def test_unsafe_request_id_is_replaced(given):
    assert request_id_of({b"x-request-id": given}) != given
