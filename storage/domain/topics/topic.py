"""Topic: a stream that is written by publishing, and the messages published to it.

A topic named `orders` is the stream `topic:orders` with a `TopicSpec`, so it has shards, retention, archive, consumer groups and
replays as any stream. A published message is a record with two reserved headers: its subject, and the numbers of the routes
that take it, which were decided when it was accepted (ADR 0092).
"""

from collections.abc import Iterable

import msgspec

from storage.domain.log.record_batch import CONTENT_TYPE, Header, Headers, Record

SUBJECT = ":subject"
ROUTES = ":routes"
PUBLISHED_HEADERS = frozenset({CONTENT_TYPE, SUBJECT, ROUTES})
"""Reserved headers of a published record."""

_FENCE_PREFIX = "routes:"


class NewPublication(msgspec.Struct, frozen=True, gc=False):
    """Message to publish. Its key chooses the shard; messages of a key keep their order."""

    body: bytes
    subject: str = ""
    key: str = ""
    headers: Headers = ()

    def record(self, numbers: Iterable[int]) -> Record:
        """Return the record of the message, given the numbers of the routes that take it."""
        own: list[Header] = [(SUBJECT, "", self.subject.encode())] if self.subject else []
        packed = _encoder.encode(list(numbers))
        return Record(self.body, self.key, (*self.headers, *own, (ROUTES, "", packed)))


class Published(msgspec.Struct, frozen=True, gc=False):
    """Position of an accepted message, and the number of routes that take it.

    `routes` is None for a duplicate: it had been accepted before, and what takes it was decided then.
    """

    shard: int
    offset: int
    routes: int | None

    @property
    def duplicate(self) -> bool:
        """True if nothing was added."""
        return self.routes is None


_encoder = msgspec.msgpack.Encoder()
_numbers_decoder = msgspec.msgpack.Decoder(tuple[int, ...])


def subject_of(headers: Headers) -> str:
    """Return the subject in a record's headers; empty if it has none."""
    return next((value.decode() for name, _, value in headers if name == SUBJECT), "")


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
