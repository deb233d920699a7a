"""Queue schemas: configuration and counts."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import msgspec
from pydantic import BaseModel, Field

from api.native.fields import rfc3339, to_ms
from api.native.former_names import PAUSE_INSTEAD, deprecated_member, former_name
from api.rest.definition_changes import PutOutcome
from api.rest.queue_policies import (
    BackoffConfig,
    BackoffOut,
    DeadLettersConfig,
    GroupWeightConfig,
    RedriveAllowConfig,
)
from api.rest.schema_base import (
    Bytes,
    Config,
    DefinitionConfig,
    Seconds,
    Tags,
    Time,
    in_seconds,
    merged,
    valid,
)
from storage.domain import limits
from storage.domain.queues.policies import GroupWeight, Overflow, PoisonPolicy
from storage.domain.queues.queue import (
    DeadLetterTarget,
    DedupScope,
    Queue,
    QueueSpec,
    QueueStats,
    QueueType,
    RedriveAllow,
)


class QueueConfig(DefinitionConfig):
    """The complete configuration of a queue; omitted fields take their default."""

    type: Annotated[QueueType, Field(strict=False, description="Immutable.")] = QueueType.STANDARD
    visibility_timeout_seconds: Seconds = in_seconds(limits.VISIBILITY_TIMEOUT_MS_DEFAULT)
    delay_seconds: Seconds = 0
    ttl_seconds: Annotated[
        Seconds | None, Field(description="Time to live of a message; null: the retention.")
    ] = None
    retention_seconds: Seconds = in_seconds(limits.QUEUE_RETENTION_MS_DEFAULT)
    dead_letter_retention_seconds: Seconds = in_seconds(limits.DEAD_LETTER_RETENTION_MS_DEFAULT)
    message_bytes_max: Bytes = limits.MESSAGE_BYTES_MAX
    attempts_max: Annotated[
        int | None, Field(ge=1, le=limits.ATTEMPTS_MAX_MAX, description="null: no limit.")
    ] = limits.ATTEMPTS_MAX_DEFAULT
    receive_wait_seconds: Annotated[
        Seconds, Field(description="Default wait time of receives that specify none.")
    ] = 0
    in_flight_max: Annotated[int, Field(ge=1, le=limits.IN_FLIGHT_MAX_MAX)] = (
        limits.IN_FLIGHT_MAX_DEFAULT
    )
    deduplicate_by_content: bool = False
    dedup_scope: Annotated[DedupScope, Field(strict=False)] = DedupScope.QUEUE
    dead_letters: DeadLettersConfig | None = None
    redrive_allow: RedriveAllowConfig = RedriveAllowConfig()
    backoff: BackoffConfig | None = None
    paused: Annotated[bool | None, deprecated_member(PAUSE_INSTEAD)] = None
    messages_max: Annotated[
        int | None,
        Field(
            ge=1,
            le=limits.QUEUE_MESSAGES_MAX,
            description="Maximum number of messages; null: unlimited.",
        ),
    ] = None
    bytes_max: Annotated[
        int | None,
        Field(
            ge=1, le=limits.QUEUE_BYTES_MAX, description="Maximum size, counted as `bytes_held`."
        ),
    ] = None
    overflow: Annotated[Overflow, Field(strict=False)] = Overflow.REJECT
    on_poison: Annotated[PoisonPolicy, Field(strict=False)] = PoisonPolicy.SKIP
    group_weights: Annotated[
        list[GroupWeightConfig], Field(max_length=limits.GROUP_WEIGHTS_MAX)
    ] = []
    stream_view: Annotated[
        bool, Field(description="Sent messages can also be read as a stream with the queue's name.")
    ] = False
    archive: Annotated[
        bool,
        Field(description="Archive the stream view to Parquet, if the deployment has an archive."),
    ] = False
    history: Annotated[
        bool, Field(description="Record each state change of a message, for a limited time.")
    ] = False
    tags: Tags = {}

    def to_domain(self) -> QueueSpec:
        """Return the specification, which the catalog validates."""
        return QueueSpec(
            type=self.type,
            visibility_timeout_ms=to_ms(self.visibility_timeout_seconds),
            delay_ms=to_ms(self.delay_seconds),
            ttl_ms=to_ms(self.ttl_seconds or 0),
            retention_ms=to_ms(self.retention_seconds),
            dead_letter_retention_ms=to_ms(self.dead_letter_retention_seconds),
            message_bytes_max=self.message_bytes_max,
            attempts_max=self.attempts_max,
            receive_wait_ms=to_ms(self.receive_wait_seconds),
            in_flight_max=self.in_flight_max,
            deduplicate_by_content=self.deduplicate_by_content,
            dedup_scope=self.dedup_scope,
            dead_letters=(
                None
                if self.dead_letters is None
                else DeadLetterTarget(self.dead_letters.queue, self.dead_letters.receives_max)
            ),
            redrive_allow=RedriveAllow(
                self.redrive_allow.permission, tuple(self.redrive_allow.sources)
            ),
            backoff=None if self.backoff is None else self.backoff.to_domain(),
            paused=bool(self.paused),
            messages_max=self.messages_max,
            bytes_max=self.bytes_max,
            overflow=self.overflow,
            on_poison=self.on_poison,
            group_weights=tuple(GroupWeight(one.match, one.weight) for one in self.group_weights),
            stream_view=self.stream_view,
            archive=self.archive,
            history=self.history,
            tags=self.tags,
        )

    @classmethod
    def from_domain(cls, spec: QueueSpec) -> Self:
        """Return the configuration of `spec`."""
        return cls(**_queue_fields(spec))

    def put_options(self) -> Mapping[str, Any]:
        return {"replace_pause": self.paused is not None}


def _queue_fields(spec: QueueSpec) -> dict[str, Any]:
    return {
        "type": spec.type,
        "visibility_timeout_seconds": in_seconds(spec.visibility_timeout_ms),
        "delay_seconds": in_seconds(spec.delay_ms),
        "ttl_seconds": in_seconds(spec.ttl_ms) if spec.ttl_ms else None,
        "retention_seconds": in_seconds(spec.retention_ms),
        "dead_letter_retention_seconds": in_seconds(spec.dead_letter_retention_ms),
        "message_bytes_max": spec.message_bytes_max,
        "attempts_max": spec.attempts_max,
        "receive_wait_seconds": in_seconds(spec.receive_wait_ms),
        "in_flight_max": spec.in_flight_max,
        "deduplicate_by_content": spec.deduplicate_by_content,
        "dedup_scope": spec.dedup_scope,
        "dead_letters": (
            None
            if spec.dead_letters is None
            else DeadLettersConfig(
                queue=spec.dead_letters.queue, receives_max=spec.dead_letters.receives_max
            )
        ),
        "redrive_allow": RedriveAllowConfig(
            permission=spec.redrive_allow.permission, sources=list(spec.redrive_allow.sources)
        ),
        "backoff": None if spec.backoff is None else BackoffOut.from_domain(spec.backoff),
        "paused": spec.paused,
        "messages_max": spec.messages_max,
        "bytes_max": spec.bytes_max,
        "overflow": spec.overflow,
        "on_poison": spec.on_poison,
        "group_weights": [
            GroupWeightConfig(match=one.match, weight=one.weight) for one in spec.group_weights
        ],
        "stream_view": spec.stream_view,
        "archive": spec.archive,
        "history": spec.history,
        "tags": spec.tags,
    }


class QueuePatch(Config):
    """Changes to a queue (a JSON Merge Patch); null resets a field to its default.

    Only `attempts_max: null` means no limit, as it does elsewhere.
    """

    visibility_timeout_seconds: Seconds | None = None
    delay_seconds: Seconds | None = None
    ttl_seconds: Seconds | None = None
    retention_seconds: Seconds | None = None
    dead_letter_retention_seconds: Seconds | None = None
    message_bytes_max: Bytes | None = None
    attempts_max: Annotated[int | None, Field(ge=1, le=limits.ATTEMPTS_MAX_MAX)] = None
    receive_wait_seconds: Seconds | None = None
    in_flight_max: int | None = None
    deduplicate_by_content: bool | None = None
    dedup_scope: Annotated[DedupScope | None, Field(strict=False)] = None
    dead_letters: DeadLettersConfig | None = None
    redrive_allow: RedriveAllowConfig | None = None
    backoff: BackoffConfig | None = None
    paused: Annotated[bool | None, deprecated_member(PAUSE_INSTEAD)] = None
    messages_max: Annotated[int | None, Field(ge=1)] = None
    bytes_max: Annotated[int | None, Field(ge=1)] = None
    overflow: Annotated[Overflow | None, Field(strict=False)] = None
    on_poison: Annotated[PoisonPolicy | None, Field(strict=False)] = None
    group_weights: list[GroupWeightConfig] | None = None
    stream_view: bool | None = None
    archive: bool | None = None
    history: bool | None = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: QueueSpec) -> QueueSpec:
        """Return the specification after the change. Raises RequestValidationError."""
        before = QueueConfig.from_domain(spec).model_dump()
        after = merged(before, self.model_dump(exclude_unset=True))
        if "attempts_max" in self.model_fields_set:
            after["attempts_max"] = self.attempts_max
        changed = valid(QueueConfig, after).to_domain()
        return msgspec.structs.replace(changed, annotations=spec.annotations)


class QueueOut(BaseModel):
    """A queue: its configuration, and its version, which is its ETag."""

    name: str
    type: QueueType
    visibility_timeout_seconds: Seconds
    delay_seconds: Seconds
    ttl_seconds: Seconds | None
    retention_seconds: Seconds
    dead_letter_retention_seconds: Seconds
    message_bytes_max: int
    attempts_max: int | None
    receive_wait_seconds: Seconds
    in_flight_max: int
    deduplicate_by_content: bool
    dedup_scope: DedupScope
    dead_letters: DeadLettersConfig | None
    redrive_allow: RedriveAllowConfig
    backoff: BackoffOut | None
    paused: Annotated[bool, Field(description="Accepts messages but delivers none.")]
    messages_max: int | None
    bytes_max: int | None
    overflow: Overflow
    on_poison: PoisonPolicy
    group_weights: list[GroupWeightConfig]
    stream_view: bool
    archive: bool
    history: bool
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, queue: Queue, **outcome: Any) -> Self:
        return cls(
            name=queue.name.name,
            version=queue.version,
            created_at=rfc3339(queue.created_at_ms),
            changed_at=rfc3339(queue.changed_at_ms),
            **_queue_fields(queue.spec),
            **outcome,
        )


class QueueStored(PutOutcome, QueueOut):
    """A queue after a PUT, and what the PUT changed."""


class QueuePage(BaseModel):
    """Queues by name. `next_cursor` is null on the last page."""

    items: list[QueueOut]
    next_cursor: str | None


class QueueStatsOut(BaseModel):
    """Exact current counts.

    sent + moved_in = ready + delayed + in_flight + parked + dead_lettered + moving
                      + acknowledged + expired + purged + dropped + moved_out
    """

    ready: int
    delayed: int
    in_flight: int
    dead_lettered: int
    sent: int
    deduplicated: int
    acknowledged: int
    expired: int
    purged: int
    receive_count: int
    receives: ClassVar[Any] = former_name("receive_count", int)
    bytes_sent: int
    moving: Annotated[int, Field(description="Messages in transfer to another queue.")]
    moved_in: int
    moved_out: int
    parked: Annotated[int, Field(description="Messages blocked until their group is resumed.")]
    dropped: Annotated[int, Field(description="Messages dropped for newer ones.")]
    bytes_held: Annotated[
        int,
        Field(description="Stored size of ready, delayed, in-flight and parked messages."),
    ]
    oldest_ready_at: Time | None
    durability: Annotated[
        str,
        Field(
            description="'always': acknowledged data is on disk. 'everysec': it is"
            " written shortly after."
        ),
    ]

    @classmethod
    def from_domain(cls, stats: QueueStats, durability: str) -> Self:
        oldest_ms = stats.oldest_ready_at_ms
        return cls(
            ready=stats.ready,
            delayed=stats.delayed,
            in_flight=stats.in_flight,
            dead_lettered=stats.dead_lettered,
            sent=stats.sent,
            deduplicated=stats.deduplicated,
            acknowledged=stats.acknowledged,
            expired=stats.expired,
            purged=stats.purged,
            receive_count=stats.receive_count,
            bytes_sent=stats.bytes_sent,
            moving=stats.moving,
            moved_in=stats.moved_in,
            moved_out=stats.moved_out,
            parked=stats.parked,
            dropped=stats.dropped,
            bytes_held=stats.bytes_held,
            oldest_ready_at=None if oldest_ms is None else rfc3339(oldest_ms),
            durability=durability,
        )


class Purged(BaseModel):
    """Number of deleted messages."""

    purged: int
