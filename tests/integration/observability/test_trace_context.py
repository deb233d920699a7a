"""Trace context is carried through messages by every protocol, and spans are linked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from typing import Any

import httpx
import pytest

from api.config.settings import Settings
from storage.bootstrap import Storage
from storage.domain.limits import Limits
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from tests.aws_clients import aws_client
from tests.conditions import PATIENCE_S
from tests.otlp_collector import SpanCollector, attributes_of, running_collector
from tests.websocket_client import Server, running_server

pytestmark = pytest.mark.one_store

AMAZON = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
SAID_BY_AMAZON = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SERVER, PRODUCER = 2, 4
TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": AMAZON}}


class Traced:
    """A service whose spans are collected once it has ended."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S)

    async def send(self, body: str, **more: Any) -> None:
        answer = await self.client.post("/v1/queues/orders/messages", json={"body": body}, **more)
        assert answer.status_code == 201, answer.text

    async def receive(self) -> list[dict[str, Any]]:
        answer = await self.client.post("/v1/queues/orders/receive", json={"messages_max": 10})
        return list(answer.json()["messages"])

    async def sqs(self, call: str, **asked: Any) -> dict[str, Any]:
        """Call boto3 in a thread."""
        return await asyncio.to_thread(self._sqs, call, asked)

    def _sqs(self, call: str, asked: dict[str, Any]) -> dict[str, Any]:
        url = f"{self.server.url}/000000000000/orders"
        with closing(aws_client("sqs", self.server.url)) as client:
            return dict(getattr(client, call)(QueueUrl=url, **asked))


@asynccontextmanager
async def serve(storage: Storage, settings: Settings | None = None) -> AsyncGenerator[Traced]:
    """Serve a storage; its spans are available once this has ended."""
    async with running_server(storage, Limits(), settings) as server:
        traced = Traced(server)
        async with traced.client:
            yield traced


@pytest.fixture
async def collected() -> AsyncGenerator[SpanCollector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture
def settings_of(collected: SpanCollector) -> Settings:
    return Settings(otlp_endpoint=collected.url)


@pytest.fixture
async def stocked(storage):
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    await storage.catalog.put_stream(StreamName("clicks"), StreamSpec(shards=1))
    return storage


def ids(context: str) -> tuple[str, str]:
    _, trace, span, _ = context.split("-")
    return trace, span


def own(span) -> tuple[str, str]:
    return span.trace_id.hex(), span.span_id.hex()


def links(span) -> list[tuple[str, str]]:
    return [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]


async def test_trace_context_crosses_sqs_and_rest_without_collector(stocked):
    async with serve(stocked) as traced:
        await traced.sqs("send_message", MessageBody="a", MessageSystemAttributes=TRACE)
        [first] = await traced.receive()
        browsed = await traced.client.get("/v1/queues/orders/messages")
        await traced.send("b", headers={"traceparent": CALLER})
        second = await traced.sqs("receive_message", AttributeNames=["AWSTraceHeader"])
        await traced.send("c")
        third = await traced.sqs("receive_message", AttributeNames=["AWSTraceHeader"])

    assert first["headers"] == {"traceparent": SAID_BY_AMAZON}
    assert browsed.json()["items"][0]["headers"] == {"traceparent": SAID_BY_AMAZON}
    said = second["Messages"][0]["Attributes"]["AWSTraceHeader"]
    trace, span = ids(CALLER)
    assert said == f"Root=1-{trace[:8]}-{trace[8:]};Parent={span};Sampled=1"
    assert "Attributes" not in third["Messages"][0]


async def test_aws_trace_header_round_trips_unchanged(stocked):
    own_form = f"{AMAZON};Lineage=a87bd80c:1|68fd508a:5;Mine=x"
    async with serve(stocked) as traced:
        attributes = {"AWSTraceHeader": {"DataType": "String", "StringValue": own_form}}
        sent = await traced.sqs("send_message", MessageBody="a", MessageSystemAttributes=attributes)
        got = await traced.sqs(
            "receive_message", AttributeNames=["All"], MessageAttributeNames=["All"]
        )

    [message] = got["Messages"]
    assert message["Attributes"]["AWSTraceHeader"] == own_form
    assert "MessageAttributes" not in message
    assert "MD5OfMessageSystemAttributes" in sent


async def test_receive_over_rest_links_to_sqs_send(stocked, settings_of, collected):
    async with serve(stocked, settings_of) as traced:
        await traced.sqs("send_message", MessageBody="a", MessageSystemAttributes=TRACE)
        [message] = await traced.receive()
        handle = message["receipt_handle"]
        verdict = {"settlements": [{"receipt_handle": handle, "action": "ack"}]}
        await traced.client.post("/v1/queues/orders/settle", json=verdict)
        assert await traced.receive() == []

    [send], [receive] = (
        collected.spans_named("send orders"),
        collected.spans_named("receive orders"),
    )
    [settle] = collected.spans_named("settle orders")
    assert message["headers"] == {"traceparent": SAID_BY_AMAZON}
    assert links(receive) == [ids(SAID_BY_AMAZON)] == links(send)
    assert (receive.kind, settle.kind) == (SERVER, SERVER)
    assert attributes_of(receive) == {
        "messaging.system": "millstream",
        "messaging.operation.name": "receive",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "orders",
        "messaging.batch.message_count": 1,
        "millstream.operation": "receive_messages",
        "millstream.namespace": "default",
        "http.response.status_code": 200,
    }
    assert attributes_of(send)["millstream.operation"] == "SendMessage"
    assert {resource["service.name"] for resource in collected.resources} == {"millstream"}


async def test_send_without_context_starts_trace(stocked, settings_of, collected):
    async with serve(stocked, settings_of) as traced:
        await traced.send("a")
        await traced.sqs("send_message", MessageBody="b")
        first, second = await traced.receive()

    by_rest, by_sqs = collected.spans_named("send orders")
    [receive] = collected.spans_named("receive orders")
    assert {by_rest.kind, by_sqs.kind} == {PRODUCER}
    assert ids(first["headers"]["traceparent"]) == own(by_rest)
    assert ids(second["headers"]["traceparent"]) == own(by_sqs)
    assert links(receive) == [own(by_rest), own(by_sqs)]


async def test_caller_context_is_propagated_unless_message_has_its_own(
    stocked, settings_of, collected
):
    messages = [{"body": "a"}, {"body": "b", "headers": {"traceparent": SAID_BY_AMAZON}}]
    async with serve(stocked, settings_of) as traced:
        headers = {"traceparent": CALLER, "tracestate": "vendor=1", "baggage": "user=ada"}
        path = "/v1/queues/orders/messages"
        await traced.client.post(path, json={"messages": messages}, headers=headers)
        first, second = await traced.receive()

    [send] = collected.spans_named("send orders")
    assert (send.trace_id.hex(), send.parent_span_id.hex()) == ids(CALLER)
    assert (send.kind, send.trace_state) == (SERVER, "vendor=1")
    assert first["headers"] == {"traceparent": CALLER, "tracestate": "vendor=1"}
    assert second["headers"] == {"traceparent": SAID_BY_AMAZON}
    assert links(send) == [ids(SAID_BY_AMAZON)]


async def test_trace_context_crosses_rest_and_websocket(stocked, settings_of, collected):
    async with serve(stocked, settings_of) as traced, traced.server.socket() as socket:
        await socket.subscribe("work", "queue:orders", credit={"messages": 1, "bytes": 1000})
        await traced.send("a", headers={"traceparent": CALLER})
        [pushed] = await socket.messages(1)
        items = [{"body": "b"}, {"body": "c", "headers": {"traceparent": CALLER}}]
        await socket.request("publish", to="queue:orders", items=items)
        second, third = await traced.receive()

    pushing, receive = collected.spans_named("receive orders")
    _, publish = collected.spans_named("send orders")
    assert pushed["headers"] == {"traceparent": CALLER}
    assert links(pushing) == [ids(CALLER)]
    assert attributes_of(pushing)["millstream.operation"] == "deliver"
    assert ids(second["headers"]["traceparent"]) == own(publish)
    assert third["headers"] == {"traceparent": CALLER}
    assert links(receive) == [own(publish), ids(CALLER)]


async def test_stream_records_carry_trace_context(stocked, settings_of, collected):
    async with serve(stocked, settings_of) as traced:
        client = traced.client
        await client.post("/v1/streams/clicks/records", json={"records": [{"data": "a"}]})
        read = (await client.get("/v1/streams/clicks/records")).json()["records"]
        events = await client.get("/v1/streams/clicks/events?follow=false")

    [send], [receive] = (
        collected.spans_named("send clicks"),
        collected.spans_named("receive clicks"),
    )
    context = read[0]["headers"]["traceparent"]
    assert ids(context) == own(send)
    assert links(receive) == [own(send)]
    assert context in events.text


async def test_waiting_receive_span_excludes_wait_and_empty_has_none(
    stocked, settings_of, collected
):
    async with serve(stocked, settings_of) as traced:
        path = "/v1/queues/orders/receive"
        await traced.client.post(path, json={"wait_seconds": 0.05})
        waiting = asyncio.create_task(traced.client.post(path, json={"wait_seconds": 5}))
        await asyncio.sleep(1.1)
        await traced.send("a")
        await waiting

    [receive] = collected.spans_named("receive orders")
    took_ms = (receive.end_time_unix_nano - receive.start_time_unix_nano) / 1e6
    assert took_ms < 500
    assert attributes_of(receive)["millstream.waited_ms"] >= 1000


async def test_request_spans_are_named_by_route_and_record_errors(stocked, settings_of, collected):
    async with serve(stocked, settings_of) as traced:
        client = traced.client
        await client.get("/v1/queues/orders?secret=s", headers={"traceparent": CALLER})
        await client.get("/v1/queues/missing")
        await client.post("/v1/queues/missing/messages", json={"body": "a"})
        await client.get("/livez")

    first, second = collected.spans_named("GET /v1/queues/{queue}")
    [send] = collected.spans_named("send missing")
    assert (first.trace_id.hex(), first.parent_span_id.hex()) == ids(CALLER)
    assert attributes_of(second)["http.response.status_code"] == 404
    assert attributes_of(send)["error.type"] == "queue_not_found"
    assert send.status.code == 0  # the caller's mistake
    assert len(collected.spans) == 3
    assert not [span for span in collected.spans if "secret" in str(span)]


async def test_unsampled_trace_is_respected(stocked, settings_of, collected):
    async with serve(stocked, settings_of) as traced:
        await traced.send("a", headers={"traceparent": CALLER[:-2] + "00"})

    assert collected.spans == []


async def test_no_spans_are_created_when_sdk_is_disabled(stocked, collected):
    settings = Settings(otlp_endpoint=collected.url, otel_sdk_disabled=True)
    async with serve(stocked, settings) as traced:
        await traced.send("a")
        [message] = await traced.receive()

    assert collected.spans == []
    assert "headers" not in message


async def test_idempotent_retry_adds_nothing_despite_new_span(stocked, settings_of, collected):
    key, other = {"idempotency-key": "k"}, {"idempotency-key": "k", "traceparent": CALLER}
    messages, records = "/v1/queues/orders/messages", "/v1/streams/clicks/records"
    async with serve(stocked, settings_of) as traced:
        client = traced.client
        sent = [
            await client.post(messages, json={"body": "a"}, headers=headers)
            for headers in (key, key, other)
        ]
        appended = [
            await client.post(records, json={"data": "a", "key": "k"}, headers=headers)
            for headers in (key, key, other)
        ]
        reused = await client.post(messages, json={"body": "b"}, headers=key)
        async with traced.server.socket() as socket:
            for _ in range(2):
                frame = {"to": "queue:orders", "items": [{"body": "c"}], "idempotency_key": "p"}
                reply = await socket.request("publish", **frame)

    assert [answer.json()["duplicate"] for answer in sent] == [False, True, True]
    assert [answer.json()["duplicate"] for answer in appended] == [False, True, True]
    assert reply["results"][0]["duplicate"], reply
    assert reused.json()["code"] == "idempotency_key_reused"


async def test_message_at_size_limit_is_accepted_with_its_span(stocked, settings_of, collected):
    await stocked.catalog.put_queue(QueueName("orders"), QueueSpec(message_bytes_max=1024))
    spec = StreamSpec(shards=1, record_bytes_max=1024)
    await stocked.catalog.put_stream(StreamName("clicks"), spec)
    async with serve(stocked, settings_of) as traced:
        await traced.send("x" * 1024)
        [message] = await traced.receive()
        record = {"data": "x" * 1023, "key": "k"}
        appended = await traced.client.post("/v1/streams/clicks/records", json=record)

    assert ids(message["headers"]["traceparent"]) == own(collected.spans_named("send orders")[0])
    assert appended.status_code == 201


async def test_trace_context_survives_dead_letter_and_redrive(stocked):
    await stocked.catalog.put_queue(QueueName("orders"), QueueSpec(attempts_max=1))
    async with serve(stocked) as traced:
        await traced.sqs("send_message", MessageBody="a", MessageSystemAttributes=TRACE)
        [message] = await traced.receive()
        verdict = {"receipt_handle": message["receipt_handle"], "action": "reject", "reason": "no"}
        await traced.client.post("/v1/queues/orders/settle", json={"settlements": [verdict]})
        dead = (await traced.client.get("/v1/queues/orders/dead-letters")).json()["items"]
        await traced.client.post("/v1/queues/orders/redrives", json={})
        async with asyncio.timeout(PATIENCE_S):
            while not (again := await traced.receive()):  # noqa: ASYNC110 no event tells
                await asyncio.sleep(0.02)

    assert dead[0]["headers"] == {"traceparent": SAID_BY_AMAZON}
    assert again[0]["headers"] == {"traceparent": SAID_BY_AMAZON}
