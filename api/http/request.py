"""Requests for hot routes, and calls as handlers receive them."""

import re
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, cast

import msgspec

from api.observability.metric_buffers import ProtocolMetrics
from api.observability.tracing import TraceSpan
from api.types import RequestHeaders
from consumers.feeds.feed import Feeds
from storage.bootstrap import Storage
from storage.domain.access.permissions import Principal
from storage.domain.errors import ShardNotFound
from storage.domain.names import GroupName, QueueName, StreamName, check_name

In = TypeVar("In")


_SHARD_INDEX = re.compile(r"[0-9]{1,9}")


Name = QueueName | StreamName | GroupName
"""Name of the resource in a hot path."""


class FastRequest(msgspec.Struct, eq=False):
    """A complete request for a hot route. `segments`: its path split at '/'.

    `is_connected` returns whether the connection is open as far as is known, without waiting. `client`: the client's address.
    `request_id` is assigned later, and a `trace` if spans are collected.
    """

    segments: Sequence[str]
    headers: RequestHeaders
    query_string: bytes
    is_connected: Callable[[], bool]
    body: bytes = b""
    client: tuple[str, int] | None = None
    request_id: bytes = b""
    trace: TraceSpan | None = None


class AppContext(NamedTuple):
    """Open resources of a process. `feeds`: limit the number of concurrent streaming reads."""

    storage: Storage
    feeds: Feeds


class Call(Generic[In]):
    """One request, as a handler receives it. `body` is its input; for a GET, its query.

    No task watches an idle long poll; it calls `is_client_connected` when it wakes, before it takes anything.
    """

    __slots__ = (
        "body",
        "client",
        "feeds",
        "headers",
        "is_client_connected",
        "metrics",
        "name",
        "principal",
        "request_id",
        "segments",
        "storage",
        "trace",
    )

    def __init__(
        self,
        context: "AppContext",
        principal: Principal,
        name: Name,
        body: In,
        request: FastRequest,
        metrics: ProtocolMetrics,
    ) -> None:
        self.storage = context.storage
        self.feeds = context.feeds
        self.principal = principal
        self.name = name
        self.body = body
        self.segments = request.segments
        self.headers = request.headers
        self.client = request.client
        self.is_client_connected = request.is_connected
        self.request_id = request.request_id
        self.trace = request.trace
        self.metrics = metrics

    @property
    def query(self) -> In:
        """The parameters of the query."""
        return self.body

    @property
    def queue(self) -> QueueName:
        """Return the queue that the path names."""
        return cast(QueueName, self.name)

    @property
    def stream(self) -> StreamName:
        """Return the stream that the path names."""
        return cast(StreamName, self.name)

    @property
    def group(self) -> GroupName:
        """Return the consumer group that the path names."""
        return cast(GroupName, self.name)

    @property
    def member(self) -> str:
        """Return the member that the path names. Raises ValidationFailed for an invalid name."""
        check_name(self.segments[5])
        return self.segments[5]

    @property
    def shard(self) -> int:
        """Return the shard that the path names. Raises ShardNotFound when it is not a number."""
        word = self.segments[5]
        if not _SHARD_INDEX.fullmatch(word):
            raise ShardNotFound(f"'{word[:80]}' is not a shard number.")
        return int(word)
