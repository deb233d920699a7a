"""Messages of a queue, as they go over the wire in MessagePack, where a body is its bytes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from millstream_client.bodies import MSGPACK, decode_json, encode_body
from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.errors import ItemRefused

T = TypeVar("T")

PACKED = {"content-type": MSGPACK, "accept": MSGPACK}
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class NewMessage:
    """A message to send. `body`: bytes, text, or anything that JSON can say."""

    body: Any
    headers: dict[str, str] | None = None
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    delay_seconds: float | None = None
    ttl_seconds: float | None = None
    priority: int = 0


class OutMessage(msgspec.Struct, omit_defaults=True):
    """A message on its way to the service."""

    body: bytes
    headers: dict[str, str] = {}
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    delay_seconds: float | None = None
    ttl_seconds: float = 0
    priority: int = 0


def outgoing(message: Any) -> OutMessage:
    """A message to send, or the body of one. Raises TypeError for a body that has no JSON form."""
    asked = message if isinstance(message, NewMessage) else NewMessage(message)
    body, content_type = encode_body(asked.body, asked.content_type)
    return OutMessage(
        body,
        asked.headers or {},
        content_type,
        asked.group,
        asked.dedup_id,
        asked.delay_seconds,
        asked.ttl_seconds or 0,
        asked.priority,
    )


class Sent(msgspec.Struct, frozen=True):
    """Where a message went. `duplicate`: it had been sent before, and nothing was added."""

    id: str
    offset: int
    duplicate: bool


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery of a message; it is its receiver's until `visible_at`."""

    id: str
    body: bytes
    content_type: str = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    group: str = ""
    dedup_id: str = ""
    receipt_handle: str
    offset: int
    sent_at: datetime
    first_received_at: datetime
    visible_at: datetime
    receives: int
    failures: int
    crashes: int
    dead_letter_source: str = ""


class Body:
    """What messages and records have alike: `body` in three forms."""

    __slots__ = ()
    body: bytes

    @property
    def text(self) -> str:
        """The body as text. Raises UnicodeDecodeError, a ValueError, when it is none."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError when it is none."""
        return decode_json(self.body)


class Received(Body):
    """A message at its receiver. Whatever it holds is as it was when it was received."""

    __slots__ = ("delivery",)

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery

    @property
    def id(self) -> str:
        """The message's, in whichever queue it is."""
        return self.delivery.id

    @property
    def body(self) -> bytes:  # type: ignore[override]
        """As it was sent."""
        return self.delivery.body

    @property
    def content_type(self) -> str:
        """Of the body; empty when nobody said."""
        return self.delivery.content_type

    @property
    def headers(self) -> dict[str, str]:
        """Those that are text."""
        return self.delivery.headers

    @property
    def group(self) -> str:
        """Its message group; empty without one."""
        return self.delivery.group

    @property
    def receives(self) -> int:
        """Deliveries so far, with this one."""
        return self.delivery.receives

    @property
    def failures(self) -> int:
        """How many of them were negatively acknowledged."""
        return self.delivery.failures

    @property
    def sent_at(self) -> datetime:
        """When it was sent."""
        return self.delivery.sent_at

    @property
    def visible_at(self) -> datetime:
        """When others get it, unless it is settled or extended before."""
        return self.delivery.visible_at

    @property
    def receipt_handle(self) -> str:
        """Names this delivery."""
        return self.delivery.receipt_handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} receives={self.receives}>"


class Verdict(StrEnum):
    """How a delivery went. extend: still at work."""

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    EXTEND = "extend"
    REJECT = "reject"


class Settlement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A verdict on one delivery."""

    receipt_handle: str
    action: Verdict
    delay_seconds: float | None = None
    visibility_timeout_seconds: float | None = None
    reason: str = ""


class _Error(msgspec.Struct):
    code: str
    detail: str
    retryable: bool

    def refused(self) -> ItemRefused:
        return ItemRefused(self.code, self.detail, self.retryable)


class Settled(msgspec.Struct):
    """A verdict that was taken. `visible_at`: when the message comes back."""

    visible_at: datetime | None = None


class _SettledOut(msgspec.Struct):
    status: str
    visible_at: datetime | None = None
    error: _Error | None = None

    def result(self) -> Settled | ItemRefused:
        return Settled(self.visible_at) if self.error is None else self.error.refused()


class _SentMessages(msgspec.Struct):
    messages: list[Sent]


class _Deliveries(msgspec.Struct):
    messages: list[Delivery]


class _SettleResults(msgspec.Struct):
    results: list[_SettledOut]


# ── Calls ──


def reading(kind: type[T]) -> Callable[[httpx.Response], T]:
    """How an answer in MessagePack is read."""
    decoder = msgspec.msgpack.Decoder(kind)
    return lambda response: decoder.decode(response.content)


_read_sent = reading(_SentMessages)
_read_deliveries = reading(_Deliveries)
_read_results = reading(_SettleResults)


def path(*words: str | int) -> str:
    """A path below /v1 of words that may have any characters."""
    return "/v1/" + "/".join(quote(str(word), safe="") for word in words)


def send(queue: str, messages: Sequence[OutMessage], idempotency_key: str) -> Call[list[Sent]]:
    """Add messages, all of them or none."""
    return Call(
        "send_messages",
        "POST",
        path("queues", queue, "messages"),
        lambda response: _read_sent(response).messages,
        headers={**PACKED, IDEMPOTENCY_KEY: idempotency_key},
        content=_encode({"messages": messages}),
    )


def receive(
    queue: str,
    messages_max: int,
    wait_seconds: float | None,
    visibility_timeout_seconds: float | None,
    attempt_id: str,
) -> Call[list[Delivery]]:
    """Take messages. A repeat gets a fifo queue's again; a standard queue's come back at their timeout, as after a
    consumer that died, and the repeat gets others."""
    asked: dict[str, Any] = {"messages_max": messages_max, "attempt_id": attempt_id}
    if wait_seconds is not None:
        asked["wait_seconds"] = wait_seconds
    if visibility_timeout_seconds is not None:
        asked["visibility_timeout_seconds"] = visibility_timeout_seconds
    return Call(
        "receive_messages",
        "POST",
        path("queues", queue, "receive"),
        lambda response: _read_deliveries(response).messages,
        headers=PACKED,
        content=_encode(asked),
        wait_s=20.0 if wait_seconds is None else wait_seconds,
        guarded=True,
    )


def settle(queue: str, settlements: Iterable[Settlement]) -> Call[list[Settled | ItemRefused]]:
    """Give verdicts, each answered for itself."""
    return Call(
        "settle_messages",
        "POST",
        path("queues", queue, "settle"),
        lambda response: [one.result() for one in _read_results(response).results],
        headers=PACKED,
        content=_encode({"settlements": list(settlements)}),
    )


def only(results: Sequence[T | ItemRefused]) -> T:
    """The result of the only item. Raises ItemRefused."""
    [result] = results
    if isinstance(result, ItemRefused):
        raise result
    return result
