"""RegisterStreamConsumer, and describe, list and deregister of registered consumers."""

from typing import Annotated

from msgspec import field

from api.aws.kinesis.call_helpers import (
    arn_of,
    charge_control_call,
    charged_stream,
    process_state,
    stream_of,
)
from api.aws.kinesis.default_throughput import CONSUMERS_MAX, CONSUMERS_MAX_AT_AMAZON
from api.aws.kinesis.errors import (
    INVALID_ARGUMENT,
    LIMIT_EXCEEDED,
    RESOURCE_IN_USE,
    invalid,
    refuse,
)
from api.aws.kinesis.pagination import list_token, next_token
from api.aws.kinesis.resources.consumer_views import consumer_named, consumer_out, no_such_consumer
from api.aws.kinesis.resources.tags import with_tags
from api.aws.kinesis.shapes import (
    Consumer,
    ConsumerArnIn,
    ConsumerNameIn,
    NextTokenIn,
    PageIn,
    SecondsIn,
    StreamArnIn,
    StreamIdIn,
    TagsIn,
)
from api.aws.kinesis.timestamps import moment_ms, seconds
from api.aws.protocol.constraints import REQUIRED
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain.access.permissions import Action
from storage.domain.streams.consumers import RegisteredConsumer
from storage.domain.streams.stream import Stream

operations = Operations()

_LISTED_MAX = 100


class RegisterStreamConsumer(Input):
    """A consumer to register."""

    stream_arn: Annotated[StreamArnIn, REQUIRED] = field(name="StreamARN", default=None)
    consumer_name: Annotated[ConsumerNameIn, REQUIRED] = None
    stream_id: StreamIdIn = None
    tags: TagsIn = None


class RegisterStreamConsumerResult(OperationOutput):
    """The consumer."""

    consumer: Consumer


class OneConsumer(Input):
    """A consumer, by its ARN, or by its name and its stream's ARN."""

    stream_arn: StreamArnIn = field(name="StreamARN", default=None)
    consumer_name: ConsumerNameIn = None
    consumer_arn: ConsumerArnIn = field(name="ConsumerARN", default=None)
    stream_id: StreamIdIn = None


class DescribeStreamConsumer(OneConsumer):
    """The consumer to describe."""


class DeregisterStreamConsumer(OneConsumer):
    """The consumer to deregister."""


class ConsumerDescription(Consumer):
    """A consumer, with its stream."""

    stream_arn: str = field(name="StreamARN")


class DescribeStreamConsumerResult(OperationOutput):
    """The consumer."""

    consumer_description: ConsumerDescription


class ListStreamConsumers(Input):
    """A page of a stream's consumers."""

    stream_arn: Annotated[StreamArnIn, REQUIRED] = field(name="StreamARN", default=None)
    next_token: NextTokenIn = None
    max_results: PageIn = None
    stream_creation_timestamp: SecondsIn = None
    stream_id: StreamIdIn = None


class ListStreamConsumersResult(OperationOutput):
    """Consumers by name."""

    consumers: list[Consumer]
    next_token: str | None = None


@operations.add("RegisterStreamConsumer", RegisterStreamConsumer, Action.STREAM_MANAGE)
async def register(call: AwsCall[RegisterStreamConsumer]) -> RegisterStreamConsumerResult:
    """Register a consumer, which is ACTIVE immediately."""
    request = call.request
    stream = await charged_stream(call, "RegisterStreamConsumer", 5)
    if stream.is_view:
        raise invalid(
            f"Stream {stream.name.name} is the stream view of a queue; read it with GetRecords."
        )
    most = CONSUMERS_MAX_AT_AMAZON if process_state(call).shard_limits.limited else CONSUMERS_MAX
    tags = with_tags({}, request.tags or {})
    name = str(request.consumer_name)
    made = await call.storage.registered_consumers.register(stream, name, tags, most)
    words = f"under stream {stream.name.name}"
    if made == "exists":
        refuse(RESOURCE_IN_USE, f"Consumer {name} {words} already exists.")
    if isinstance(made, str):
        refuse(LIMIT_EXCEEDED, f"The limit of {most} consumers {words} is reached.")
    return RegisterStreamConsumerResult(consumer_out(made, await arn_of(call, stream)))


@operations.add("DescribeStreamConsumer", DescribeStreamConsumer, Action.STREAM_LIST)
async def describe(call: AwsCall[DescribeStreamConsumer]) -> DescribeStreamConsumerResult:
    """Describe a consumer."""
    stream, consumer = await _named(call)
    await charge_control_call(call, "DescribeStreamConsumer", 20, stream)
    arn = await arn_of(call, stream)
    view = consumer_out(consumer, arn)
    description = ConsumerDescription(
        view.consumer_name,
        view.consumer_arn,
        view.consumer_status,
        view.consumer_creation_timestamp,
        arn,
    )
    return DescribeStreamConsumerResult(description)


@operations.add("DeregisterStreamConsumer", DeregisterStreamConsumer, Action.STREAM_MANAGE)
async def deregister(call: AwsCall[DeregisterStreamConsumer]) -> None:
    """Deregister a consumer, and end its subscriptions in this process."""
    stream, consumer = await _named(call)
    await charge_control_call(call, "DeregisterStreamConsumer", 5, stream)
    if not await call.storage.registered_consumers.deregister(stream, consumer.name):
        raise no_such_consumer(consumer.name)
    process_state(call).subscriptions.end_all(stream.stream_id, consumer.name)


async def _named(
    call: AwsCall[DescribeStreamConsumer] | AwsCall[DeregisterStreamConsumer],
) -> tuple[Stream, RegisteredConsumer]:
    request = call.request
    if request.consumer_arn is not None:
        stream, consumer = await consumer_named(call, request.consumer_arn)
        if request.consumer_name not in (None, consumer.name):
            raise invalid("ConsumerName and ConsumerARN refer to different consumers.")
        if request.stream_arn not in (None, await arn_of(call, stream)):
            raise invalid("StreamARN and ConsumerARN refer to different streams.")
        return stream, consumer
    if request.stream_arn is None or request.consumer_name is None:
        raise invalid("Either ConsumerARN, or both StreamARN and ConsumerName, must be provided.")
    stream = await stream_of(call, None, request.stream_arn)
    consumer_by_name = await call.storage.registered_consumers.find(stream, request.consumer_name)
    if consumer_by_name is None:
        raise no_such_consumer(request.consumer_name)
    return stream, consumer_by_name


@operations.add("ListStreamConsumers", ListStreamConsumers, Action.STREAM_LIST)
async def list_consumers(call: AwsCall[ListStreamConsumers]) -> ListStreamConsumersResult:
    """List a stream's consumers by name."""
    request = call.request
    stream = await charged_stream(call, "ListStreamConsumers", 5, by_stream=True)
    created = request.stream_creation_timestamp
    if created is not None and moment_ms(created) // 1_000 != stream.created_at_ms // 1_000:
        refuse(
            INVALID_ARGUMENT,
            f"No stream with this name was created at {seconds(moment_ms(created))}.",
        )
    after = ""
    if request.next_token is not None:
        token = await list_token(call, request.next_token, "consumers")
        if token.stream_id != stream.stream_id:
            raise invalid("Invalid NextToken.")
        after = token.after
    limit = min(request.max_results or _LISTED_MAX, _LISTED_MAX)
    consumers = await call.storage.registered_consumers.page(stream, after, limit + 1)
    arn, page = await arn_of(call, stream), consumers[:limit]
    page_token = None
    if len(consumers) > limit:
        page_token = await next_token(call, "consumers", page[-1].name, stream)
    return ListStreamConsumersResult([consumer_out(one, arn) for one in page], page_token)
