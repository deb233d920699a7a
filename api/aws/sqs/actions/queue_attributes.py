"""GetQueueAttributes and SetQueueAttributes."""

from typing import Annotated

from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput, named
from api.aws.sqs.call_helpers import arns_of, queue_at
from api.aws.sqs.errors import missing, required
from api.aws.sqs.queues.attributes import POLICY, apply_attributes
from api.aws.sqs.queues.policies import check_honoured
from api.aws.sqs.queues.queue_attributes import check_names, selected_attributes, wants_counts
from api.aws.sqs.queues.redrive_target import check_redrive_target
from api.aws.sqs.shapes import AttributeMap, Names
from storage.domain.access.permissions import Action
from storage.domain.queues.queue import QueueType

operations = Operations()


class GetQueueAttributes(Input):
    """The attributes to return; none unless they are named."""

    queue_url: str | None = None
    attribute_names: Annotated[Names, named("AttributeName")] = None


class GetQueueAttributesResult(OperationOutput):
    """The requested attributes that are set."""

    attributes: AttributeMap = None


@operations.add("GetQueueAttributes", GetQueueAttributes, Action.QUEUE_LIST)
async def get_queue_attributes(call: AwsCall[GetQueueAttributes]) -> GetQueueAttributesResult:
    """Return a queue's configuration and message counts."""
    queue = await queue_at(call, call.request.queue_url)
    names = call.request.attribute_names or []
    check_names(names)
    stats = await call.storage.queues.stats(queue.name) if wants_counts(names) else None
    attributes = selected_attributes(queue, stats, names, await arns_of(call))
    return GetQueueAttributesResult(attributes or None)


class SetQueueAttributes(Input):
    """The attributes to change."""

    queue_url: str | None = None
    attributes: AttributeMap = None


@operations.add("SetQueueAttributes", SetQueueAttributes, Action.QUEUE_MANAGE)
async def set_queue_attributes(call: AwsCall[SetQueueAttributes]) -> None:
    """Change attributes of a queue; the others keep their values.

    The delay of a FIFO queue applies also to messages that it contains, as at Amazon.
    """
    request = call.request
    required(request.queue_url, "QueueUrl")
    attributes = request.attributes
    if attributes is None:
        raise missing("Attributes")
    queue = await queue_at(call, request.queue_url)
    arns = await arns_of(call)
    new_spec = apply_attributes(queue.spec, attributes, arns)
    await check_honoured(call, attributes.get(POLICY))
    await check_redrive_target(call, queue.name, new_spec, attributes)
    changed = await call.storage.catalog.change_queue(
        queue.name, lambda spec: apply_attributes(spec, attributes, arns)
    )
    before_ms = queue.spec.delay_ms
    if changed.spec.type is QueueType.FIFO and changed.spec.delay_ms != before_ms:
        await call.storage.inspector.redelay(queue.name, before_ms)
