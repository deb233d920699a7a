"""EnableEnhancedMonitoring and DisableEnhancedMonitoring.

The setting is stored and has no effect: metrics are at /metrics in any case.
"""

from collections.abc import Callable, Sequence

from msgspec import field

from api.aws.kinesis import metadata
from api.aws.kinesis.call_helpers import arn_of, stream_of
from api.aws.kinesis.descriptions import metrics_of
from api.aws.kinesis.metadata import annotated
from api.aws.kinesis.shapes import METRICS, MetricsIn, StreamIdentity
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import OperationOutput
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import StreamSpec

operations = Operations()

_ALL = "ALL"


class EnhancedMonitoring(StreamIdentity):
    """Metrics of each shard."""

    shard_level_metrics: MetricsIn = None


class EnableMonitoring(EnhancedMonitoring):
    """Metrics to enable."""


class DisableMonitoring(EnhancedMonitoring):
    """Metrics to disable."""


class EnhancedMonitoringResult(OperationOutput):
    """The metrics that were enabled, and those that are from now on."""

    stream_name: str
    current_shard_level_metrics: list[str]
    desired_shard_level_metrics: list[str]
    stream_arn: str = field(name="StreamARN")


@operations.add("EnableEnhancedMonitoring", EnableMonitoring, Action.STREAM_MANAGE)
async def enable_monitoring(call: AwsCall[EnableMonitoring]) -> EnhancedMonitoringResult:
    """Store the setting, which has no effect: metrics are at /metrics in any case."""
    return await _monitor(call, lambda before, requested: [*before, *requested])


@operations.add("DisableEnhancedMonitoring", DisableMonitoring, Action.STREAM_MANAGE)
async def disable_monitoring(call: AwsCall[DisableMonitoring]) -> EnhancedMonitoringResult:
    """Store the setting, which has no effect."""
    return await _monitor(
        call, lambda before, requested: [one for one in before if one not in requested]
    )


async def _monitor(
    call: AwsCall[EnableMonitoring] | AwsCall[DisableMonitoring],
    combine: Callable[[Sequence[str], Sequence[str]], list[str]],
) -> EnhancedMonitoringResult:
    request = call.request
    stream = await stream_of(call, request.stream_name, request.stream_arn)
    every = [metric for metric in METRICS if metric != _ALL]
    metrics = request.shard_level_metrics or []
    named = every if _ALL in metrics else metrics
    before = metrics_of(stream.spec)

    def change(spec: StreamSpec) -> StreamSpec:
        after = frozenset(combine(metrics_of(spec), named))
        words = ",".join(metric for metric in every if metric in after)
        return annotated(spec, metadata.METRICS, words or None)

    changed = await call.storage.catalog.change_stream(stream.name, change)
    return EnhancedMonitoringResult(
        stream.name.name, before, metrics_of(changed.spec), await arn_of(call, stream)
    )
