"""The receive endpoint and clients that disconnect, without stores."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from starlette.types import Message

from api.app import create_app
from api.config.settings import Settings
from api.native.messages import ReceivedMessageOut
from storage.access.authorization import Authorizer
from storage.domain.queues.message import ReceivedMessage
from storage.settings import Durability

MESSAGE = ReceivedMessage("id", 0, b"a", (), "", "", "", "handle", 0, 0, 0, 1, 0, 0)


class NoQuotas:
    """Quotas without limits."""

    def acquire(self, *asked: Any, **cost: Any) -> None:
        return None

    def near_limit(self, *asked: Any) -> tuple[()]:
        return ()


class Queues:
    """A queue with one message, which records what is released."""

    def __init__(self) -> None:
        self.released: list[ReceivedMessage] = []

    async def receive(self, name: Any, **asked: Any) -> list[ReceivedMessage]:
        return [MESSAGE]

    async def release(self, name: Any, messages: list[ReceivedMessage]) -> None:
        self.released += messages


async def receive_over(
    queues: Queues, *, leaves: bool, durability: Durability = "always"
) -> list[Message]:
    """Receive a message, and return the ASGI messages sent back."""
    storage: Any = SimpleNamespace(
        queues=queues,
        authorizer=Authorizer(),
        quotas=NoQuotas(),
        health=None,
        streams=None,
        record_reader=None,
        catalog=None,
    )
    app = create_app(Settings(durability=durability), storage)
    news: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    if leaves:
        news.append({"type": "http.disconnect"})
    sent: list[Message] = []

    async def receive() -> Message:
        return news.pop(0) if news else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        sent.append(message)

    path = "/v1/queues/orders/receive"
    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    await app(scope, receive, send)
    return sent


async def test_messages_are_released_when_client_has_disconnected():
    queues = Queues()

    sent = await receive_over(queues, leaves=True)

    assert queues.released == [MESSAGE]
    assert sent == []


async def test_messages_are_delivered_to_connected_client():
    queues = Queues()

    start, body = await receive_over(queues, leaves=False)

    assert queues.released == []
    assert start["status"] == 200
    assert b'"receipt_handle":"handle"' in body["body"]


@pytest.mark.parametrize(("durability", "said"), [("always", None), ("everysec", b"everysec")])
async def test_weaker_durability_is_reported_in_header(durability, said):
    start, _ = await receive_over(Queues(), leaves=False, durability=durability)

    assert dict(start["headers"]).get(b"millstream-durability") == said


def test_replay_headers_are_shown_and_other_reserved_ones_hidden():
    system = ((":replay_id", "", b"r"), (":source_offset", "", b"7"), (":trace", "", b"t"))
    message = msgspec.structs.replace(MESSAGE, headers=(("own", "", b"1"),), system=system)

    shown = ReceivedMessageOut.from_domain(message, binary=False)

    assert shown.headers == {"own": "1", ":replay_id": "r", ":source_offset": "7"}


def test_message_of_route_shows_its_origin():
    headers = {":topic": b"orders", ":subject": b"order.created", ":route": b"crm", ":key": b"c7"}
    system = tuple((name, "", value) for name, value in headers.items())

    shown = ReceivedMessageOut.from_domain(replace(MESSAGE, system=system), binary=False)

    encoded = msgspec.to_builtins(shown)
    assert {name: encoded[name] for name in ("topic", "subject", "route", "key")} == {
        "topic": "orders",
        "subject": "order.created",
        "route": "crm",
        "key": "c7",
    }
    assert "headers" not in encoded


def test_message_without_topic_has_no_origin():
    encoded = msgspec.to_builtins(ReceivedMessageOut.from_domain(MESSAGE, binary=False))

    assert not {"topic", "subject", "route", "key"} & encoded.keys()
