"""Route of a topic: a match, and the queue or stream that receives matching messages.

A number is given once per topic and names one revision of a route. A change of what the copies are, by match, target, transform,
format or key, gives the name a new number, whose former one still receives what was accepted for it:

    put ──▶ number 7, until = None ──put with another match──▶ number 7, until = {shard: next offset} ──▶ forgotten
                                                               number 8, until = None

Which routes take a message is stored with it when it is accepted. A route that starts in the past also takes earlier messages:
its history, which its router matches while it reads it.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.definitions import check_seconds, tag_faults
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.filters.matches import CompiledMatch, Cost, parse_matches
from storage.domain.names import LogId, QueueName, RouteName, StreamName, TopicName
from storage.domain.streams.lineage import have_passed
from storage.domain.streams.start_at import StartAt, start_faults
from storage.domain.streams.stream import Stream
from storage.domain.topics.copy_key import CopyKey, key_faults
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.transform import Transform
from storage.domain.topics.transform_check import transform_faults


class RouteFailurePolicy(StrEnum):
    """Handling of messages while the target does not exist.

    A message that the target never accepts goes to the route's dead-letter queue, or is dropped without one.
    """

    WAIT = "wait"
    """The route waits; other routes go on."""

    DEAD_LETTER = "dead_letter"
    """The message goes to the route's dead-letter queue."""

    DROP = "drop"
    """The message is counted as dropped."""


UNMATCHED = "unmatched"
"""Match of a route that takes what no other live route of its topic takes."""


class RouteMode(StrEnum):
    """Use of the messages that a route takes."""

    LIVE = "live"
    """They are delivered."""

    SHADOW = "shadow"
    """They are counted."""


TargetName = QueueName | StreamName | TopicName
"""Name of what receives the copies of a route."""


class RouteTarget(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Queue, stream or other topic of the topic's namespace. Exactly one is given."""

    queue: str | None = None
    stream: str | None = None
    topic: str | None = None

    @property
    def kind(self) -> str:
        """The field that is given; the last one without any."""
        return next((kind for kind in _TARGETS if getattr(self, kind) is not None), "topic")

    @property
    def name(self) -> str:
        """The name that is given; empty without any."""
        return getattr(self, self.kind) or ""

    def resolve(self, namespace: str) -> TargetName:
        """Return the name of the target. Raises ValidationFailed for an invalid one."""
        return _TARGETS[self.kind](self.name, namespace)

    def faults(self) -> list[FieldFault]:
        """Return the faults of the target."""
        if sum(name is not None for name in (self.queue, self.stream, self.topic)) != 1:
            detail = "Specify exactly one of queue, stream and topic"
            return [FieldFault("/target", detail, "exclusive")]
        try:
            name = self.resolve("")
        except ValidationFailed as error:
            return [FieldFault(f"/target/{self.kind}", error.faults[0].detail)]
        if isinstance(name, StreamName) and name.is_of_topic:
            return [FieldFault("/target/stream", "A topic is written by publishing", "not_allowed")]
        return []


_TARGETS: Mapping[str, type[TargetName]] = {
    "queue": QueueName,
    "stream": StreamName,
    "topic": TopicName,
}


class RouteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a route as requested by its owner.

    `match` is a match or a list of matches in their JSON form, of which any takes a message; None takes every message, and
    UNMATCHED those that no other live route takes. `start` and `start_time_ms` are those of a new route, whose first messages may be older.
    `delay_ms` and `ttl_ms` are those of the messages in a target queue; 0 applies the queue's. `dead_letter_queue` is a queue
    of the topic's namespace: it gets messages that the target never accepts, and with `dead_letter` those of a missing one.
    """

    target: RouteTarget
    match: Any = None
    transform: Transform | None = None
    format: CopyFormat = CopyFormat.BODY
    key: CopyKey = None
    delay_ms: int = 0
    ttl_ms: int = 0
    on_failure: RouteFailurePolicy = RouteFailurePolicy.WAIT
    dead_letter_queue: str | None = None
    mode: RouteMode = RouteMode.LIVE
    start: StartAt = StartAt.LATEST
    start_time_ms: int | None = None
    paused: bool = False
    tags: dict[str, str] = {}

    def check(self) -> None:
        """Raise ValidationFailed or MatchInvalid for an invalid configuration."""
        faults = [
            *self.target.faults(),
            *(() if self.transform is None else transform_faults(self.transform)),
            *key_faults(self.key),
            *self._time_faults(),
            *self._failure_faults(),
            *start_faults(self.start, self.start_time_ms),
            *tag_faults(self.tags),
        ]
        if faults:
            raise ValidationFailed("The route's configuration is invalid.", *faults)
        if not self.takes_unmatched:
            parse_matches(self.match)

    def _time_faults(self) -> list[FieldFault]:
        times = (
            ("/delay_seconds", self.delay_ms, limits.DELAY_MS_MAX),
            ("/ttl_seconds", self.ttl_ms, limits.TTL_MS_MAX),
        )
        if self.target.queue is None:
            detail = "Only a target queue has it"
            return [
                FieldFault(pointer, detail, "not_supported")
                for pointer, time_ms, _ in times
                if time_ms
            ]
        return [
            fault
            for pointer, time_ms, most in times
            for fault in check_seconds(pointer, time_ms, 0, most)
        ]

    def _failure_faults(self) -> list[FieldFault]:
        pointer, queue = "/dead_letter_queue", self.dead_letter_queue
        if queue is None:
            is_missing = self.on_failure is RouteFailurePolicy.DEAD_LETTER
            detail = "on_failure 'dead_letter' requires a dead-letter queue"
            return [FieldFault(pointer, detail, "required")] if is_missing else []
        if self.on_failure is RouteFailurePolicy.DROP:
            return [FieldFault(pointer, "on_failure 'drop' has none", "not_allowed")]
        if queue == self.target.queue:
            return [FieldFault(pointer, "The target cannot be its own", "not_allowed")]
        return _queue_faults(pointer, queue)

    @property
    def takes_unmatched(self) -> bool:
        """True if the route takes what no other live route takes."""
        return bool(self.match == UNMATCHED)

    @property
    def is_shadow(self) -> bool:
        """True if messages are counted, and not delivered."""
        return self.mode is RouteMode.SHADOW

    def compile_match(self) -> CompiledMatch:
        """Return the compiled match of a route that does not take the unmatched."""
        return compile_match(self.match)

    @property
    def cost(self) -> Cost:
        """Return whether the match must be evaluated for each message."""
        return "indexed" if self.takes_unmatched else self.compile_match().cost

    @property
    def is_unindexed(self) -> bool:
        """True if a match is an SQL condition alone, which no index finds."""
        return not self.takes_unmatched and self.compile_match().has_where_alone

    def takes_as(self, other: "RouteSpec") -> bool:
        """Return whether both bring the same copies to the same target, with one number."""
        return _of_revision(self) == _of_revision(other)


def compile_match(match: Any) -> CompiledMatch:
    """Return a match in its JSON form, which is not UNMATCHED, compiled. Raises MatchInvalid."""
    return CompiledMatch(parse_matches(match))


def _queue_faults(pointer: str, queue: str) -> list[FieldFault]:
    try:
        QueueName(queue)
    except ValidationFailed as error:
        return [FieldFault(pointer, error.faults[0].detail, "invalid_name")]
    return []


_of_revision = attrgetter("match", "target", "transform", "format", "key", "mode")


class RouteHistory(msgspec.Struct, frozen=True):
    """Messages from before a route was created that it takes too, if they match.

    They lie between `start`, the positions of a reader of the topic's shards, and the offsets `until`; what was accepted from
    there on has the route's number if the route takes it.
    """

    start: dict[int, int]
    until: dict[int, int]

    def has(self, stream: Stream, shard: int, offset: int) -> bool:
        """Return whether the history includes an offset of a shard of the topic's stream."""
        is_before = offset < self.until.get(shard, 0)
        return is_before and not have_passed(stream, self.start, {shard: offset + 1})


class TopicRoute(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One revision of a route.

    `until`: next offset of each shard when the revision ended; None for the current one. `removed`: the route was deleted, and
    nothing is delivered any longer. `stream_id` is the topic's. `delivered`, `dropped`, `dead_lettered` and `shadowed` count messages,
    as of the last report of the router; `failure` is the last failure of a delivery, empty after a success. `history_done`: the
    router has read the history.
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
    dead_lettered: int = 0
    shadowed: int = 0
    failure: str = ""
    history: RouteHistory | None = None
    history_done: bool = False

    @property
    def unread_history(self) -> RouteHistory | None:
        """History of which the router has not reported the end."""
        return None if self.history_done else self.history

    @property
    def target(self) -> TargetName:
        """Name of what receives the copies."""
        return self.spec.target.resolve(self.name.topic.namespace)

    @cached_property
    def target_key(self) -> str:
        """Key of the copies for the target, which several routes may share.

        Shadow routes share one that is no target's.
        """
        if self.spec.is_shadow:
            return RouteMode.SHADOW.value
        target = self.spec.target
        return f"{target.kind}:{target.name}"

    @cached_property
    def own_key(self) -> str:
        """Key of the copies of this revision alone, while it is paused or behind."""
        return f"{self.target_key}#{self.number}"

    @property
    def dead_letter_queue(self) -> QueueName | None:
        """Queue that gets what the target does not."""
        queue = self.spec.dead_letter_queue
        return None if queue is None else QueueName(queue, self.name.topic.namespace)

    def producer_id(self, shard: int) -> str:
        """Return the id of the monotonic producer that copies a shard's messages to the target."""
        return f"routes.{self.stream_id}.{shard}.{self.number}"

    def dead_producer_id(self, shard: int) -> str:
        """Return the id of the monotonic producer of a shard's dead letters."""
        return f"{self.producer_id(shard)}.dead"
