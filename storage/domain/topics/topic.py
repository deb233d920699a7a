"""Topic: a stream that is written by publishing, and the messages published to it.

A topic named `orders` is the stream `topic:orders` with a `TopicSpec`, so it has shards, retention, archive, consumer groups and
replays as any stream. A published message is a record with two reserved headers: its subject, and the numbers of the routes
that take it, which were decided when it was accepted (ADR 0092).
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.filters.documents import Document
from storage.domain.filters.subjects import check_subject
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    DEDUP_ID,
    SUBJECT,
    Header,
    Headers,
    Record,
)
from storage.domain.names import TopicName
from storage.domain.requests.token import REPLY_TO
from storage.domain.streams.topic_spec import TopicSpec
from storage.domain.topics.message_id import TopicMessageId

ROUTES = ":routes"
TOPIC = ":topic"
"""Header of a copy: the topic that it was published to."""

ROUTE = ":route"
"""Header of a copy: the route that brought it."""

DEAD_LETTER_PREFIX = "dead-letter-"
"""Beginning of the names of headers about a dead letter that is published to a topic."""

KEY = ":key"
"""Header of a copy in a queue without groups: its key."""

HOPS = ":hops"
"""Header of a message that a route brought from another topic: the number of these topics."""

DELAY_MS = ":delay_ms"
TTL_MS = ":ttl_ms"
PRIORITY = ":priority"
OPTION_HEADERS = frozenset({DEDUP_ID, DELAY_MS, TTL_MS, PRIORITY})
"""Headers of the options of a message."""

PUBLISHED_HEADERS = frozenset({CONTENT_TYPE, SUBJECT, ROUTES, HOPS, REPLY_TO}) | OPTION_HEADERS
"""Reserved headers of a published record."""

_FENCE_PREFIX = "routes:"


class PublicationOptions(NamedTuple):
    """Options of a publication, in reserved headers of its record.

    `delay_ms`: None for that of the route or the queue. `ttl_ms`: from the publication, and behind the delay; 0 for that of
    the route or the queue. `priority`: of copies in standard queues.
    """

    dedup_id: str = ""
    delay_ms: int | None = None
    ttl_ms: int = 0
    priority: int = 0

    def headers(self) -> Headers:
        """Return the headers of the options that are given."""
        headers: list[Header] = [(DEDUP_ID, "", self.dedup_id.encode())] if self.dedup_id else []
        if self.delay_ms is not None:
            headers.append((DELAY_MS, "", b"%d" % self.delay_ms))
        if self.ttl_ms:
            headers.append((TTL_MS, "", b"%d" % self.ttl_ms))
        if self.priority:
            headers.append((PRIORITY, "", b"%d" % self.priority))
        return tuple(headers)

    def check(self, topic: TopicSpec, pointer: str) -> None:
        """Raise ValidationFailed for options that the topic does not accept, below a pointer."""
        if self.delay_ms is not None and not 0 <= self.delay_ms <= limits.DELAY_MS_MAX:
            detail = "The delay must be 0 to 10 years"
            raise ValidationFailed.at(f"{pointer}/delay_seconds", detail, "out_of_range")
        if not 0 <= self.ttl_ms <= limits.TTL_MS_MAX:
            raise ValidationFailed.at(f"{pointer}/ttl_seconds", "0 to 10 years", "out_of_range")
        if not 0 <= self.priority <= limits.PRIORITY_MAX:
            detail = f"The priority must be 0 to {limits.PRIORITY_MAX}"
            raise ValidationFailed.at(f"{pointer}/priority", detail, "out_of_range")
        if len(self.dedup_id) > limits.GROUP_CHARACTERS_MAX:
            detail = f"At most {limits.GROUP_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"{pointer}/dedup_id", detail, "too_long")
        if topic.is_fifo:
            self._check_order(pointer)
        elif self.dedup_id:
            detail = "A deduplication id requires a FIFO topic"
            raise ValidationFailed.at(f"{pointer}/dedup_id", detail, "not_supported")

    def _check_order(self, pointer: str) -> None:
        if self.delay_ms:
            detail = "FIFO topics do not support a delay per message"
            raise ValidationFailed.at(f"{pointer}/delay_seconds", detail, "not_supported")
        if self.priority:
            detail = "A message of a FIFO topic cannot have a priority"
            raise ValidationFailed.at(f"{pointer}/priority", detail, "not_supported")


NO_OPTIONS = PublicationOptions()


def options_of(headers: Headers) -> PublicationOptions:
    """Return the options in a record's headers."""
    values = {name: value for name, _, value in headers if name in OPTION_HEADERS}
    if not values:
        return NO_OPTIONS
    delay = values.get(DELAY_MS)
    return PublicationOptions(
        values.get(DEDUP_ID, b"").decode(),
        None if delay is None else int(delay),
        int(values.get(TTL_MS, 0)),
        int(values.get(PRIORITY, 0)),
    )


def content_dedup_id(body: bytes) -> str:
    """Return the deduplication id of a body without one: its SHA-256."""
    return hashlib.sha256(body).hexdigest()


class NewPublication(msgspec.Struct, frozen=True, gc=False):
    """Message to publish. Its key chooses the shard; messages of a key keep their order.

    `hops`: number of topics that it has passed already. `reply_to`: the token of the request that it is, if it is one. Raises
    ValidationFailed for an empty body, which queues do not accept, and for an invalid subject.
    """

    body: bytes
    subject: str = ""
    key: str = ""
    headers: Headers = ()
    hops: int = 0
    reply_to: str = ""
    options: PublicationOptions = NO_OPTIONS

    def __post_init__(self) -> None:
        if not self.body:
            detail = "A message must have at least one byte"
            raise ValidationFailed.at("/body", detail, "too_short")
        if self.subject:
            check_subject(self.subject)

    def record(self, numbers: Iterable[int]) -> Record:
        """Return the record of the message, given the numbers of the routes that take it."""
        own: list[Header] = [(SUBJECT, "", self.subject.encode())] if self.subject else []
        if self.hops:
            own.append((HOPS, "", b"%d" % self.hops))
        if self.reply_to:
            own.append((REPLY_TO, "", self.reply_to.encode()))
        own += self.options.headers()
        packed = _encoder.encode(list(numbers))
        return Record(self.body, self.key, (*self.headers, *own, (ROUTES, "", packed)))

    def document(self, topic: TopicName) -> Document:
        """Return what the matches of the topic's routes see of the message."""
        return Document(self.subject, self.key, self.headers, self.body, {"topic": topic.name})

    def check(self, topic: TopicSpec, pointer: str) -> None:
        """Raise ValidationFailed for a message that the topic does not accept, below a pointer."""
        if topic.is_fifo and not self.key:
            detail = "A message of a FIFO topic requires a key"
            raise ValidationFailed.at(f"{pointer}/key", detail, "required")
        if topic.is_fifo and not self.options.dedup_id and not topic.deduplicate_by_content:
            detail = (
                "A message of a FIFO topic requires a deduplication id, unless the topic has "
                "deduplicate_by_content"
            )
            raise ValidationFailed.at(f"{pointer}/dedup_id", detail, "required")
        if self.options is not NO_OPTIONS:
            self.options.check(topic, pointer)

    def with_dedup_id(self) -> "NewPublication":
        """Return the message with the deduplication id of its content, unless it has one."""
        if self.options.dedup_id:
            return self
        options = self.options._replace(dedup_id=content_dedup_id(self.body))
        return msgspec.structs.replace(self, options=options)


class Published(msgspec.Struct, frozen=True, gc=False):
    """Id of an accepted message, and the number of routes that take it.

    `routes` is None for a duplicate: it had been accepted before, and what takes it was decided then.
    """

    id: TopicMessageId
    routes: int | None

    @property
    def shard(self) -> int:
        """Shard of the topic that has the message."""
        return self.id.shard

    @property
    def offset(self) -> int:
        """Offset of the message in its shard."""
        return self.id.offset

    @property
    def duplicate(self) -> bool:
        """True if nothing was added."""
        return self.routes is None


_encoder = msgspec.msgpack.Encoder()
_numbers_decoder = msgspec.msgpack.Decoder(tuple[int, ...])


def hops_of(headers: Headers) -> int:
    """Return the number of topics that a message has passed before this one."""
    for name, _, value in headers:
        if name == HOPS:
            return int(value)
    return 0


def routes_of(headers: Headers) -> tuple[int, ...]:
    """Return the numbers of the routes that take a record."""
    packed = packed_routes_of(headers)
    return () if packed is None else unpack_routes(packed)


def packed_routes_of(headers: Headers) -> bytes | None:
    """Return the value of the header with the routes that take a record; None without one."""
    for name, _, value in headers:
        if name == ROUTES:
            return value
    return None


def unpack_routes(packed: bytes) -> tuple[int, ...]:
    """Return the numbers in the value of a header with routes."""
    return _numbers_decoder.decode(packed)


def fence_of(version: int) -> str:
    """Return the fencing token of a topic's logs for a version of its route table; 0 has none."""
    return f"{_FENCE_PREFIX}{version}" if version else ""


def version_of(fence: str) -> int:
    """Return the version of the route table that a fencing token names; 0 for another token."""
    version = fence.removeprefix(_FENCE_PREFIX)
    return int(version) if version != fence and version.isdigit() else 0
