"""Messages of a topic in MessagePack, where bodies are their bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from millstream_client.bodies import encode_body
from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.errors import ItemRefused
from millstream_client.messages import PACKED, path, reading

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class NewPublication:
    """A message to publish. `body`: bytes, text, or any value with a JSON form.

    `subject`: words with dots between, such as `order.created`. Messages with the same key stay in order. `dedup_id`: of a
    FIFO topic, on which a repeated id adds nothing for five minutes. The others apply to copies in queues.
    """

    body: Any
    subject: str = ""
    key: str = ""
    headers: dict[str, str] | None = None
    content_type: str = ""
    dedup_id: str = ""
    delay_seconds: float | None = None
    ttl_seconds: float | None = None
    priority: int = 0


class OutPublication(msgspec.Struct, omit_defaults=True):
    """A message in the form in which it is sent."""

    body: bytes
    subject: str = ""
    key: str = ""
    headers: dict[str, str] = {}
    content_type: str = ""
    dedup_id: str = ""
    delay_seconds: float | None = None
    ttl_seconds: float = 0
    priority: int = 0


def outgoing(message: Any) -> OutPublication:
    """Return the message to publish for a NewPublication or a body.

    Raises TypeError for a body without a JSON form.
    """
    new = message if isinstance(message, NewPublication) else NewPublication(message)
    body, content_type = encode_body(new.body, new.content_type)
    return OutPublication(
        body,
        new.subject,
        new.key,
        new.headers or {},
        content_type,
        new.dedup_id,
        new.delay_seconds,
        new.ttl_seconds or 0,
        new.priority,
    )


class Published(msgspec.Struct, frozen=True):
    """Id of an accepted message, and the number of routes that take it.

    `duplicate`: it had been accepted before; `routes` is None then.
    """

    id: str
    shard: int
    offset: int
    duplicate: bool = False
    routes: int | None = None


class _Error(msgspec.Struct):
    code: str
    detail: str
    retryable: bool


class _Result(msgspec.Struct):
    id: str = ""
    shard: int = -1
    offset: int = -1
    duplicate: bool = False
    routes: int | None = None
    error: _Error | None = None

    def result(self) -> Published | ItemRefused:
        if self.error is not None:
            return ItemRefused(self.error.code, self.error.detail, self.error.retryable)
        return Published(self.id, self.shard, self.offset, self.duplicate, self.routes)


class _Published(msgspec.Struct):
    messages: list[_Result]
    failed: int


_read_published = reading(_Published)


def results(items: list[Any]) -> list[Published | ItemRefused]:
    """Return the result of each message of a `publish` frame."""
    return [item.result() for item in msgspec.convert(items, list[_Result])]


def publish(
    topic: str, messages: Sequence[OutPublication], idempotency_key: str
) -> Call[list[Published | ItemRefused]]:
    """Publish messages, each with its own result."""
    return Call(
        "publish_messages",
        "POST",
        path("topics", topic, "messages"),
        lambda response: [one.result() for one in _read_published(response).messages],
        headers={**PACKED, IDEMPOTENCY_KEY: idempotency_key},
        content=_encode({"messages": messages}),
    )
