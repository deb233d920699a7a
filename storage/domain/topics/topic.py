"""Topic: a stream that is written by publishing, and the messages published to it.

A topic named `orders` is the stream `topic:orders` with a `TopicSpec`, so it has shards, retention, archive, consumer groups and
replays as any stream. A published message is a record with two reserved headers: its subject, and the numbers of the routes
that take it, which were decided when it was accepted (ADR 0092).
"""

from collections.abc import Iterable

import msgspec

from storage.domain.errors import ValidationFailed
from storage.domain.filters.documents import Document
from storage.domain.filters.subjects import check_subject
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    RESERVED,
    SUBJECT,
    Header,
    Headers,
    Record,
    subject_of,
)
from storage.domain.names import TopicName
from storage.domain.requests.token import REPLY_TO
from storage.domain.streams.topic_spec import TopicSpec
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.publication_options import (
    NO_OPTIONS,
    OPTION_HEADERS,
    PublicationOptions,
    content_dedup_id,
)

ROUTES = ":routes"
TOPIC = ":topic"
"""Header of a copy: the topic that it was published to."""

ROUTE = ":route"
"""Header of a copy: the route that brought it."""

KEY = ":key"
"""Header of a copy in a queue without groups: its key."""

HOPS = ":hops"
"""Header of a message that a route brought from another topic: the number of these topics."""

PUBLISHED_HEADERS = frozenset({CONTENT_TYPE, SUBJECT, ROUTES, HOPS, REPLY_TO}) | OPTION_HEADERS
"""Reserved headers of a published record."""

_FENCE_PREFIX = "routes:"


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

    @classmethod
    def of_record(cls, record: Record) -> "NewPublication":
        """Return the message that was published as a record."""
        headers = tuple(
            one for one in record.headers if one[0] == CONTENT_TYPE or one[0][:1] != RESERVED
        )
        return cls(record.data, subject_of(record.headers), record.key, headers)

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
    return next((int(value) for name, _, value in headers if name == HOPS), 0)


def routes_of(headers: Headers) -> tuple[int, ...]:
    """Return the numbers of the routes that take a record."""
    packed = next((value for name, _, value in headers if name == ROUTES), None)
    return () if packed is None else _numbers_decoder.decode(packed)


def fence_of(version: int) -> str:
    """Return the fencing token of a topic's logs for a version of its route table; 0 has none."""
    return f"{_FENCE_PREFIX}{version}" if version else ""


def version_of(fence: str) -> int:
    """Return the version of the route table that a fencing token names; 0 for another token."""
    version = fence.removeprefix(_FENCE_PREFIX)
    return int(version) if version != fence and version.isdigit() else 0
