"""Route of a topic: a match, and what receives matching messages.

A number is given once per topic and names one revision of a route. A change of what the copies are, by match, target, transform,
format or key, gives the name a new number, whose former one still receives what was accepted for it:

    put ──▶ number 7, until = None ──put with another match──▶ number 7, until = {shard: next offset} ──▶ forgotten
                                                               number 8, until = None

Which routes take a message is stored with it when it is accepted. A route that starts in the past also takes earlier messages:
its history, which its router matches while it reads it. All records of a stream that is not a topic are matched when they are
read (ADR 0099).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.access.oauth import WebhookCredentials
from storage.domain.definitions import check_seconds, tag_faults
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.filters.documents import Document, document_of, meta_of
from storage.domain.filters.matches import CompiledMatch, Cost, parse_matches
from storage.domain.log.record_batch import Header, Headers, Record
from storage.domain.names import LogId, QueueName, RouteName, StreamName
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.lineage import have_passed
from storage.domain.streams.start_at import StartAt, start_faults
from storage.domain.streams.stream import Stream
from storage.domain.topics.copy_key import CopyKey, key_faults
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.targets.branch import RouteBranch
from storage.domain.topics.targets.named_target import TARGETS, NamedTarget
from storage.domain.topics.targets.spread import (
    MemberSelector,
    SpreadBy,
    SpreadMember,
    spread_faults,
)
from storage.domain.topics.topic import ROUTE, TOPIC
from storage.domain.topics.transform import Transform
from storage.domain.topics.transform_check import transform_faults
from storage.domain.webhooks import Source, SourceKind, WebhookSpec


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


HeaderValues = tuple[tuple[str, str], ...]
"""Names and values of HTTP headers."""

_SETTINGS: Mapping[str, str] = {
    "headers": "headers",
    "credentials": "credentials",
    "timeout_ms": "timeout_seconds",
    "rate": "rate",
    "in_flight_max": "in_flight_max",
    "retry_delays_ms": "retry_seconds",
    "disable_after_ms": "disable_after_seconds",
    "log_ms": "log_retention_seconds",
}
"""Fields of a webhook that only a URL has, with their names on the wire."""


class UrlTarget(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """URL that copies are posted to; None for another target.

    The values of `headers` are stored with the webhook, and are empty in a stored route. An empty value keeps that of the webhook,
    and None keeps all its headers. Likewise `credentials` of a stored route have no secret. `ordered`: copies of one key are posted one
    after another, each when the one before was delivered or dead-lettered.
    """

    url: str | None = None
    ordered: bool = False
    headers: HeaderValues | None = None
    credentials: WebhookCredentials | None = None
    timeout_ms: int = limits.WEBHOOK_TIMEOUT_MS_DEFAULT
    rate: float | None = None
    in_flight_max: int = limits.WEBHOOK_IN_FLIGHT_DEFAULT
    retry_delays_ms: tuple[int, ...] = limits.WEBHOOK_RETRY_DELAYS_MS
    disable_after_ms: int = limits.WEBHOOK_DISABLE_AFTER_MS_DEFAULT
    log_ms: int = limits.WEBHOOK_LOG_MS_DEFAULT

    def webhook_spec(self, queue: str, *, paused: bool = False) -> WebhookSpec:
        """Return the specification of the webhook that posts the messages of a queue."""
        settings = {field: getattr(self, field) for field in _SETTINGS}
        source = Source(SourceKind.QUEUE, queue)
        return WebhookSpec(source=source, url=self.url or "", paused=paused, **settings)

    def queue_spec(self) -> QueueSpec:
        """Return the specification of the queue, which keeps messages through all retries.

        The webhook decides alone when a message is dead-lettered.
        """
        retention_ms = limits.ROUTE_QUEUE_RETENTION_MS + sum(self.retry_delays_ms)
        kind = QueueType.FIFO if self.ordered else QueueType.STANDARD
        return QueueSpec(type=kind, retention_ms=retention_ms, attempts_max=None)

    def url_faults(self) -> list[FieldFault]:
        """Return the faults of the settings, except those of the URL by the egress rule."""
        if self.url is None:
            return [
                FieldFault(f"/target/{name}", "Only a URL has it", "not_supported")
                for field, name in (*_SETTINGS.items(), ("ordered", "ordered"))
                if getattr(self, field) != getattr(_OTHER, field)
            ]
        headers = tuple((name, value or _PRESENT) for name, value in self.headers or ())
        try:
            replace(self.webhook_spec(""), headers=headers).check()
        except ValidationFailed as error:
            return [replace(fault, pointer=f"/target{fault.pointer}") for fault in error.faults]
        return []


_OTHER = UrlTarget()
_PRESENT = "-"  # stands for the present value of a header


class RouteTarget(
    UrlTarget, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Queue, stream, other topic, spread over several of them, or URL. Exactly one is given.

    `by`: what the member of a spread depends on; None for another target.
    """

    queue: str | None = None
    stream: str | None = None
    topic: str | None = None
    spread: tuple[SpreadMember, ...] | None = None
    by: SpreadBy | None = None

    @property
    def named(self) -> Sequence[NamedTarget]:
        """The members of a spread, or the name that is given; none of a URL."""
        if self.spread is not None:
            return self.spread
        if self.url is not None:
            return ()
        return (NamedTarget(queue=self.queue, stream=self.stream, topic=self.topic),)

    @property
    def has_queue(self) -> bool:
        """True if a queue gets copies."""
        return self.url is not None or any(one.queue is not None for one in self.named)

    @property
    def destination(self) -> tuple[object, ...]:
        """Identity of what has the copies. A route has the same for every URL."""
        return (*self.named, self.by)

    def selector(self, key: CopyKey) -> MemberSelector | None:
        """Return the choice of members by the key of copies; None unless it is a spread."""
        if self.spread is None:
            return None
        return MemberSelector(self.spread, self.by or SpreadBy.KEY, key)

    def target_streams(self, namespace: str) -> list[StreamName]:
        """Return the streams that get copies, which may be those of topics."""
        return [one.stream_of(namespace) for one in self.named]

    def faults(self) -> list[FieldFault]:
        """Return the faults of the target."""
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            detail = "Specify exactly one of queue, stream, topic, spread and url"
            return [FieldFault("/target", detail, "exclusive")]
        return [*self._name_faults(), *self._by_faults(), *self.url_faults()]

    def _name_faults(self) -> list[FieldFault]:
        if self.spread is not None:
            return spread_faults(self.spread, "/target/spread")
        return [fault for one in self.named for fault in one.name_faults("/target")]

    def _by_faults(self) -> list[FieldFault]:
        if self.by is None or self.spread is not None:
            return []
        return [FieldFault("/target/by", "Only a spread has it", "not_supported")]


_KINDS = (*TARGETS, "spread", "url")


class RouteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a route as requested by its owner.

    `match` is a match or a list of matches in their JSON form, of which any takes a message; None takes every message, and
    UNMATCHED those that no other live route takes. `start` and `start_time_ms` are those of a new route, whose first messages may be older.
    `delay_ms` and `ttl_ms` are those of the messages in a target queue, or for a URL; 0 applies the queue's. `dead_letter_queue` is a queue
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
        if not self.target.has_queue:
            detail = "Only the messages of a queue or a URL have it"
            return [
                FieldFault(pointer, detail, "not_supported")
                for pointer, time_ms, _ in times
                if time_ms
            ]
        if self.target.ordered and self.delay_ms:
            detail = (
                "Messages of an ordered URL are not delayed, since that contradicts their order"
            )
            return [FieldFault("/delay_seconds", detail, "not_supported")]
        return [
            fault
            for pointer, time_ms, most in times
            for fault in check_seconds(pointer, time_ms, 0, most)
        ]

    def _failure_faults(self) -> list[FieldFault]:
        if self.target.url is not None and self.on_failure is not RouteFailurePolicy.WAIT:
            detail = "The queue of a URL always exists; failed requests are its dead letters"
            return [FieldFault("/on_failure", detail, "not_supported")]
        pointer, queue = "/dead_letter_queue", self.dead_letter_queue
        if queue is None:
            is_missing = self.on_failure is RouteFailurePolicy.DEAD_LETTER
            detail = "on_failure 'dead_letter' requires a dead-letter queue"
            return [FieldFault(pointer, detail, "required")] if is_missing else []
        if self.on_failure is RouteFailurePolicy.DROP:
            return [FieldFault(pointer, "on_failure 'drop' has none", "not_allowed")]
        if any(queue == one.queue for one in self.target.named):
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

    def member_for(self, document: Document, place: str) -> SpreadMember | None:
        """Return the member of a spread that a message at a place belongs to.

        None for another target, and if it depends on the place and that is empty.
        """
        selector = self.target.selector(self.key)
        member = None if selector is None else selector.member(document, place)
        return None if member is None else (self.target.spread or ())[member]

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
        is_owned = QueueName(queue).route is not None
    except ValidationFailed as error:
        return [FieldFault(pointer, error.faults[0].detail, "invalid_name")]
    return [FieldFault(pointer, "The queue belongs to a route", "not_allowed")] if is_owned else []


_of_revision = attrgetter("match", "target.destination", "transform", "format", "key", "mode")


class RouteHistory(msgspec.Struct, frozen=True):
    """Messages from before a route was created that it takes too, if they match.

    They lie between `start`, the positions of a reader of the topic's shards, and the offsets `until`; what was accepted from
    there on has the route's number if the route takes it. `is_empty`: it takes none of them; `until` is where a revision of a stream's route
    begins.
    """

    start: dict[int, int]
    until: dict[int, int]
    is_empty: bool = False

    def has(self, stream: Stream, shard: int, offset: int) -> bool:
        """Return whether the history includes an offset of a shard of the topic's stream."""
        is_before = not self.is_empty and offset < self.until.get(shard, 0)
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

    def covers(self, shard: int, offset: int) -> bool:
        """Return whether the revision was the current one when a stream got a record.

        It began where its history ended. A shard that is younger than either begins after it.
        """
        began = 0 if self.history is None else self.history.until.get(shard, 0)
        return offset >= began and (self.until is None or offset < self.until.get(shard, 0))

    @property
    def unread_history(self) -> RouteHistory | None:
        """History of which the router has not reported the end."""
        if self.history_done or self.history is None or self.history.is_empty:
            return None
        return self.history

    @cached_property
    def branches(self) -> tuple[RouteBranch, ...]:
        """The copies by target: one branch, or one for each member of a spread.

        A shadow route has one, and the copies for a URL are in a queue of the route's own.
        """
        if self.spec.is_shadow:
            return (self._branch(RouteMode.SHADOW.value, None),)
        target = self.spec.target
        if target.url is not None:
            return (self._branch(f"url:{self.name.route}", None),)
        if target.spread is None:
            return (self._branch(target.named[0].label, target.named[0]),)
        return tuple(
            self._branch(one.label, one, member) for member, one in enumerate(target.spread)
        )

    def _branch(
        self, key: str, target: NamedTarget | None, member: int | None = None
    ) -> RouteBranch:
        name = self.name.queue if target is None else target.resolve(self.name.topic.namespace)
        return RouteBranch(self.number, name, key, f"{key}#{self.number}", member)

    @cached_property
    def _selector(self) -> MemberSelector | None:
        return None if self.spec.is_shadow else self.spec.target.selector(self.spec.key)

    def branch_of(self, shard: int, offset: int, record: Record) -> RouteBranch:
        """Return the branch that has the copy of a record."""
        selector = self._selector
        if selector is None:
            return self.branches[0]
        place = str(TopicMessageId(self.stream_id, shard, offset))
        member = selector.member(document_of(record, meta_of(self.name.topic.stream)), place)
        return self.branches[member or 0]

    def member_of(self, branch: RouteBranch) -> SpreadMember | None:
        """Return the member of the spread that a branch is for; None of another target."""
        return None if branch.member is None else (self.spec.target.spread or ())[branch.member]

    @cached_property
    def is_of_stream(self) -> bool:
        """True if its source is a stream that is not a topic."""
        return self.name.topic.is_of_stream

    @cached_property
    def is_of_publications(self) -> bool:
        """True if publications are its source."""
        return self.name.topic.is_published_to

    @cached_property
    def keeps_content(self) -> bool:
        """True if copies have the body, the headers and the key of the message."""
        spec = self.spec
        return spec.transform is None and spec.key is None and spec.format is CopyFormat.BODY

    @cached_property
    def copies_are_unchanged(self) -> bool:
        """True if copies for streams differ from what was published by `origin_headers` alone."""
        return self.keeps_content and self.is_of_publications

    @cached_property
    def origin_headers(self) -> Headers:
        """Headers of a copy with the names of the route and of the topic, if that is its source."""
        route: Header = (ROUTE, "", self.name.route.encode())
        if self.is_of_stream:
            return (route,)
        return ((TOPIC, "", self.name.topic.name.encode()), route)

    @property
    def dead_letter_queue(self) -> QueueName | None:
        """Queue that gets what the target does not."""
        queue = self.spec.dead_letter_queue
        return None if queue is None else QueueName(queue, self.name.topic.namespace)

    @cached_property
    def producer_ids(self) -> Mapping[int, str]:
        """Ids of the monotonic producers that copy messages to the target, by shard."""
        return ProducerIds(self.stream_id, self.number)

    def dead_producer_id(self, shard: int, member: int | None = None) -> str:
        """Return the id of the monotonic producer of a shard's dead letters, of one branch."""
        producer = self.producer_ids[shard]
        return f"{producer}.dead" if member is None else f"{producer}.{member}.dead"


class ProducerIds(dict[int, str]):
    """Ids of a route's monotonic producers by shard, made when they are first read."""

    def __init__(self, stream_id: LogId, number: int) -> None:
        super().__init__()
        self._stream_id, self._number = stream_id, number

    def __missing__(self, shard: int) -> str:
        producer_id = f"routes.{self._stream_id}.{shard}.{self._number}"
        self[shard] = producer_id
        return producer_id
