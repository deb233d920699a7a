"""Descriptions of streams in the Kinesis format."""

from msgspec import field

from api.aws.kinesis import metadata
from api.aws.kinesis.call_helpers import shard_id
from api.aws.kinesis.metadata import annotation
from api.aws.kinesis.shapes import (
    KMS,
    NONE,
    ON_DEMAND,
    PROVISIONED,
    USER_PARTITION_KEY,
    EnhancedMetrics,
    KinesisShardOut,
    ModeDetails,
    WarmThroughput,
)
from api.aws.kinesis.shards import shard_out
from api.aws.kinesis.timestamps import seconds
from api.aws.protocol.shapes import OperationOutput
from storage.domain import limits
from storage.domain.streams.stream import Stream, StreamMode, StreamSpec

ACTIVE, UPDATING = "ACTIVE", "UPDATING"
HOURS_MIN, HOURS_MAX = 24, 8_760


class _NamedStream(OperationOutput):
    """The first members of every description of a stream."""

    stream_name: str
    stream_arn: str = field(name="StreamARN")
    stream_status: str


class StreamSummary(_NamedStream):
    """A stream in a list."""

    stream_mode_details: ModeDetails | None = None
    stream_creation_timestamp: float | None = None


class StreamDescription(_NamedStream):
    """A stream with a page of its shards."""

    shards: list[KinesisShardOut]
    has_more_shards: bool
    retention_period_hours: int
    stream_creation_timestamp: float
    enhanced_monitoring: list[EnhancedMetrics]
    stream_mode_details: ModeDetails | None = None
    encryption_type: str | None = None
    key_id: str | None = None


class StreamDescriptionSummary(_NamedStream):
    """A stream without its shards."""

    retention_period_hours: int
    stream_creation_timestamp: float
    enhanced_monitoring: list[EnhancedMetrics]
    open_shard_count: int
    stream_id: str | None = None
    stream_mode_details: ModeDetails | None = None
    encryption_type: str | None = None
    key_id: str | None = None
    consumer_count: int | None = None
    warm_throughput: WarmThroughput | None = None
    max_record_size_in_kib: int | None = field(name="MaxRecordSizeInKiB", default=None)
    channel_count: int | None = None
    record_distribution_strategy: str | None = None
    queue_count: int | None = None


def mode_of(spec: StreamSpec) -> str:
    """Return the capacity mode: the owner or the load decides on the shards."""
    return ON_DEMAND if spec.mode is StreamMode.ON_DEMAND else PROVISIONED


def metrics_of(spec: StreamSpec) -> list[str]:
    """Return the shard-level metrics that the owner enabled."""
    text = annotation(spec, metadata.METRICS)
    return text.split(",") if text else []


def retention_hours(spec: StreamSpec) -> int:
    """Return the retention in whole hours, rounded up; unlimited is Amazon's maximum."""
    return HOURS_MAX if spec.retention_ms is None else -(-spec.retention_ms // limits.HOUR_MS)


def warm_throughput(spec: StreamSpec) -> WarmThroughput | None:
    """Return the warm throughput that the owner set, if any."""
    text = annotation(spec, metadata.WARM_THROUGHPUT)
    return None if text is None else WarmThroughput(int(text), int(text))


def status_of(stream: Stream) -> str:
    """Return ACTIVE, except during a reshard. Streams are created and deleted immediately."""
    return UPDATING if stream.shards_target is not None or stream.opening else ACTIVE


def summary_of_list(stream: Stream, arn: str) -> StreamSummary:
    """Describe a stream in a list."""
    return StreamSummary(
        stream.name.name,
        arn,
        status_of(stream),
        ModeDetails(mode_of(stream.spec)),
        seconds(stream.created_at_ms),
    )


def description(stream: Stream, arn: str, after: str, limit: int) -> StreamDescription:
    """Describe a stream, with the shards after the one named `after`."""
    behind = [shard for shard in stream.shards if shard_id(shard.index) > after]
    key = annotation(stream.spec, metadata.KEY)
    return StreamDescription(
        stream_name=stream.name.name,
        stream_arn=arn,
        stream_status=status_of(stream),
        shards=[shard_out(shard) for shard in behind[:limit]],
        has_more_shards=len(behind) > limit,
        retention_period_hours=retention_hours(stream.spec),
        stream_creation_timestamp=seconds(stream.created_at_ms),
        enhanced_monitoring=[EnhancedMetrics(metrics_of(stream.spec))],
        stream_mode_details=ModeDetails(mode_of(stream.spec)),
        encryption_type=NONE if key is None else KMS,
        key_id=key,
    )


def summary(stream: Stream, arn: str, consumers: int) -> StreamDescriptionSummary:
    """Describe a stream without its shards."""
    spec = stream.spec
    key = annotation(spec, metadata.KEY)
    strategy = annotation(spec, metadata.DISTRIBUTION) or USER_PARTITION_KEY
    return StreamDescriptionSummary(
        stream_name=stream.name.name,
        stream_arn=arn,
        stream_status=status_of(stream),
        retention_period_hours=retention_hours(spec),
        stream_creation_timestamp=seconds(stream.created_at_ms),
        enhanced_monitoring=[EnhancedMetrics(metrics_of(spec))],
        open_shard_count=len(stream.open_shards),
        stream_mode_details=ModeDetails(mode_of(spec)),
        encryption_type=NONE if key is None else KMS,
        key_id=key,
        consumer_count=consumers,
        warm_throughput=warm_throughput(spec),
        max_record_size_in_kib=-(-spec.record_bytes_max // limits.KIB),
        record_distribution_strategy=strategy if mode_of(spec) == ON_DEMAND else None,
    )
