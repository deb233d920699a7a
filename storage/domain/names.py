"""Names of resources, and ids of the logs behind them. A name object is always valid."""

import re
import secrets
from functools import lru_cache

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed

DEFAULT_NAMESPACE = "default"

_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{limits.NAME_CHARACTERS_MAX}}}")
TOPIC_PREFIX = "topic:"
STREAM_PATTERN = rf"^({TOPIC_PREFIX})?[A-Za-z0-9_.-]{{1,{limits.NAME_CHARACTERS_MAX}}}$"
"""Regular expression of stream names, for the descriptions of the API."""

_DOTS = frozenset({".", ".."})  # URL path normalization removes these

LogId = str
"""Permanent id of one log: 16 hex digits, random, never reused when a queue or stream is re-created."""


def new_log_id() -> LogId:
    """Generate 64 random bits; Postgres refuses the improbable repeat."""
    return secrets.token_hex(8)


def check_name(name: str) -> None:
    """Raise ValidationFailed unless `name` can name a queue, a stream or a namespace."""
    if not _NAME.fullmatch(name) or name in _DOTS:
        raise ValidationFailed.at(
            "/name",
            f"A name must be 1 to {limits.NAME_CHARACTERS_MAX} characters from A-Z a-z 0-9 _ . -",
            "invalid_name",
        )


class ScopedName(msgspec.Struct, frozen=True, gc=False):
    """A name within its namespace. Names of different kinds are never equal."""

    name: str
    namespace: str = DEFAULT_NAMESPACE

    def __post_init__(self) -> None:
        check_name(self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class QueueName(ScopedName, frozen=True, gc=False):
    """A queue within its namespace."""


class StreamName(ScopedName, frozen=True, gc=False):
    """A stream within its namespace. Only that of a topic has the prefix `topic:`."""

    def __post_init__(self) -> None:
        check_name(self.name.removeprefix(TOPIC_PREFIX))

    @property
    def is_of_topic(self) -> bool:
        """True if a topic of this name may exist."""
        return self.name.startswith(TOPIC_PREFIX)

    @property
    def topic(self) -> "TopicName":
        """The topic whose stream it is."""
        return TopicName(self.name.removeprefix(TOPIC_PREFIX), self.namespace)


class TopicName(ScopedName, frozen=True, gc=False):
    """A topic within its namespace."""

    @property
    def stream(self) -> StreamName:
        """The stream that the topic is."""
        return _stream_of_topic(self.name, self.namespace)


@lru_cache(maxsize=4096)  # one for each publication
def _stream_of_topic(topic: str, namespace: str) -> StreamName:
    return StreamName(f"{TOPIC_PREFIX}{topic}", namespace)


class RouteName(msgspec.Struct, frozen=True, gc=False):
    """A route of a topic."""

    topic: TopicName
    route: str

    def __post_init__(self) -> None:
        check_name(self.route)

    def __str__(self) -> str:
        return f"{self.topic}/{self.route}"


class GroupName(ScopedName, frozen=True, gc=False):
    """A consumer group within its namespace."""


class WebhookName(ScopedName, frozen=True, gc=False):
    """A webhook within its namespace."""


class SourceName(ScopedName, frozen=True, gc=False):
    """A source within its namespace."""


class MirrorName(ScopedName, frozen=True, gc=False):
    """A mirror within its namespace."""


def check_fence(token: str, expected: str | None) -> None:
    """Raise ValidationFailed if a fencing token, or the one that is expected, is too long."""
    for pointer, value in (("/token", token), ("/expected", expected or "")):
        if len(value) > limits.FENCE_CHARACTERS_MAX:
            detail = f"A fencing token can have at most {limits.FENCE_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(pointer, detail, "too_long")
