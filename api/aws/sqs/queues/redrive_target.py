"""Validation of the dead-letter target that an owner sets for a queue."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from api.aws.protocol.service import AwsCall
from api.aws.sqs.queues.redrive import REDRIVE_POLICY, check_target
from storage.domain.access.permissions import Action
from storage.domain.errors import QueueNotFound
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec

In = TypeVar("In", bound=msgspec.Struct)


async def check_redrive_target(
    call: AwsCall[In], source: QueueName, spec: QueueSpec, attributes: Mapping[str, str]
) -> None:
    """Raise AwsError unless the target in the attributes accepts the dead letters of `source`.

    Raises Forbidden unless the caller may send there. This is checked when the source's policy is set, and never again, as
    at Amazon.
    """
    text = attributes.get(REDRIVE_POLICY)
    if not text or spec.dead_letters is None or spec.dead_letters.queue is None:
        return
    name = QueueName(spec.dead_letters.queue, source.namespace)
    call.storage.authorizer.authorise(call.principal, Action.QUEUE_SEND, str(name))
    try:
        target = await call.storage.catalog.queue(name)
    except QueueNotFound:
        target = None
    check_target(source, spec, target, text)
