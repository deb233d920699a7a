"""Queue schemas: configuration and counts."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import msgspec
from pydantic import BaseModel, Field

from api.native.fields import to_ms
from api.native.former_names import PAUSE_INSTEAD, deprecated_member, former_name
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import (
    Mapped,
    MappedDefinition,
    MappedDefinitionConfig,
    domain_value,
)
from api.rest.queue_policies import (
    BackoffConfig,
    BackoffOut,
    DeadLettersConfig,
    GroupWeightConfig,
    RedriveAllowConfig,
)
from api.rest.schema_base import (
    MEASUREMENT,
    Bytes,
    Config,
    ListPage,
    Seconds,
    Tags,
    Time,
    in_seconds,
    merged,
    valid,
)
from storage.domain import limits
from storage.domain.queues.policies import Overflow, PoisonPolicy
from storage.domain.queues.queue import (
    DedupScope,
    Queue,
    QueueSpec,
    QueueType,
)


class QueueConfig(MappedDefinitionConfig):
    """The complete configuration of a queue; omitted fields take their default."""

    type: Annotated[QueueType, Field(strict=False, description="Immutable.")] = QueueType.STANDARD
    partitions: Annotated[
        int | None,
        Field(
            ge=1,
            le=limits.QUEUE_PARTITIONS_MAX,
            description="Number of logs that share the queue's messages; more than one uses several cores or stores. null: as many as "
            "it has, 1 for a new queue. Immutable for a FIFO queue.",
        ),
    ] = None
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
    expires_after_idle_seconds: Annotated[
        Seconds | None,
        Field(
            description="Delete the queue with its messages when it had no sends, receives and waiting receivers for this time; "
            "null: never. At least 60."
        ),
    ] = None
    tags: Tags = {}

    def to_domain(self) -> QueueSpec:
        """Return the specification, which the catalog validates."""
        return domain_value(
            QueueSpec,
            self,
            partitions=self.partitions or 0,
            ttl_ms=to_ms(self.ttl_seconds or 0),
            paused=bool(self.paused),
        )

    @classmethod
    def from_domain(cls, value: QueueSpec, **others: Any) -> Self:
        """Return the configuration of a specification."""
        return cls.mapped(value, ttl_seconds=_ttl_seconds(value), **others)

    def put_options(self) -> Mapping[str, Any]:
        return {"replace_pause": self.paused is not None}


def _ttl_seconds(spec: QueueSpec) -> float | None:
    return in_seconds(spec.ttl_ms) if spec.ttl_ms else None


class QueuePatch(Config):
    """Changes to a queue (a JSON Merge Patch); null resets a field to its default.

    Only `attempts_max: null` means no limit, as it does elsewhere, and `partitions: null` as many as the queue has.
    """

    partitions: Annotated[int | None, Field(ge=1, le=limits.QUEUE_PARTITIONS_MAX)] = None
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
    expires_after_idle_seconds: Seconds | None = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: QueueSpec) -> QueueSpec:
        """Return the specification after the change. Raises RequestValidationError."""
        before = QueueConfig.from_domain(spec).model_dump()
        after = merged(before, self.model_dump(exclude_unset=True))
        if "attempts_max" in self.model_fields_set:
            after["attempts_max"] = self.attempts_max
        changed = valid(QueueConfig, after).to_domain()
        partitions = changed.partitions or spec.partitions
        return msgspec.structs.replace(changed, partitions=partitions, annotations=spec.annotations)


class QueueOut(MappedDefinition):
    """A queue: its configuration, and its version, which is its ETag."""

    name: str
    type: QueueType
    partitions: int
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
    expires_after_idle_seconds: Seconds | None
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: Queue, **others: Any) -> Self:
        return super().from_domain(value, ttl_seconds=_ttl_seconds(value.spec), **others)


class QueueStored(PutOutcome, QueueOut):
    """A queue after a PUT, and what the PUT changed."""


class QueueMeasurement(Mapped):
    """Counts and rates of a queue, measured every ten seconds.

    Rates are per second since the one before; null if there was none.
    """

    measured_at: Time
    ready: int
    delayed: int
    in_flight: int
    parked: int
    dead_lettered: int
    bytes_held: int
    consumers: Annotated[
        int, Field(description="Consumers that received in the last five minutes.")
    ]
    oldest_ready_at: Time | None
    sent_per_second: float | None
    received_per_second: float | None
    acknowledged_per_second: float | None
    failed_per_second: Annotated[
        float | None,
        Field(description="Deliveries that ended with a nack, a reject or without a verdict."),
    ]
    failure_ratio: Annotated[
        float | None, Field(description="Failed deliveries among those that ended, from 0 to 1.")
    ]
    acknowledge_p50_seconds: Annotated[
        float | None, Field(description="Median time from send to acknowledgement.")
    ]
    acknowledge_p95_seconds: float | None
    acknowledge_p99_seconds: float | None


class ListedQueue(QueueOut):
    """A queue in a list."""

    measurement: Annotated[QueueMeasurement | None, Field(description=MEASUREMENT)]


class QueuePage(ListPage[ListedQueue]):
    """Queues by name. `next_cursor` is null on the last page."""


class QueueStatsOut(Mapped):
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
    fenced: Annotated[
        bool,
        Field(
            description="The queue takes and delivers nothing: it is a copy of another deployment's queue, or was moved there."
        ),
    ]
    durability: Annotated[
        str,
        Field(
            description="'always': acknowledged data is on disk. 'everysec': it is"
            " written shortly after. 'replicated': it is on the disks of enough stores to"
            " survive the loss of one."
        ),
    ]
    replication_factor: Annotated[
        int | None,
        Field(
            description="Number of stores that have the data; null where an engine replicates by itself."
        ),
    ]
    min_insync_replicas: Annotated[
        int | None,
        Field(description="How many of them a write is on before it is acknowledged."),
    ]


class Purged(BaseModel):
    """Number of deleted messages."""

    purged: int
