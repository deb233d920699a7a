"""Stream configuration: retention, record size, mode, warm throughput, distribution."""

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import replace

from api.aws.kinesis import metadata
from api.aws.kinesis.call_helpers import arn_of, charged_stream
from api.aws.kinesis.default_throughput import WARM_THROUGHPUT_MAX
from api.aws.kinesis.descriptions import HOURS_MAX, HOURS_MIN, mode_of, retention_hours
from api.aws.kinesis.errors import VALIDATION, invalid, refuse
from api.aws.kinesis.metadata import annotated, annotation
from api.aws.kinesis.shapes import (
    AUTO,
    ON_DEMAND,
    ModeDetails,
    NaturalIn,
    RecordSizeIn,
    StrategyIn,
    StreamArnIn,
    StreamIdentity,
    StreamIdIn,
    WarmThroughput,
)
from api.aws.protocol.constraints import REQUIRED
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import Stream, StreamMode, StreamSpec

operations = Operations()


class ChangeRetention(StreamIdentity):
    """A new retention period."""

    retention_period_hours: Annotated[int | None, REQUIRED] = None


class IncreaseRetention(ChangeRetention):
    """A longer retention period."""


class DecreaseRetention(ChangeRetention):
    """A shorter retention period."""


class StreamByArn(Input):
    """A stream, by its ARN."""

    stream_arn: StreamArnIn = field(name="StreamARN", default=None)
    stream_id: StreamIdIn = None


class UpdateMaxRecordSize(StreamByArn):
    """A new maximum record size."""

    max_record_size_in_kib: Annotated[RecordSizeIn, REQUIRED] = field(
        name="MaxRecordSizeInKiB", default=None
    )


class UpdateStreamMode(Input):
    """A new capacity mode of a stream."""

    stream_arn: Annotated[StreamArnIn, REQUIRED] = field(name="StreamARN", default=None)
    stream_id: StreamIdIn = None
    stream_mode_details: Annotated[ModeDetails | None, REQUIRED] = None
    warm_throughput_mi_bps: NaturalIn = field(name="WarmThroughputMiBps", default=None)


class UpdateStreamWarmThroughput(StreamIdentity):
    """The throughput that a stream should accept without scaling first."""

    warm_throughput_mi_bps: Annotated[NaturalIn, REQUIRED] = field(
        name="WarmThroughputMiBps", default=None
    )


class UpdateStreamWarmThroughputResult(OperationOutput):
    """The warm throughput of a stream."""

    stream_arn: str = field(name="StreamARN")
    stream_name: str
    warm_throughput: WarmThroughput


class UpdateDistribution(Input):
    """Setting of whether partition keys select the shards."""

    stream_arn: Annotated[StreamArnIn, REQUIRED] = field(name="StreamARN", default=None)
    stream_id: StreamIdIn = None
    record_distribution_strategy: Annotated[StrategyIn, REQUIRED] = None


async def _change(
    call: AwsCall[Any], stream: Stream, change: Callable[[StreamSpec], StreamSpec]
) -> Stream:
    return await call.storage.catalog.change_stream(stream.name, change)


# ── Retention ──


@operations.add("IncreaseStreamRetentionPeriod", IncreaseRetention, Action.STREAM_MANAGE)
async def increase_retention(call: AwsCall[IncreaseRetention]) -> None:
    """Increase the retention; expired records do not return."""
    await _change_retention(call, longer=True)


@operations.add("DecreaseStreamRetentionPeriod", DecreaseRetention, Action.STREAM_MANAGE)
async def decrease_retention(call: AwsCall[DecreaseRetention]) -> None:
    """Decrease the retention; older records are removed at the next sweep."""
    await _change_retention(call, longer=False)


async def _change_retention(
    call: AwsCall[IncreaseRetention] | AwsCall[DecreaseRetention], *, longer: bool
) -> None:
    hours = call.request.retention_period_hours or 0
    stream = await charged_stream(call, "ChangeRetention", 5, by_stream=True)
    if not HOURS_MIN <= hours <= HOURS_MAX:
        bound, allowed, fault = (
            ("Minimum", HOURS_MIN, "short") if hours < HOURS_MIN else ("Maximum", HOURS_MAX, "long")
        )
        raise invalid(
            f"{bound} allowed retention period is {allowed} hours. "
            f"Requested retention period ({hours} hours) is too {fault}."
        )

    def change(spec: StreamSpec) -> StreamSpec:
        now = retention_hours(spec)
        if spec.retention_ms is not None and hours == now:
            return spec  # accepted without a change, as at Amazon: Terraform sets what is there
        if longer and (spec.retention_ms is None or hours <= now):
            raise invalid(
                f"Requested retention period ({hours} hours) for stream {stream.name.name} can not be "
                f"shorter than existing retention period ({now} hours). "
                "Use DecreaseRetentionPeriod API."
            )
        if not longer and spec.retention_ms is not None and hours >= now:
            raise invalid(
                f"Requested retention period ({hours} hours) for stream {stream.name.name} can not be "
                f"longer than existing retention period ({now} hours). "
                "Use IncreaseRetentionPeriod API."
            )
        return replace(spec, retention_ms=hours * limits.HOUR_MS)

    await _change(call, stream, change)


# ── Size, mode, throughput ──


@operations.add("UpdateMaxRecordSize", UpdateMaxRecordSize, Action.STREAM_MANAGE)
async def update_max_record_size(call: AwsCall[UpdateMaxRecordSize]) -> None:
    """Change the maximum record size of future records."""
    request = call.request
    stream = await charged_stream(call, "UpdateMaxRecordSize", 5, by_stream=True)
    most = (request.max_record_size_in_kib or 0) * limits.KIB
    await _change(call, stream, lambda spec: replace(spec, record_bytes_max=most))


@operations.add("UpdateStreamMode", UpdateStreamMode, Action.STREAM_MANAGE)
async def update_stream_mode(call: AwsCall[UpdateStreamMode]) -> None:
    """Switch between on-demand and provisioned mode; the shards do not change for now."""
    request = call.request
    details = request.stream_mode_details
    mode = str(details.stream_mode if details else "")
    stream = await charged_stream(call, "UpdateStreamMode", 5, by_stream=True)
    warm = request.warm_throughput_mi_bps
    if warm is not None:
        _check_warm(mode, warm)

    def change(spec: StreamSpec) -> StreamSpec:
        spec = replace(spec, mode=StreamMode[mode])
        if mode != ON_DEMAND:
            spec = annotated(spec, metadata.WARM_THROUGHPUT, None)
            return annotated(spec, metadata.DISTRIBUTION, None)
        if warm is not None:
            spec = annotated(spec, metadata.WARM_THROUGHPUT, str(warm))
        return spec

    await _change(call, stream, change)


@operations.add("UpdateStreamWarmThroughput", UpdateStreamWarmThroughput, Action.STREAM_MANAGE)
async def update_warm_throughput(
    call: AwsCall[UpdateStreamWarmThroughput],
) -> UpdateStreamWarmThroughputResult:
    """Store the number, which has no effect.

    A stream accepts as much as its shards and this machine can process.
    """
    target_mib_s = call.request.warm_throughput_mi_bps or 0
    stream = await charged_stream(call, "UpdateStreamWarmThroughput", 5)
    before = annotation(stream.spec, metadata.WARM_THROUGHPUT)

    def change(spec: StreamSpec) -> StreamSpec:
        _check_warm(mode_of(spec), target_mib_s)
        return annotated(spec, metadata.WARM_THROUGHPUT, str(target_mib_s))

    await _change(call, stream, change)
    throughput = WarmThroughput(target_mib_s, int(before or 0))
    return UpdateStreamWarmThroughputResult(
        await arn_of(call, stream), stream.name.name, throughput
    )


def _check_warm(mode: str, target_mib_s: int) -> None:
    if mode != ON_DEMAND:
        refuse(VALIDATION, "WarmThroughputMiBps is supported only for streams in on-demand mode.")
    if target_mib_s > WARM_THROUGHPUT_MAX:
        refuse(VALIDATION, f"WarmThroughputMiBps is at most {WARM_THROUGHPUT_MAX}.")


@operations.add("UpdateStreamRecordDistributionStrategy", UpdateDistribution, Action.STREAM_MANAGE)
async def update_distribution(call: AwsCall[UpdateDistribution]) -> None:
    """Let partition keys select the shards, or let records go to any shard."""
    request = call.request
    stream = await charged_stream(call, "UpdateStreamRecordDistributionStrategy", 5, by_stream=True)
    strategy = request.record_distribution_strategy

    def change(spec: StreamSpec) -> StreamSpec:
        if mode_of(spec) != ON_DEMAND:
            refuse(
                VALIDATION,
                "RecordDistributionStrategy is supported only for streams in on-demand mode.",
            )
        return annotated(spec, metadata.DISTRIBUTION, AUTO if strategy == AUTO else None)

    await _change(call, stream, change)
