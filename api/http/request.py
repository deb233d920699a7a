"""Requests for hot routes, and calls as handlers receive them."""

import re
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from api.observability.metric_buffers import ProtocolMetrics
from api.observability.tracing import TraceSpan
from api.types import RequestHeaders
from consumers.feeds.feed import Feeds
from storage.bootstrap import Storage
from storage.domain.access.permissions import Principal
from storage.domain.errors import ShardNotFound
from storage.domain.names import GroupName, QueueName, StreamName, TopicName, check_name
from storage.domain.requests.token import RequestId

In = TypeVar("In")


_SHARD_INDEX = re.compile(r"[0-9]{1,9}")


Name = QueueName | StreamName | TopicName | GroupName | RequestId
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


class Call(msgspec.Struct, Generic[In], frozen=True, eq=False, gc=False):
    """One request, as a handler receives it. `body` is its input; for a GET, its query.

    No task watches an idle long poll; it calls `is_client_connected` when it wakes, before it takes anything.
    """

    storage: Storage
    feeds: Feeds
    principal: Principal
    name: Name
    body: In
    segments: Sequence[str]
    headers: RequestHeaders
    client: tuple[str, int] | None
    is_client_connected: Callable[[], bool]
    request_id: bytes
    trace: TraceSpan | None
    metrics: ProtocolMetrics

    @property
    def query(self) -> In:
        """The parameters of the query."""
        return self.body

    @property
    def queue(self) -> QueueName:
        """Return the queue that the path names."""
        return self.name  # type: ignore[return-value]

    @property
    def stream(self) -> StreamName:
        """Return the stream that the path names."""
        return self.name  # type: ignore[return-value]

    @property
    def topic(self) -> TopicName:
        """Return the topic that the path names."""
        return self.name  # type: ignore[return-value]

    @property
    def group(self) -> GroupName:
        """Return the consumer group that the path names."""
        return self.name  # type: ignore[return-value]

    @property
    def request(self) -> RequestId:
        """Return the request that the path names."""
        return self.name  # type: ignore[return-value]

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
