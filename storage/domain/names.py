"""Names of resources, and ids of the logs behind them. A name object is always valid."""

import re
import secrets
from functools import lru_cache
from typing import Self

import msgspec

from storage.domain import limits
from storage.domain.errors import RouteOwned, ValidationFailed

DEFAULT_NAMESPACE = "default"

_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{limits.NAME_CHARACTERS_MAX}}}")
TOPIC_PREFIX = "topic:"
STREAM_PREFIX = "stream:"
QUEUE_PREFIX = "queue:"
ROUTE_PREFIX = "route:"
_PART = rf"[A-Za-z0-9_.-]{{1,{limits.NAME_CHARACTERS_MAX}}}"
STREAM_PATTERN = rf"^({TOPIC_PREFIX}({QUEUE_PREFIX})?)?{_PART}$"
"""Regular expression of stream names, for the descriptions of the API."""
TOPIC_PATTERN = rf"^({STREAM_PREFIX}|{QUEUE_PREFIX})?{_PART}$"
"""Regular expression of topic names, for the descriptions of the API."""
ENDPOINT_PATTERN = rf"^({ROUTE_PREFIX}({STREAM_PREFIX}|{QUEUE_PREFIX})?{_PART}[.:])?{_PART}$"
"""Regular expression of names of queues and webhooks, for the descriptions of the API."""

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


class EndpointName(ScopedName, frozen=True, gc=False):
    """A queue or webhook. Those of a route to a URL have its name, with the prefix `route:`."""

    def __post_init__(self) -> None:
        if not self.name.startswith(ROUTE_PREFIX):
            check_name(self.name)
        elif RouteName.of_endpoint(self.name, self.namespace).endpoint != self.name:
            raise ValidationFailed.at("/name", "No route has this name", "invalid_name")

    @property
    def route(self) -> "RouteName | None":
        """The route that it belongs to, if it belongs to one."""
        if not self.name.startswith(ROUTE_PREFIX):
            return None
        return RouteName.of_endpoint(self.name, self.namespace)

    def check_is_free(self) -> None:
        """Raise RouteOwned for the name of what belongs to a route."""
        if (route := self.route) is not None:
            raise RouteOwned(
                f"'{self.name}' belongs to route '{route.route}' of topic '{route.topic.name}'; "
                "change or delete the route instead."
            )


class QueueName(EndpointName, frozen=True, gc=False):
    """A queue within its namespace."""


class StreamName(ScopedName, frozen=True, gc=False):
    """A stream within its namespace. Only that of a topic has the prefix `topic:`."""

    def __post_init__(self) -> None:
        if self.is_of_topic:
            check_name(self.name.removeprefix(TOPIC_PREFIX).removeprefix(QUEUE_PREFIX))
        else:
            check_name(self.name)

    @property
    def is_of_topic(self) -> bool:
        """True if a topic of this name may exist."""
        return self.name.startswith(TOPIC_PREFIX)

    @property
    def topic(self) -> "TopicName":
        """The topic whose stream it is; of another stream, the topic that has its routes."""
        if self.is_of_topic:
            return TopicName(self.name.removeprefix(TOPIC_PREFIX), self.namespace)
        return TopicName(STREAM_PREFIX + self.name, self.namespace)


class TopicName(ScopedName, frozen=True, gc=False):
    """A topic within its namespace. A prefix names a stream or queue that is the source.

    `stream:clicks` stands for that stream (ADR 0099). `queue:orders` is a topic that takes the messages of that queue (ADR 0101).
    Neither is published to.
    """

    def __post_init__(self) -> None:
        check_name(self.name.removeprefix(_source_prefix(self.name)))

    @classmethod
    def of_queue(cls, queue: "QueueName") -> Self:
        """Return the topic that has the routes of a queue."""
        return cls(QUEUE_PREFIX + queue.name, queue.namespace)

    @property
    def is_of_stream(self) -> bool:
        """True if it stands for a stream."""
        return self.name.startswith(STREAM_PREFIX)

    @property
    def queue(self) -> "QueueName | None":
        """The queue whose messages it takes, if it takes those of one."""
        if not self.name.startswith(QUEUE_PREFIX):
            return None
        return QueueName(self.name.removeprefix(QUEUE_PREFIX), self.namespace)

    @property
    def is_published_to(self) -> bool:
        """True if publications are its source."""
        return not _source_prefix(self.name)

    @property
    def stream(self) -> StreamName:
        """The stream that has its messages."""
        return _stream_of_topic(self.name, self.namespace)


def _source_prefix(topic: str) -> str:
    """Return the prefix of a topic whose source is a stream or a queue; empty for another one."""
    return next((one for one in (STREAM_PREFIX, QUEUE_PREFIX) if topic.startswith(one)), "")


@lru_cache(maxsize=4096)  # one for each publication
def _stream_of_topic(topic: str, namespace: str) -> StreamName:
    own = topic.removeprefix(STREAM_PREFIX)
    return StreamName(own if own != topic else TOPIC_PREFIX + topic, namespace)


class RouteName(msgspec.Struct, frozen=True, gc=False):
    """A route of a topic."""

    topic: TopicName
    route: str

    def __post_init__(self) -> None:
        check_name(self.route)

    def __str__(self) -> str:
        return f"{self.topic}/{self.route}"

    @property
    def endpoint(self) -> str:
        """Name of its queue and of its webhook if its target is a URL, such as `route:orders.crm`.

        After a topic whose own name has a dot, a colon separates the two: no two routes share a name.
        """
        separator = ":" if "." in self.topic.name else "."
        return f"{ROUTE_PREFIX}{self.topic.name}{separator}{self.route}"

    @property
    def queue(self) -> QueueName:
        """Queue of the messages for its URL."""
        return QueueName(self.endpoint, self.topic.namespace)

    @property
    def webhook(self) -> "WebhookName":
        """Webhook that posts the messages of its queue."""
        return WebhookName(self.endpoint, self.topic.namespace)

    @classmethod
    def of_endpoint(cls, name: str, namespace: str) -> Self:
        """Return the route of a queue or webhook. Raises ValidationFailed for an invalid name."""
        parts = name.removeprefix(ROUTE_PREFIX)
        prefix = _source_prefix(parts)
        own = parts.removeprefix(prefix)
        topic, _, route = own.partition(":" if ":" in own else ".")
        return cls(TopicName(prefix + topic, namespace), route)


class GroupName(ScopedName, frozen=True, gc=False):
    """A consumer group within its namespace."""


class WebhookName(EndpointName, frozen=True, gc=False):
    """A webhook within its namespace."""


class SourceName(ScopedName, frozen=True, gc=False):
    """A source within its namespace."""


class MirrorName(ScopedName, frozen=True, gc=False):
    """A mirror within its namespace."""


class ViewName(ScopedName, frozen=True, gc=False):
    """A view within its namespace."""


def check_fence(token: str, expected: str | None) -> None:
    """Raise ValidationFailed if a fencing token, or the one that is expected, is too long."""
    for pointer, value in (("/token", token), ("/expected", expected or "")):
        if len(value) > limits.FENCE_CHARACTERS_MAX:
            detail = f"A fencing token can have at most {limits.FENCE_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(pointer, detail, "too_long")
