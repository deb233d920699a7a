"""Consumers of a queue: who received from it lately.

A consumer is a principal that receives by one protocol, from one address, with one client program. Several processes on a
machine that use the same key and program are one consumer.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

import msgspec

from storage.domain import limits

_KEY_BYTES = 6
_REMEMBERED_MAX = 4096  # consumers whose keys are cached, per process


class ConsumerProtocol(StrEnum):
    """Protocol by which a consumer receives."""

    REST = "rest"
    SQS = "sqs"
    WS = "ws"
    WEBHOOK = "webhook"


class QueueConsumer(msgspec.Struct, frozen=True):
    """Identity of a consumer; `key` is a digest of the other fields.

    `client`: the program, as it names itself (`User-Agent`), truncated.
    """

    principal: str
    protocol: ConsumerProtocol
    address: str
    client: str
    key: bytes

    @property
    def id(self) -> str:
        """Public id."""
        return self.key.hex()


@lru_cache(_REMEMBERED_MAX)
def queue_consumer(
    principal: str, protocol: ConsumerProtocol, address: str, client: bytes
) -> QueueConsumer:
    """Return the identity of a consumer."""
    name = _printable(client)
    parts = "\0".join((principal, protocol, address, name)).encode(errors="replace")
    key = hashlib.blake2b(parts, digest_size=_KEY_BYTES).digest()
    return QueueConsumer(principal, protocol, address, name, key)


def _printable(client: bytes) -> str:
    text = client[: limits.CONSUMER_CLIENT_CHARACTERS_MAX].decode("latin-1")
    return "".join(character if character.isprintable() else "?" for character in text)


class ReceiveCounts(msgspec.Struct, array_like=True):
    """Receives of a consumer in a minute, and the messages that they returned."""

    receives: int = 0
    messages: int = 0


class ConsumerReport(msgspec.Struct, frozen=True, kw_only=True):
    """Activity of a consumer at one process. `minutes`: by minute since the epoch.

    `waiting`: receives that wait for a message.
    """

    consumer: QueueConsumer
    first_received_at_ms: int
    last_received_at_ms: int
    waiting: int
    minutes: Mapping[int, ReceiveCounts]


class ConsumerActivity(msgspec.Struct, frozen=True, kw_only=True):
    """Activity of a consumer at all processes, over the last five minutes.

    `in_flight`: messages that it received and has not settled.
    """

    consumer: QueueConsumer
    receives_per_second: float
    messages_per_second: float
    last_received_at_ms: int
    waiting: int
    in_flight: int


class ConsumerList(msgspec.Struct, frozen=True):
    """The consumers of a queue, most messages first.

    `is_estimate`: more messages are in flight than were looked at, so that `in_flight` of each is an estimate.
    """

    consumers: tuple[ConsumerActivity, ...]
    is_estimate: bool
