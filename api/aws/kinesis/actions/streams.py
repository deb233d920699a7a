"""CreateStream, DeleteStream, ListStreams, and the three that describe."""

from typing import Annotated

from msgspec import field

from api.aws.kinesis import metadata
from api.aws.kinesis.arns import stream_arn
from api.aws.kinesis.call_helpers import arn_of, charge_control_call, charged_stream, stream_of
from api.aws.kinesis.default_throughput import WARM_THROUGHPUT_MAX
from api.aws.kinesis.descriptions import (
    StreamDescription,
    StreamDescriptionSummary,
    StreamSummary,
    description,
    summary,
    summary_of_list,
)
from api.aws.kinesis.errors import (
    INVALID_ARGUMENT,
    LIMIT_EXCEEDED,
    RESOURCE_IN_USE,
    VALIDATION,
    invalid,
    refuse,
)
from api.aws.kinesis.metadata import annotated
from api.aws.kinesis.pagination import list_token, next_token
from api.aws.kinesis.resources.tags import with_tags
from api.aws.kinesis.shapes import (
    AUTO,
    ON_DEMAND,
    ModeDetails,
    NaturalIn,
    NextTokenIn,
    PageIn,
    PositiveIn,
    RecordSizeIn,
    ShardIdIn,
    StrategyIn,
    StreamIdentity,
    StreamNameIn,
    TagsIn,
)
from api.aws.protocol.constraints import REQUIRED
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import PreconditionFailed, StreamReadOnly, ValidationFailed
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamMode, StreamSpec

operations = Operations()

ON_DEMAND_SHARDS = 4  # Amazon's initial number: 4 MB/s
RETENTION_MS = 24 * limits.HOUR_MS
_DESCRIBED_MAX = 100
_LISTED = 100


class CreateStream(Input):
    """A stream to create."""

    stream_name: Annotated[StreamNameIn, REQUIRED] = None
    shard_count: PositiveIn = None
    stream_mode_details: ModeDetails | None = None
    tags: TagsIn = None
    warm_throughput_mi_bps: NaturalIn = field(name="WarmThroughputMiBps", default=None)
    max_record_size_in_kib: RecordSizeIn = field(name="MaxRecordSizeInKiB", default=None)
    record_distribution_strategy: StrategyIn = None


class DeleteStream(StreamIdentity):
    """A stream to delete, with explicit consent if consumers are registered with it."""

    enforce_consumer_deletion: bool | None = None


class ListStreams(Input):
    """A page of streams by name."""

    limit: PageIn = None
    exclusive_start_stream_name: StreamNameIn = None
    next_token: NextTokenIn = None


class ListStreamsResult(OperationOutput):
    """Names of streams, with a summary of each."""

    stream_names: list[str]
    has_more_streams: bool
    next_token: str | None = None
    stream_summaries: list[StreamSummary] | None = None


class DescribeStream(StreamIdentity):
    """A stream with a page of its shards."""

    limit: PageIn = None
    exclusive_start_shard_id: ShardIdIn = None


class DescribeStreamResult(OperationOutput):
    """Stream."""

    stream_description: StreamDescription


class DescribeStreamSummary(StreamIdentity):
    """A stream without its shards."""


class DescribeStreamSummaryResult(OperationOutput):
    """Stream."""

    stream_description_summary: StreamDescriptionSummary


@operations.add("CreateStream", CreateStream, Action.STREAM_MANAGE)
async def create_stream(call: AwsCall[CreateStream]) -> None:
    """Create a stream, which is ACTIVE immediately."""
    request = call.request
    stream_name = str(request.stream_name)
    await charge_control_call(call, "CreateStream", 5, None)
    spec = _spec_of(request)
    try:
        name = StreamName(stream_name, call.principal.namespace)
        call.authorise(str(name))
        await call.storage.catalog.put_stream(name, spec, create_only=True)
    except (PreconditionFailed, StreamReadOnly):
        account = await call.account_id()
        refuse(RESOURCE_IN_USE, f"Stream {stream_name} under account {account} already exists.")
    except ValidationFailed as error:
        if spec.shards > limits.SHARDS_MAX:
            refuse(LIMIT_EXCEEDED, f"A stream can have at most {limits.SHARDS_MAX} shards.")
        refuse(INVALID_ARGUMENT, "; ".join(fault.detail for fault in error.faults) or error.detail)


def _spec_of(request: CreateStream) -> StreamSpec:
    mode = request.stream_mode_details.stream_mode if request.stream_mode_details else None
    on_demand = mode == ON_DEMAND or (mode is None and request.shard_count is None)
    if not on_demand and request.shard_count is None:
        refuse(VALIDATION, "ShardCount is required for a stream in provisioned mode.")
    if on_demand and request.shard_count is not None:
        refuse(VALIDATION, "ShardCount must not be given for a stream in on-demand mode.")
    if not on_demand and request.record_distribution_strategy is not None:
        refuse(
            VALIDATION,
            "RecordDistributionStrategy is supported only for streams in on-demand mode.",
        )
    if not on_demand and request.warm_throughput_mi_bps is not None:
        refuse(VALIDATION, "WarmThroughputMiBps is supported only for streams in on-demand mode.")
    if (request.warm_throughput_mi_bps or 0) > WARM_THROUGHPUT_MAX:
        refuse(VALIDATION, f"WarmThroughputMiBps is at most {WARM_THROUGHPUT_MAX}.")
    spec = StreamSpec(
        shards=request.shard_count or ON_DEMAND_SHARDS,
        mode=StreamMode.ON_DEMAND if on_demand else StreamMode.PROVISIONED,
        retention_ms=RETENTION_MS,
        record_bytes_max=(request.max_record_size_in_kib or 1024) * limits.KIB,
        tags=with_tags({}, request.tags or {}),
    )
    if request.record_distribution_strategy == AUTO:
        spec = annotated(spec, metadata.DISTRIBUTION, AUTO)
    if request.warm_throughput_mi_bps is not None:
        warm = str(request.warm_throughput_mi_bps)
        spec = annotated(spec, metadata.WARM_THROUGHPUT, warm)
    return spec


@operations.add("DeleteStream", DeleteStream, Action.STREAM_MANAGE)
async def delete_stream(call: AwsCall[DeleteStream]) -> None:
    """Delete a stream with its records, immediately; its name can be reused."""
    request = call.request
    await charge_control_call(call, "DeleteStream", 5, None)
    stream = await stream_of(call, request.stream_name, request.stream_arn)
    if not request.enforce_consumer_deletion and await call.storage.registered_consumers.count(
        stream
    ):
        account = await call.account_id()
        refuse(
            RESOURCE_IN_USE,
            f"Stream {stream.name.name} under account {account} has registered consumers; "
            "set EnforceConsumerDeletion to delete it with them.",
        )
    await call.storage.catalog.delete_stream(stream.name)


@operations.add("ListStreams", ListStreams, Action.STREAM_LIST)
async def list_streams(call: AwsCall[ListStreams]) -> ListStreamsResult:
    """List streams by name."""
    request = call.request
    call.authorise_list()
    await charge_control_call(call, "ListStreams", 5, None)
    limit = min(request.limit or _LISTED, limits.PAGE_ITEMS_MAX - 1)
    after = await _after(call)
    streams = await call.storage.catalog.list_streams(
        call.principal.namespace, after=after, limit=limit + 1
    )
    has_more = len(streams) > limit
    token = await next_token(call, "streams", streams[limit - 1].name.name) if has_more else None
    page = [stream for stream in streams[:limit] if call.may_see(stream.name.name)]
    account = await call.account_id()
    summaries = [
        summary_of_list(stream, stream_arn(call.region, account, stream.name.name))
        for stream in page
    ]
    return ListStreamsResult([stream.name.name for stream in page], has_more, token, summaries)


async def _after(call: AwsCall[ListStreams]) -> str:
    """Return the name after which the page begins."""
    request = call.request
    if request.next_token is None:
        return request.exclusive_start_stream_name or ""
    if request.exclusive_start_stream_name is not None:
        raise invalid("NextToken and ExclusiveStartStreamName cannot be provided together.")
    token = await list_token(call, request.next_token, "streams")
    return token.after


@operations.add("DescribeStream", DescribeStream, Action.STREAM_LIST)
async def describe_stream(call: AwsCall[DescribeStream]) -> DescribeStreamResult:
    """Describe a stream with its shards, a hundred per page."""
    request = call.request
    stream = await charged_stream(call, "DescribeStream", 10)
    limit = min(request.limit or _DESCRIBED_MAX, _DESCRIBED_MAX)
    stream_description = description(
        stream, await arn_of(call, stream), request.exclusive_start_shard_id or "", limit
    )
    return DescribeStreamResult(stream_description)


@operations.add("DescribeStreamSummary", DescribeStreamSummary, Action.STREAM_LIST)
async def describe_stream_summary(
    call: AwsCall[DescribeStreamSummary],
) -> DescribeStreamSummaryResult:
    """Describe a stream without its shards."""
    stream = await charged_stream(call, "DescribeStreamSummary", 20)
    consumers = await call.storage.registered_consumers.count(stream)
    return DescribeStreamSummaryResult(summary(stream, await arn_of(call, stream), consumers))
