"""Messages of a queue in MessagePack, where a body is its bytes."""

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
    """A message to send. `body`: bytes, text, or any value with a JSON form."""

    body: Any
    headers: dict[str, str] | None = None
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    delay_seconds: float | None = None
    ttl_seconds: float | None = None
    priority: int = 0


class OutMessage(msgspec.Struct, omit_defaults=True):
    """A message in the form in which it is sent."""

    body: bytes
    headers: dict[str, str] = {}
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    delay_seconds: float | None = None
    ttl_seconds: float = 0
    priority: int = 0


def outgoing(message: Any) -> OutMessage:
    """Return the message to send for a NewMessage or a body.

    Raises TypeError for a body without a JSON form.
    """
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
    """Id and offset of a sent message.

    `duplicate`: it had been sent before, and nothing was added.
    """

    id: str
    offset: int
    duplicate: bool


class DeadLetterOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Reason why a message was dead-lettered to its queue, and by which source.

    `source` has the form `queue:<name>` or `group:<name>`. `details` are those of the last failure: a stack trace, or the beginning of the
    response of a webhook's receiver.
    """

    source: str
    reason: str
    died_at: datetime
    failures: int
    crash_count: int
    last_failure_reason: str = ""
    details: str = ""
    response: str = ""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery of a message, leased to its receiver until `visible_at`."""

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
    receive_count: int
    failures: int
    crash_count: int
    topic: str = ""
    subject: str = ""
    route: str = ""
    key: str = ""
    reply_to: str = ""
    dead_letter_source: str = ""
    dead_letter: DeadLetterOrigin | None = None


class Body:
    """Common part of messages and records: `body` in three forms."""

    __slots__ = ()
    body: bytes

    @property
    def text(self) -> str:
        """The body as text. Raises UnicodeDecodeError, a ValueError, if it is not UTF-8."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError if it is not JSON."""
        return decode_json(self.body)


class Received(Body):
    """A received message. Its fields are as of when it was received."""

    __slots__ = ("delivery",)

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery

    @property
    def id(self) -> str:
        """Id of the message, the same in every queue."""
        return self.delivery.id

    @property
    def body(self) -> bytes:  # type: ignore[override]
        """Body as sent."""
        return self.delivery.body

    @property
    def content_type(self) -> str:
        """Content type of the body; empty if none was set."""
        return self.delivery.content_type

    @property
    def headers(self) -> dict[str, str]:
        """Headers with text values."""
        return self.delivery.headers

    @property
    def group(self) -> str:
        """Message group; empty if it has none."""
        return self.delivery.group

    @property
    def topic(self) -> str:
        """Topic that it was published to; empty for a message that no route brought."""
        return self.delivery.topic

    @property
    def subject(self) -> str:
        """Subject in the topic; empty if it has none."""
        return self.delivery.subject

    @property
    def route(self) -> str:
        """Route of the topic that brought it; empty if none did."""
        return self.delivery.route

    @property
    def key(self) -> str:
        """Key in the topic; empty if it has none, and in a FIFO queue, where it is the group."""
        return self.delivery.key

    @property
    def reply_to(self) -> str:
        """If it is a request: what a reply to it names, as in `client.reply`."""
        return self.delivery.reply_to

    @property
    def receive_count(self) -> int:
        """Receive count, including this delivery."""
        return self.delivery.receive_count

    @property
    def receives(self) -> int:
        """Former name of `receive_count`."""
        return self.delivery.receive_count

    @property
    def failures(self) -> int:
        """Number of deliveries that were negatively acknowledged."""
        return self.delivery.failures

    @property
    def dead_letter(self) -> DeadLetterOrigin | None:
        """Why it was dead-lettered to this queue; None if it was not."""
        return self.delivery.dead_letter

    @property
    def sent_at(self) -> datetime:
        """Time at which the message was sent."""
        return self.delivery.sent_at

    @property
    def visible_at(self) -> datetime:
        """Time at which it is redelivered, unless it is settled or extended before."""
        return self.delivery.visible_at

    @property
    def receipt_handle(self) -> str:
        """Receipt handle of this delivery."""
        return self.delivery.receipt_handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} receive_count={self.receive_count}>"


class Verdict(StrEnum):
    """Outcome of a delivery. extend: still processing."""

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    EXTEND = "extend"
    REJECT = "reject"


class OutReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reply in the form in which it is sent. `request`: the `reply_to` of a message."""

    request: str
    body: bytes
    headers: dict[str, str] = {}
    content_type: str = ""


class Settlement(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settlement of one delivery. An acknowledgement of a request can have the `reply` to it."""

    receipt_handle: str
    action: Verdict
    delay_seconds: float | None = None
    visibility_timeout_seconds: float | None = None
    reason: str = ""
    details: str = ""
    reply: OutReply | None = None


def replying(
    delivery: Delivery, body: Any, headers: dict[str, str] | None = None, content_type: str = ""
) -> Settlement:
    """Return the acknowledgement of a request with the reply to it.

    Raises ValueError for a message that is no request, and TypeError for a body without a JSON form.
    """
    if not delivery.reply_to:
        raise ValueError(f"Message {delivery.id} is not a request: it has no reply_to.")
    data, content_type = encode_body(body, content_type)
    reply = OutReply(delivery.reply_to, data, headers or {}, content_type)
    return Settlement(delivery.receipt_handle, Verdict.ACK, reply=reply)


def acknowledgement(delivery: Delivery, value: Any) -> Settlement:
    """Return the acknowledgement of a message whose handler returned a value.

    The value is the reply to a request, unless it is None. Raises TypeError for a value without a JSON form.
    """
    if delivery.reply_to and value is not None:
        return replying(delivery, value)
    return Settlement(delivery.receipt_handle, Verdict.ACK)


class _Error(msgspec.Struct):
    code: str
    detail: str
    retryable: bool

    def refused(self) -> ItemRefused:
        return ItemRefused(self.code, self.detail, self.retryable)


class Settled(msgspec.Struct):
    """A settlement that was accepted. `visible_at`: when the message is redelivered.

    `reply_error`: why the reply to the acknowledged message was refused, if it was.
    """

    visible_at: datetime | None = None
    reply_error: ItemRefused | None = None


class _SettledOut(msgspec.Struct):
    status: str
    visible_at: datetime | None = None
    error: _Error | None = None
    reply_error: _Error | None = None

    def result(self) -> Settled | ItemRefused:
        if self.error is not None:
            return self.error.refused()
        reply_error = None if self.reply_error is None else self.reply_error.refused()
        return Settled(self.visible_at, reply_error)


class _SentMessages(msgspec.Struct):
    messages: list[Sent]


class _Deliveries(msgspec.Struct):
    messages: list[Delivery]


class _SettleResults(msgspec.Struct):
    results: list[_SettledOut]


# ── Calls ──


def reading(kind: type[T]) -> Callable[[httpx.Response], T]:
    """Return the decoder of a response in MessagePack."""
    decoder = msgspec.msgpack.Decoder(kind)
    return lambda response: decoder.decode(response.content)


_read_sent = reading(_SentMessages)
_read_deliveries = reading(_Deliveries)
_read_results = reading(_SettleResults)


def path(*words: str | int) -> str:
    """Return a path below /v1 whose segments may have any characters."""
    return "/v1/" + "/".join(quote(str(word), safe="") for word in words)


def send(queue: str, messages: Sequence[OutMessage], idempotency_key: str) -> Call[list[Sent]]:
    """Send messages, all of them or none."""
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
    """Receive messages.

    A repeat returns the same messages of a FIFO queue. Those of a standard queue are redelivered after their visibility
    timeout, as after a crash of the consumer, and the repeat returns others.
    """
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
    """Settle deliveries, each with its own result."""
    return Call(
        "settle_messages",
        "POST",
        path("queues", queue, "settle"),
        lambda response: [one.result() for one in _read_results(response).results],
        headers=PACKED,
        content=_encode({"settlements": list(settlements)}),
    )


def only(results: Sequence[T | ItemRefused]) -> T:
    """Return the result of the only item. Raises ItemRefused."""
    [result] = results
    if isinstance(result, ItemRefused):
        raise result
    return result
