"""Stream schemas: configuration."""

from typing import Annotated, Any, Self

import msgspec
from pydantic import Field

from api.rest.definition_changes import PutOutcome
from api.rest.field_map import Mapped, MappedDefinition, MappedDefinitionConfig
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
from storage.domain.streams.stream import EventTimes, Stream, StreamMode, StreamSpec


class StreamConfig(MappedDefinitionConfig):
    """The complete configuration of a stream; omitted fields take their default."""

    domain = StreamSpec

    shards: Annotated[
        int,
        Field(
            ge=1,
            le=limits.SHARDS_MAX,
            description="Initial number of shards. Use a reshard to change it.",
        ),
    ] = 1
    mode: Annotated[
        StreamMode,
        Field(strict=False, description="on_demand: shards are split and merged by load."),
    ] = StreamMode.PROVISIONED
    retention_seconds: Annotated[
        Seconds | None, Field(description="null (also in a patch): unlimited.")
    ] = in_seconds(limits.STREAM_RETENTION_MS_DEFAULT)
    retention_bytes: Annotated[Bytes | None, Field(description="Per shard; null: no limit.")] = None
    retention_records: Annotated[Bytes | None, Field(description="Per shard; null: no limit.")] = (
        None
    )
    drop_when_read: Annotated[
        bool, Field(description="Delete a record when all consumer groups have committed it.")
    ] = False
    record_bytes_max: Bytes = limits.RECORD_BYTES_MAX_DEFAULT
    event_times: Annotated[
        EventTimes,
        Field(strict=False, description="Handling of event times set by producers."),
    ] = EventTimes.CLIENT_PREFER
    event_time_skew_seconds_max: Annotated[
        Seconds | None,
        Field(description="Maximum difference between an event time and now; null: unlimited."),
    ] = None
    key_index: Annotated[
        bool,
        Field(
            description="Index for reading the latest record of a key; costs "
            "about 100 bytes per key."
        ),
    ] = False
    archive: Annotated[
        bool, Field(description="Copy records to Parquet, if the deployment has an archive.")
    ] = True
    archive_lag_seconds: Annotated[
        Seconds, Field(description="Approximate time until a record is archived.")
    ] = in_seconds(limits.ARCHIVE_LAG_MS_DEFAULT)
    hot_retention_seconds: Annotated[
        Seconds | None,
        Field(
            description="Time that archived records also stay in the hot store; null: "
            "until memory is needed."
        ),
    ] = in_seconds(limits.HOT_RETENTION_MS_DEFAULT)
    hot_bytes_max: Annotated[
        Bytes | None,
        Field(
            description="Maximum size of an archived stream's shard in the hot store. "
            "When half of it is not yet archived, writes are rejected with "
            "429. null: no limit."
        ),
    ] = limits.HOT_BYTES_MAX_DEFAULT
    tags: Tags = {}


_NULL_IS_NONE = ("retention_seconds", "hot_retention_seconds", "hot_bytes_max")


class StreamPatch(Config):
    """Changes to a stream (a JSON Merge Patch); null resets a field to its default.

    `retention_seconds`, `hot_retention_seconds` and `hot_bytes_max` are instead set to none.
    """

    mode: Annotated[StreamMode | None, Field(strict=False)] = None
    retention_seconds: Seconds | None = None
    retention_bytes: Bytes | None = None
    retention_records: Bytes | None = None
    drop_when_read: bool | None = None
    record_bytes_max: Bytes | None = None
    event_times: Annotated[EventTimes | None, Field(strict=False)] = None
    event_time_skew_seconds_max: Seconds | None = None
    key_index: bool | None = None
    archive: bool | None = None
    archive_lag_seconds: Seconds | None = None
    hot_retention_seconds: Seconds | None = None
    hot_bytes_max: Bytes | None = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: StreamSpec) -> StreamSpec:
        """Return the specification after the change. Raises RequestValidationError."""
        before = StreamConfig.from_domain(spec).model_dump()
        patch = self.model_dump(exclude_unset=True)
        after = merged(before, patch)
        after |= {name: patch[name] for name in _NULL_IS_NONE if name in patch}
        changed: StreamSpec = valid(StreamConfig, after).to_domain()
        return msgspec.structs.replace(changed, annotations=spec.annotations)


class StreamOut(MappedDefinition):
    """A stream: its configuration, and its version, which is its ETag."""

    name: str
    shards: Annotated[int, Field(description="Number of shards at creation.")]
    open_shards: Annotated[int, Field(description="Now.")]
    mode: StreamMode
    retention_seconds: Seconds | None
    retention_bytes: int | None
    retention_records: int | None
    drop_when_read: bool
    record_bytes_max: int
    event_times: EventTimes
    event_time_skew_seconds_max: Seconds | None
    key_index: bool
    archive: bool
    archive_lag_seconds: Seconds
    hot_retention_seconds: Seconds | None
    hot_bytes_max: int | None
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: Stream, **others: Any) -> Self:
        return super().from_domain(value, open_shards=len(value.open_shards), **others)


class StreamStored(PutOutcome, StreamOut):
    """A stream after a PUT, and what the PUT changed."""


class StreamMeasurement(Mapped):
    """Counts and rates of a stream, measured every ten seconds.

    Rates are per second since the one before; null if there was none.
    """

    renamed = {"oldest_unread_at": "unread_at_ms"}

    measured_at: Time
    records: Annotated[int, Field(description="In the hot store.")]
    bytes_held: Annotated[int, Field(description="In the hot store.")]
    groups: int
    lag_records: Annotated[
        int | None, Field(description="Of the group with the largest lag; null without groups.")
    ]
    oldest_unread_at: Annotated[
        Time | None, Field(description="Arrival of the oldest record that some group has not read.")
    ]
    records_in_per_second: float | None
    bytes_in_per_second: float | None


class ListedStream(StreamOut):
    """A stream in a list."""

    measurement: Annotated[StreamMeasurement | None, Field(description=MEASUREMENT)]


class StreamPage(ListPage[ListedStream]):
    """Streams by name. `next_cursor` is null on the last page."""
