"""Route schemas: configuration and progress."""

from typing import Annotated, Any, Self

import msgspec
from pydantic import Field

from api.rest.definition_changes import PutOutcome
from api.rest.field_map import Mapped, MappedDefinitionConfig, domain_value
from api.rest.route_copies import (
    CopyKeyField,
    RouteTargetConfig,
    RouteTargetOut,
    SpreadMemberConfig,
    TransformConfig,
)
from api.rest.schema_base import (
    Config,
    ListPage,
    Moment,
    Seconds,
    Tags,
    Time,
    in_seconds,
    merged,
    valid,
)
from api.rest.topic_fields import LagMessages, LagSeconds, RouteMatchField
from storage.domain.filters.matches import Cost
from storage.domain.streams.start_at import StartAt
from storage.domain.topics.copy_key import parse_key
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.report import (
    RouteProgress,
    RouteState,
)
from storage.domain.topics.route import (
    RouteFailurePolicy,
    RouteMode,
    RouteSpec,
    TopicRoute,
)


class RouteConfig(MappedDefinitionConfig):
    """The complete configuration of a route; omitted fields take their default."""

    domain = RouteSpec

    match: RouteMatchField = None
    target: RouteTargetConfig
    transform: TransformConfig | None = None
    format: Annotated[
        CopyFormat,
        Field(
            strict=False,
            description="`body`: the body as it is. `envelope`: JSON with everything that is known of the message. `cloudevents`: "
            "CloudEvents 1.0 in JSON. `cloudevents_binary`: `ce-` headers beside the body.",
        ),
    ] = CopyFormat.BODY
    key: CopyKeyField = None
    delay_seconds: Annotated[
        Seconds, Field(description="Of messages in a standard queue, or for a URL.")
    ] = 0
    ttl_seconds: Annotated[
        Seconds, Field(description="Of messages in a queue, or for a URL; 0: the queue's default.")
    ] = 0
    on_failure: Annotated[
        RouteFailurePolicy,
        Field(
            strict=False,
            description="Handling of messages while the target does not exist. `wait`: they wait in the topic's log, up to its "
            "retention. `dead_letter`: they go to the dead-letter queue. `drop`: they are counted as dropped.",
        ),
    ] = RouteFailurePolicy.WAIT
    dead_letter_queue: Annotated[
        str | None,
        Field(
            description="Queue for messages that the target never accepts: too large, without a group for a FIFO queue, or without "
            "a value that a strict transform needs. null: they are counted as dropped."
        ),
    ] = None
    mode: Annotated[
        RouteMode,
        Field(
            strict=False,
            description="`live`: messages are delivered. `shadow`: they are counted, to try a match; publishers and routes of the "
            "`unmatched` ignore the route.",
        ),
    ] = RouteMode.LIVE
    start: Annotated[
        StartAt,
        Field(
            strict=False,
            description="Of a new route, immutable. `latest`: it takes messages that are accepted from now on. `earliest`, `time`: also "
            "those before that match and that the topic still has, each once.",
        ),
    ] = StartAt.LATEST
    start_time: Annotated[
        Moment | None,
        Field(
            description="With `time`: start with the first message that was accepted at or after this time."
        ),
    ] = None
    tags: Tags = {}

    @classmethod
    def from_domain(cls, value: RouteSpec, **others: Any) -> Self:
        return cls.mapped(value, match=value.match, key=msgspec.to_builtins(value.key), **others)

    def to_domain(self) -> RouteSpec:
        return domain_value(RouteSpec, self, match=self.match, key=parse_key(self.key))

    def comparable(self) -> Self:
        return self.model_copy(update={"target": self.target.comparable()})


class RoutePatch(Config):
    """Changes to a route (a JSON Merge Patch); null resets a field to its default.

    `match`, `target`, `transform` and `key` are replaced as a whole.
    """

    match: Any = None
    target: RouteTargetConfig | None = None
    transform: TransformConfig | None = None
    format: Annotated[CopyFormat | None, Field(strict=False)] = None
    key: CopyKeyField = None
    delay_seconds: Seconds | None = None
    ttl_seconds: Seconds | None = None
    dead_letter_queue: str | None = None
    on_failure: Annotated[RouteFailurePolicy | None, Field(strict=False)] = None
    mode: Annotated[RouteMode | None, Field(strict=False)] = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: RouteSpec) -> RouteSpec:
        """Return the specification after the change. Raises RequestValidationError."""
        before = RouteConfig.from_domain(spec).model_dump()
        patch = self.model_dump(exclude_unset=True)
        after = merged(before, {name: patch[name] for name in patch if name not in _REPLACED})
        after |= {name: patch[name] for name in _REPLACED if name in patch}
        changed: RouteSpec = valid(RouteConfig, after).to_domain()
        return msgspec.structs.replace(changed, paused=spec.paused)


_REPLACED = ("match", "target", "transform", "key")


class RouteOut(Mapped):
    """A route: its configuration, and its version, which is its ETag."""

    name: str
    topic: str
    match: RouteMatchField
    target: RouteTargetOut
    transform: TransformConfig | None
    format: CopyFormat
    key: CopyKeyField
    delay_seconds: Seconds
    ttl_seconds: Seconds
    on_failure: RouteFailurePolicy
    dead_letter_queue: str | None
    mode: RouteMode
    start: StartAt
    start_time: Time | None
    paused: bool
    tags: dict[str, str]
    number: Annotated[
        int,
        Field(
            description="Number of the revision. A change of match, target, transform, format, key or mode begins another one; the "
            "former one still delivers what was accepted for it."
        ),
    ]
    cost: Annotated[
        Cost,
        Field(
            description="`indexed`: an index finds the route. `scanned`: its match is evaluated for each message of the topic."
        ),
    ]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: TopicRoute, **others: Any) -> Self:
        return cls.mapped(
            value.spec,
            value,
            name=value.name.route,
            topic=value.name.topic.name,
            match=value.spec.match,
            key=msgspec.to_builtins(value.spec.key),
            cost=value.spec.cost,
            **others,
        )


class RouteStored(PutOutcome, RouteOut):
    """A route after a PUT, and what the PUT changed."""

    secret: Annotated[
        str | None,
        Field(
            description="Signing secret of a new URL, in the format of Standard Webhooks; it is not returned again."
        ),
    ] = None
    in_force: Annotated[
        bool,
        Field(
            description="No request is sent to a URL by its former settings any more. False: a deliverer did not confirm that in "
            "time; it will within seconds."
        ),
    ] = True


class RoutePage(ListPage[RouteOut]):
    """Routes of a topic by name. `next_cursor` is null on the last page."""


class MemberStats(Mapped):
    """Lag of a member of a spread, as of the last second."""

    member: SpreadMemberConfig
    lag_messages: LagMessages
    lag_seconds: LagSeconds


class RouteStats(Mapped):
    """Counts of a route, as of the last second, and how far it is behind."""

    renamed = {"last_failure": "failure"}

    state: RouteState
    delivered: Annotated[int, Field(description="Messages that the target has.")]
    dropped: Annotated[int, Field(description="Messages that the route did not get.")]
    dead_lettered: Annotated[int, Field(description="Messages in the dead-letter queue instead.")]
    shadowed: Annotated[int, Field(description="Messages that were counted as a shadow.")]
    lag_messages: LagMessages
    lag_seconds: LagSeconds
    last_failure: Annotated[
        str,
        Field(
            description="Why the last delivery failed; empty after a success. Of a spread, a failure of a member, until that member succeeds."
        ),
    ]
    members: Annotated[
        list[MemberStats],
        Field(description="Those of a spread.", exclude_if=lambda members: not members),
    ] = []

    @classmethod
    def of(cls, progress: RouteProgress) -> Self:
        """Return the progress of a route."""
        return cls.mapped(progress, progress.route, lag_seconds=in_seconds(progress.lag_ms))
