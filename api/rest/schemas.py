"""Configuration of queues and streams on the wire. Unknown fields are refused: a typo is never silent."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from api.rest.fields import rfc3339, to_ms, to_seconds
from storage.domain import limits
from storage.domain.queues import Queue, QueueSpec, QueueStats, QueueType
from storage.domain.streams import ShardState, Stream, StreamSpec

Seconds = Annotated[
    float,
    PlainSerializer(lambda seconds: to_seconds(to_ms(seconds)), return_type=int | float),
    Field(ge=0, le=limits.STREAM_RETENTION_MS_MAX // limits.SECOND_MS),
]
Bytes = Annotated[int, Field(ge=1, le=2**53 - 1)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Tags = Annotated[dict[str, str], Field(description="Up to 50 words of your own.")]


def _seconds(ms: int) -> float:
    return ms / limits.SECOND_MS


class Config(BaseModel):
    """What an owner says; strict about types and names."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QueueConfig(Config):
    """The whole desired state of a queue; what is not said takes its default."""

    type: Annotated[QueueType, Field(strict=False, description="Cannot be changed later.")] = (
        QueueType.STANDARD
    )
    visibility_timeout_seconds: Seconds = _seconds(limits.VISIBILITY_TIMEOUT_MS_DEFAULT)
    delay_seconds: Seconds = 0
    retention_seconds: Seconds = _seconds(limits.QUEUE_RETENTION_MS_DEFAULT)
    dead_letter_retention_seconds: Seconds = _seconds(limits.DEAD_LETTER_RETENTION_MS_DEFAULT)
    message_bytes_max: Bytes = limits.MESSAGE_BYTES_MAX
    attempts_max: Annotated[
        int | None, Field(ge=1, le=limits.ATTEMPTS_MAX_MAX, description="null: no limit.")
    ] = limits.ATTEMPTS_MAX_DEFAULT
    tags: Tags = {}

    def to_domain(self) -> QueueSpec:
        """The specification, which the catalog checks."""
        return QueueSpec(
            type=self.type,
            visibility_timeout_ms=to_ms(self.visibility_timeout_seconds),
            delay_ms=to_ms(self.delay_seconds),
            retention_ms=to_ms(self.retention_seconds),
            dead_letter_retention_ms=to_ms(self.dead_letter_retention_seconds),
            message_bytes_max=self.message_bytes_max,
            attempts_max=self.attempts_max,
            tags=self.tags,
        )

    @classmethod
    def from_domain(cls, spec: QueueSpec) -> Self:
        """The configuration that makes `spec`."""
        return cls(**_queue_fields(spec))


def _queue_fields(spec: QueueSpec) -> dict[str, Any]:
    return {
        "type": spec.type,
        "visibility_timeout_seconds": _seconds(spec.visibility_timeout_ms),
        "delay_seconds": _seconds(spec.delay_ms),
        "retention_seconds": _seconds(spec.retention_ms),
        "dead_letter_retention_seconds": _seconds(spec.dead_letter_retention_ms),
        "message_bytes_max": spec.message_bytes_max,
        "attempts_max": spec.attempts_max,
        "tags": spec.tags,
    }


class QueuePatch(Config):
    """What to change of a queue (a JSON Merge Patch): null takes a field back to its default.

    Only `attempts_max: null` means what it means elsewhere: no limit.
    """

    visibility_timeout_seconds: Seconds | None = None
    delay_seconds: Seconds | None = None
    retention_seconds: Seconds | None = None
    dead_letter_retention_seconds: Seconds | None = None
    message_bytes_max: Bytes | None = None
    attempts_max: Annotated[int | None, Field(ge=1, le=limits.ATTEMPTS_MAX_MAX)] = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: QueueSpec) -> QueueSpec:
        """The specification after the change."""
        before = QueueConfig.from_domain(spec).model_dump()
        after = merged(before, self.model_dump(exclude_unset=True))
        if "attempts_max" in self.model_fields_set:
            after["attempts_max"] = self.attempts_max
        return QueueConfig(**after).to_domain()


class QueueOut(BaseModel):
    """A queue: its configuration, and its version, which is its ETag."""

    name: str
    type: QueueType
    visibility_timeout_seconds: Seconds
    delay_seconds: Seconds
    retention_seconds: Seconds
    dead_letter_retention_seconds: Seconds
    message_bytes_max: int
    attempts_max: int | None
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, queue: Queue) -> Self:
        return cls(
            name=queue.name.name,
            version=queue.version,
            created_at=rfc3339(queue.created_at_ms),
            changed_at=rfc3339(queue.changed_at_ms),
            **_queue_fields(queue.spec),
        )


class QueuePage(BaseModel):
    """Queues by name. `next_cursor` is null on the last page."""

    items: list[QueueOut]
    next_cursor: str | None


class QueueStatsOut(BaseModel):
    """Exact counts as of now.

    sent = ready + delayed + in_flight + dead_lettered + acknowledged + expired + purged
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
    receives: int
    bytes_sent: int
    oldest_ready_at: Time | None
    durability: Annotated[
        str, Field(description="'always': what is acknowledged is on disk. 'everysec': soon after.")
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
            receives=stats.receives,
            bytes_sent=stats.bytes_sent,
            oldest_ready_at=None if oldest_ms is None else rfc3339(oldest_ms),
            durability=durability,
        )


class Purged(BaseModel):
    """How many messages were dropped."""

    purged: int


class Redriven(BaseModel):
    """How many dead letters are ready again."""

    redriven: int


class StreamConfig(Config):
    """The whole desired state of a stream; what is not said takes its default."""

    shards: Annotated[
        int, Field(ge=1, le=limits.SHARDS_MAX, description="Cannot be changed later.")
    ] = 1
    retention_seconds: Seconds = _seconds(limits.STREAM_RETENTION_MS_DEFAULT)
    retention_bytes: Annotated[
        Bytes | None, Field(description="Of each shard; null: no limit.")
    ] = None
    record_bytes_max: Bytes = limits.RECORD_BYTES_MAX
    tags: Tags = {}

    def to_domain(self) -> StreamSpec:
        """The specification, which the catalog checks."""
        return StreamSpec(
            shards=self.shards,
            retention_ms=to_ms(self.retention_seconds),
            retention_bytes=self.retention_bytes,
            record_bytes_max=self.record_bytes_max,
            tags=self.tags,
        )

    @classmethod
    def from_domain(cls, spec: StreamSpec) -> Self:
        """The configuration that makes `spec`."""
        return cls(**_stream_fields(spec))


def _stream_fields(spec: StreamSpec) -> dict[str, Any]:
    return {
        "shards": spec.shards,
        "retention_seconds": _seconds(spec.retention_ms),
        "retention_bytes": spec.retention_bytes,
        "record_bytes_max": spec.record_bytes_max,
        "tags": spec.tags,
    }


class StreamPatch(Config):
    """What to change of a stream (a JSON Merge Patch): null takes a field back to its default."""

    retention_seconds: Seconds | None = None
    retention_bytes: Bytes | None = None
    record_bytes_max: Bytes | None = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: StreamSpec) -> StreamSpec:
        """The specification after the change."""
        before = StreamConfig.from_domain(spec).model_dump()
        after = merged(before, self.model_dump(exclude_unset=True))
        return StreamConfig(**after).to_domain()


class StreamOut(BaseModel):
    """A stream: its configuration, and its version, which is its ETag."""

    name: str
    shards: int
    retention_seconds: Seconds
    retention_bytes: int | None
    record_bytes_max: int
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, stream: Stream) -> Self:
        return cls(
            name=stream.name.name,
            version=stream.version,
            created_at=rfc3339(stream.created_at_ms),
            changed_at=rfc3339(stream.changed_at_ms),
            **_stream_fields(stream.spec),
        )


class StreamPage(BaseModel):
    """Streams by name. `next_cursor` is null on the last page."""

    items: list[StreamOut]
    next_cursor: str | None


class ShardOut(BaseModel):
    """A shard: the hash keys it takes (decimal, inclusive) and the extent of its log."""

    index: int
    first_hash_key: str
    last_hash_key: str
    start: Annotated[int, Field(description="The oldest readable offset.")]
    next: Annotated[int, Field(description="The next offset to be written.")]
    bytes: int

    @classmethod
    def from_domain(cls, state: ShardState) -> Self:
        return cls(
            index=state.shard.index,
            first_hash_key=str(state.shard.first_hash_key),
            last_hash_key=str(state.shard.last_hash_key),
            start=state.start,
            next=state.next,
            bytes=state.bytes,
        )


class Shards(BaseModel):
    """A stream's shards."""

    items: list[ShardOut]


def merged(before: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """`before` with an RFC 7396 merge patch applied."""
    after = dict(before)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = merged(after.get(name) or {}, value)
        else:
            after[name] = value
    return after
