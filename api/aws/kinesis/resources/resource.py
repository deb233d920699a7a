"""Resources named by an ARN, streams and consumers, with their tags and policy."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import field
from msgspec.structs import replace

from api.aws.kinesis.arns import read_arn
from api.aws.kinesis.call_helpers import stream_of
from api.aws.kinesis.errors import RESOURCE_NOT_FOUND, refuse
from api.aws.kinesis.metadata import POLICY, annotated, annotation
from api.aws.kinesis.resources.consumer_views import consumer_named, no_such_consumer
from api.aws.kinesis.shapes import ResourceArnIn, StreamIdIn
from api.aws.protocol.service import AwsCall
from api.aws.protocol.shapes import Input
from storage.domain.streams.consumers import RegisteredConsumer
from storage.domain.streams.stream import Stream, StreamSpec


class ByResource(Input):
    """A stream or a consumer, by its ARN."""

    resource_arn: ResourceArnIn = field(name="ResourceARN", default=None)
    stream_id: StreamIdIn = None


In = TypeVar("In", bound=ByResource)


async def _resource(call: AwsCall[In]) -> Stream | tuple[Stream, RegisteredConsumer]:
    arn = call.request.resource_arn or ""
    named = read_arn(arn)
    if named is None:
        refuse(RESOURCE_NOT_FOUND, f"Resource {arn} not found.")
    if named.is_consumer:
        return await consumer_named(call, arn)
    return await stream_of(call, None, arn)


async def tags_of(call: AwsCall[In]) -> dict[str, str]:
    """Return the resource's tags."""
    match await _resource(call):
        case Stream(spec=spec):
            return spec.tags
        case (_, consumer):
            return consumer.tags


async def policy_of(call: AwsCall[In]) -> str | None:
    """Return the resource's policy."""
    match await _resource(call):
        case Stream(spec=spec):
            return annotation(spec, POLICY)
        case (_, consumer):
            return consumer.policy


async def change_tags(
    call: AwsCall[In], change: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Replace the resource's tags."""
    await _change(
        call,
        lambda spec: replace(spec, tags=change(spec.tags)),
        lambda consumer: replace(consumer, tags=change(consumer.tags)),
    )


async def change_policy(call: AwsCall[In], text: str | None) -> None:
    """Replace the resource's policy."""
    await _change(
        call,
        lambda spec: annotated(spec, POLICY, text),
        lambda consumer: replace(consumer, policy=text),
    )


async def _change(
    call: AwsCall[In],
    of_stream: Callable[[StreamSpec], StreamSpec],
    of_consumer: Callable[[RegisteredConsumer], RegisteredConsumer],
) -> None:
    match await _resource(call):
        case Stream(name=name):
            await call.storage.catalog.change_stream(name, of_stream)
        case (stream, consumer):
            changed = await call.storage.registered_consumers.change(
                stream, consumer.name, of_consumer
            )
            if changed is None:
                raise no_such_consumer(consumer.name)
