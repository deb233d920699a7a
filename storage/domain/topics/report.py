"""Reports on a topic: how far its messages are routed, and what happens to one of them."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from storage.domain.filters.matches import FailedCondition
from storage.domain.streams.stream import ShardState
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.targets.spread import SpreadMember


class RouteState(StrEnum):
    """State of a route."""

    ACTIVE = "active"
    """Messages are delivered, or there are none."""

    PAUSED = "paused"
    """Messages wait until the route is resumed."""

    FAILING = "failing"
    """The last delivery failed: the target is missing, full, or refuses messages."""

    SHADOW = "shadow"
    """Messages are counted, and not delivered."""

    HISTORY = "history"
    """Messages from before the route was created are delivered."""


class MemberProgress(msgspec.Struct, frozen=True):
    """Progress of a member of a spread, with the same counts as that of its route."""

    member: SpreadMember
    lag_messages: int
    lag_ms: int


class RouteProgress(msgspec.Struct, frozen=True):
    """Progress of a route.

    `lag_messages`: number of messages of the topic that were not yet examined for the route, whether it takes them or not.
    `lag_ms`: age of the first of them. `members`: those of a spread, of which the last one to examine a message counts.
    """

    route: TopicRoute
    lag_messages: int
    lag_ms: int
    members: Sequence[MemberProgress] = ()

    @property
    def state(self) -> RouteState:
        """State of the route, as of the last report of its router."""
        if self.route.spec.paused:
            return RouteState.PAUSED
        if self.route.failure and self.lag_messages:
            return RouteState.FAILING
        if self.route.unread_history is not None:
            return RouteState.HISTORY
        return RouteState.SHADOW if self.route.spec.is_shadow else RouteState.ACTIVE


class RouteNumbers(msgspec.Struct, frozen=True):
    """Numbers of the current routes of a topic: of all, and of those that are paused."""

    routes: int = 0
    paused: int = 0


class TopicStatus(msgspec.Struct, frozen=True):
    """Messages of a topic, and the number that are not yet examined for all routes."""

    shards: Sequence[ShardState]
    routes: int
    paused_routes: int
    lag_messages: int
    lag_ms: int

    @property
    def messages(self) -> int:
        """Number of messages that the topic keeps."""
        return sum(state.next - state.start for state in self.shards)

    @property
    def size_bytes(self) -> int:
        """Size of the topic's messages in the hot store."""
        return sum(state.bytes for state in self.shards)


class MessageRouteState(StrEnum):
    """State of a message for a route that takes it."""

    WAITING = "waiting"
    """The target may not have it yet."""

    FINISHED = "finished"
    """The target or the dead-letter queue has it, or it was counted as dropped."""

    SHADOW = "shadow"
    """The route is a shadow, which delivers nothing."""

    REMOVED = "removed"
    """The route was deleted, or all that it had taken was delivered and it is forgotten."""


class MessageRoute(msgspec.Struct, frozen=True):
    """A revision of a route that takes a message; without `route`, it is forgotten.

    `member`: the one of a spread that gets the message.
    """

    number: int
    state: MessageRouteState
    route: TopicRoute | None = None
    member: SpreadMember | None = None


class RouteExplanation(msgspec.Struct, frozen=True):
    """Result of a route's match for a message, with the conditions that fail.

    `member`: the one of a spread that gets the message; None if that depends on a place that it does not have.
    """

    route: TopicRoute
    failed: Sequence[FailedCondition]
    member: SpreadMember | None = None

    @property
    def matches(self) -> bool:
        """True if the route takes the message."""
        return not self.failed
