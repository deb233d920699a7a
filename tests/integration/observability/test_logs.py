"""Logs are lines of JSON with ids, and never contain a body or a secret."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from api.config.settings import Settings
from api.http.responses import AccessLog, RequestContext
from api.observability.logging import configure_logs
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.access.credentials import CredentialKind, NewSecret
from storage.domain.limits import Limits
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.otlp_collector import running_collector
from tests.secured_service import ADMIN_RIGHTS, SecuredService
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

SECRET = "hush-hush"
IDS = {"request_id", "trace_id", "span_id", "namespace", "principal"}
OF_REQUESTS = {"ts", "level", "event", "logger", "operation", "status", "duration_ms", *IDS}


class Lines:
    """The logged lines."""

    def __init__(self) -> None:
        self.written = io.StringIO()

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written.getvalue().splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.all if line["event"] == event]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The log of a process that configures it itself, at `debug`."""
    actual_lines, root = Lines(), logging.getLogger()
    handlers, level = root.handlers, root.level
    yield actual_lines
    root.handlers, root.level = handlers, level
    root.setLevel(level)


@asynccontextmanager
async def logging_to(lines: Lines, storage: Storage, **more: Any) -> AsyncGenerator[SecuredService]:
    """Serve with credentials required, and with the most verbose log."""
    settings = Settings(auth="keys", log_level="debug", access_log="all", **more)
    async with running_server(storage, Limits(), settings) as server:
        [handler] = logging.getLogger().handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(lines.written)
        yield SecuredService(server, storage)


@pytest.fixture
async def guarded_storage(redis_url, database_url) -> AsyncGenerator[Storage]:
    settings = StorageSettings(
        redis_url=redis_url, database_url=database_url, secret_keys=(new_key(),)
    )
    async with open_storage(settings) as storage:
        await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
        await storage.catalog.put_stream(StreamName("clicks"), StreamSpec(shards=1))
        yield storage


def raise_unexpected_errors(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every engine call raise an unexpected error."""

    async def boom(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    for engine, verb in (
        (storage.queues, "send"),
        (storage.queues, "stats"),
        (storage.streams, "append"),
        (storage.streams, "append_hashed"),
    ):
        if hasattr(engine, verb):
            monkeypatch.setattr(engine, verb, boom)


async def send_secrets(secured_service: SecuredService) -> list[str]:
    """Send secrets in headers, queries and bodies; returns the other secrets."""
    key, pair = await secured_service.key(), await secured_service.key(kind=CredentialKind.PAIR)
    headers = {"authorization": f"Bearer {key.token}"}
    body = {"body": SECRET, "headers": {"h": SECRET}}
    async with httpx.AsyncClient(base_url=secured_service.url, timeout=PATIENCE_S) as client:
        for shown in (headers, {"x-api-key": f"msk_{SECRET}"}, {"authorization": SECRET}):
            path = f"/v1/queues/orders/messages?ticket={SECRET}"
            await client.post(path, json=body, headers=shown)
            await client.post(f"/v1/queues/orders/messages?x={SECRET}", headers=shown)
            await client.post("/v1/queues/orders/messages", json=body, headers=shown)
            record = {"records": [{"data": SECRET, "key": "k"}]}
            await client.post("/v1/streams/clicks/records", json=record, headers=shown)
            await client.get(f"/v1/queues/orders/stats?token={SECRET}", headers=shown)
            await client.put(f"/v1/queues/q?x={SECRET}", json={SECRET: 1}, headers=shown)
            await client.get(f"/v1/nothing?ticket={SECRET}", headers=shown)
            query = {"Action": "SendMessage", "MessageBody": SECRET, "QueueUrl": "orders"}
            await client.post("/", data=query, headers=shown)
        ticket = (await client.post("/v1/tickets", headers=headers)).json()["ticket"]
    await asyncio.to_thread(_by_amazon, secured_service, pair)
    for word in (SECRET, ticket):
        with suppress(InvalidStatus):
            async with connect(f"{secured_service.socket_address}?ticket={word}") as socket:
                await socket.send(json.dumps({"type": "hello"}))
                await socket.recv()
                items = [{"body": SECRET}]
                frame = {"type": "publish", "id": "p", "to": "queue:orders", "items": items}
                await socket.send(json.dumps(frame))
                refused = json.loads(await socket.recv())
                assert refused["problem"]["code"] == "internal_error"
    return [SECRET, key.token, pair.token, ticket]


def _by_amazon(secured_service: SecuredService, pair: NewSecret) -> None:
    with closing(secured_service.client("sqs", pair.id, pair.token)) as sqs, suppress(ClientError):
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=SECRET)
    with (
        closing(secured_service.client("kinesis", pair.id, pair.token)) as kinesis,
        suppress(ClientError),
    ):
        kinesis.put_record(StreamName="clicks", Data=SECRET.encode(), PartitionKey="k")


async def test_log_lines_have_request_fields_but_no_body_or_secret(
    guarded_storage, lines, monkeypatch
):
    async with logging_to(lines, guarded_storage) as secured_service:
        raise_unexpected_errors(guarded_storage, monkeypatch)
        secrets = await send_secrets(secured_service)

    written = lines.written.getvalue()
    assert [word for word in secrets if word in written] == []
    assert "?" not in "".join(line["operation"] for line in lines.of("request"))
    of_requests = [*lines.of("request"), *lines.of("request_failed")]
    assert [line for line in of_requests if not line.keys() >= OF_REQUESTS] == []
    failed = {line["operation"] for line in lines.of("request_failed")}
    assert {"send_messages", "append_records", "SendMessage", "publish"} <= failed
    operations = {line["operation"] for line in lines.of("request")}
    assert {"put_queue", "get_queue_stats", "make_ticket", "PutRecord", "no_route"} <= operations
    assert {line["level"] for line in lines.of("request_failed")} == {"error"}
    assert all("RuntimeError: boom" in line["exception"] for line in lines.of("request_failed"))


async def test_log_line_names_caller_operation_and_outcome(guarded_storage, lines):
    async with logging_to(lines, guarded_storage) as secured_service:
        key = await secured_service.key(ADMIN_RIGHTS)
        path = "/v1/queues/orders/messages"
        headers = {"x-request-id": "mine-1"}
        await secured_service.request("POST", path, key, json={"body": "x"}, headers=headers)
        await secured_service.request("GET", "/v1/queues/missing", key)

    sent, got = lines.of("request")
    assert (sent["operation"], sent["status"], sent["request_id"]) == (
        "send_messages",
        201,
        "mine-1",
    )
    assert (sent["namespace"], sent["principal"], sent["trace_id"]) == ("default", "ada", "")
    assert 0 < sent["duration_ms"] < PATIENCE_S * 1000
    assert (got["operation"], got["status"]) == ("get_queue", 404)


async def test_log_line_names_its_span_when_tracing(guarded_storage, lines, monkeypatch):
    with running_collector() as collected:
        async with logging_to(
            lines, guarded_storage, otlp_endpoint=collected.url
        ) as secured_service:
            raise_unexpected_errors(guarded_storage, monkeypatch)
            key = await secured_service.key()
            await secured_service.request(
                "POST", "/v1/queues/orders/messages", key, json={"body": "x"}
            )

    [span], [failed] = collected.spans_named("send orders"), lines.of("request_failed")
    assert (failed["trace_id"], failed["span_id"]) == (span.trace_id.hex(), span.span_id.hex())
    assert span.status.code == 2


async def test_only_failures_are_logged_by_default(guarded_storage, lines):
    async with running_server(guarded_storage, Limits(), Settings(log_level="info")) as server:
        logging.getLogger().handlers[0].setStream(lines.written)  # type: ignore[attr-defined]
        async with httpx.AsyncClient(base_url=server.url) as client:
            await client.post("/v1/queues/orders/messages", json={"body": "x"})
            await client.get("/v1/queues/missing")

    assert lines.all == []


def test_library_warnings_keep_fields_and_library_info_is_cut(lines):
    configure_logs("debug")
    logging.getLogger().handlers[0].setStream(lines.written)  # type: ignore[attr-defined]

    logging.getLogger("consumers.maintenance.scheduler").warning(
        "maintenance_deferred", extra={"task": "moves"}
    )
    for name in ("httpx", "httpcore.http11", "websockets.server", "uvicorn.error"):
        logging.getLogger(name).info("GET /?ticket=%s", SECRET)

    [line] = lines.all
    assert (line["event"], line["task"], line["level"]) == (
        "maintenance_deferred",
        "moves",
        "warning",
    )


@pytest.mark.parametrize(
    ("word", "rate"), [("off", 0), ("sampled", 0.01), ("all", 1), ("0.25", 0.25), ("0", 0)]
)
def test_access_log_is_all_sampled_or_off(word: str, rate: float):
    assert Settings(access_log=word).access_rate == rate


@pytest.mark.parametrize("word", ["most", "2", "-1", "nan", ""])
def test_invalid_access_log_share_is_rejected(word: str):
    with pytest.raises(ValueError, match="access_log"):
        Settings(access_log=word)


def test_access_log_samples_requested_share(lines):
    configure_logs("info")
    logging.getLogger().handlers[0].setStream(lines.written)  # type: ignore[attr-defined]
    access_log = AccessLog(0.25)

    for _ in range(400):
        access_log.note("send_messages", 201, b"r", RequestContext())

    assert 50 < len(lines.all) < 150
