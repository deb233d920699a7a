"""Route of a topic: a match, and the queue or stream that receives matching messages.

A number is given once per topic and names one revision of a route. A change of match or target gives the name a new number,
whose former one still receives what was accepted for it:

    put ──▶ number 7, until = None ──put with another match──▶ number 7, until = {shard: next offset} ──▶ forgotten
                                                               number 8, until = None
"""

from enum import StrEnum
from typing import Any

import msgspec

from storage.domain.definitions import tag_faults
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.filters.matches import CompiledMatch, parse_matches
from storage.domain.names import LogId, QueueName, RouteName, StreamName


class RouteFailurePolicy(StrEnum):
    """Handling of messages while the target does not exist."""

    WAIT = "wait"
    """The route waits; other routes go on."""

    DROP = "drop"
    """The message is counted as dropped."""


class RouteTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Queue or stream of the topic's namespace. Exactly one is given."""

    queue: str | None = None
    stream: str | None = None

    def resolve(self, namespace: str) -> QueueName | StreamName:
        """Return the name of the target. Raises ValidationFailed for an invalid one."""
        if self.queue is not None:
            return QueueName(self.queue, namespace)
        return StreamName(self.stream or "", namespace)

    def faults(self) -> list[FieldFault]:
        """Return the faults of the target."""
        if (self.queue is None) == (self.stream is None):
            return [FieldFault("/target", "Specify exactly one of queue and stream", "exclusive")]
        try:
            name = self.resolve("")
        except ValidationFailed as error:
            detail = error.faults[0].detail
            return [FieldFault(f"/target/{'queue' if self.stream is None else 'stream'}", detail)]
        if isinstance(name, StreamName) and name.is_of_topic:
            return [FieldFault("/target/stream", "A topic is written by publishing", "not_allowed")]
        return []


class RouteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a route as requested by its owner.

    `match` is a match or a list of matches in their JSON form, of which any takes a message; None takes every message.
    """

    target: RouteTarget
    match: Any = None
    on_failure: RouteFailurePolicy = RouteFailurePolicy.WAIT
    paused: bool = False
    tags: dict[str, str] = {}

    def check(self) -> None:
        """Raise ValidationFailed or MatchInvalid for an invalid configuration."""
        if faults := [*self.target.faults(), *tag_faults(self.tags)]:
            raise ValidationFailed("The route's configuration is invalid.", *faults)
        parse_matches(self.match)

    @property
    def is_unindexed(self) -> bool:
        """True if a match is an SQL condition alone, which no index finds."""
        return CompiledMatch(parse_matches(self.match)).has_where_alone

    def takes_as(self, other: "RouteSpec") -> bool:
        """Return whether both take the same messages to the same target, with one number."""
        return self.match == other.match and self.target == other.target


class TopicRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a route.

    `until`: next offset of each shard when the revision ended; None for the current one. `removed`: the route was deleted, and
    nothing is delivered any longer. `stream_id` is the topic's. `delivered` and `dropped` count messages, as of the last report
    of the router; `failure` is the last failure of a delivery, empty after a success.
    """

    name: RouteName
    stream_id: LogId
    number: int
    spec: RouteSpec
    version: int
    created_at_ms: int
    changed_at_ms: int
    until: dict[int, int] | None = None
    removed: bool = False
    delivered: int = 0
    dropped: int = 0
    failure: str = ""

    @property
    def target(self) -> QueueName | StreamName:
        """Queue or stream that receives the copies."""
        return self.spec.target.resolve(self.name.topic.namespace)

    @property
    def target_key(self) -> str:
        """Key of the copies for the target, which several routes may share."""
        target = self.spec.target
        return f"queue:{target.queue}" if target.queue is not None else f"stream:{target.stream}"

    @property
    def own_key(self) -> str:
        """Key of the copies of this revision alone, while it is paused or behind."""
        return f"{self.target_key}#{self.number}"

    def producer_id(self, shard: int) -> str:
        """Return the id of the monotonic producer that copies a shard's messages to the target."""
        return f"routes.{self.stream_id}.{shard}.{self.number}"
