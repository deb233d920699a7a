"""Registered consumers, described and named in the Kinesis format."""

from typing import Any

from api.aws.kinesis.arns import consumer_arn, read_arn
from api.aws.kinesis.call_helpers import check_account, stream_named
from api.aws.kinesis.errors import RESOURCE_NOT_FOUND, invalid
from api.aws.kinesis.shapes import Consumer
from api.aws.kinesis.timestamps import seconds
from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall
from storage.domain.streams.consumers import RegisteredConsumer
from storage.domain.streams.stream import Stream

ACTIVE = "ACTIVE"


def no_such_consumer(name: str) -> AwsError:
    """Return the error for a consumer that does not exist, or no longer exists."""
    return AwsError(RESOURCE_NOT_FOUND, f"Consumer {name} not found.")


def consumer_out(consumer: RegisteredConsumer, stream: str) -> Consumer:
    """Describe a consumer of the stream with that ARN."""
    return Consumer(
        consumer.name,
        consumer_arn(stream, consumer.name, consumer.registered_at_ms),
        ACTIVE,
        seconds(consumer.registered_at_ms),
    )


async def consumer_named(call: AwsCall[Any], arn: str) -> tuple[Stream, RegisteredConsumer]:
    """Return the consumer that an ARN names.

    The ARN names one registration: a later one of the same name is another consumer. Raises AwsError: InvalidArgument,
    ResourceNotFound.
    """
    named = read_arn(arn)
    if named is None or named.consumer is None:
        raise invalid(f"{arn} is not the ARN of a consumer.")
    await check_account(call, named)
    stream = await stream_named(call, named.stream)
    consumer = await call.storage.registered_consumers.find(stream, named.consumer)
    if consumer is None or consumer.registered_at_ms // 1_000 != named.second:
        raise no_such_consumer(arn)
    return stream, consumer
