"""Helpers of the operations: the queue of a call, and queue ARNs and URLs."""

from typing import TypeVar

import msgspec

from api.aws.protocol.service import AwsCall
from api.aws.sqs.errors import no_such_queue, required
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.queues.urls import account_of_url, queue_of_url, queue_url
from api.aws.sqs.shapes import ChangeMessageVisibility, DeleteMessage
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue

In = TypeVar("In", bound=msgspec.Struct)
VISIBILITY_SECONDS_MAX = 43_200


def queue_name(call: AwsCall[In], url: str | None) -> QueueName:
    """Return the queue that a URL names, after authorisation. Raises AwsError, Forbidden."""
    address = required(url, "QueueUrl")
    name = queue_of_url(address, call.principal.namespace)
    if call.account and account_of_url(address) not in ("", call.account):
        raise no_such_queue()
    call.authorise(str(name))
    return name


def handle_in(request: DeleteMessage | ChangeMessageVisibility) -> str:
    """Return the receipt handle of a call about one delivery.

    Raises AwsError if it, or the queue, is missing.
    """
    required(request.queue_url, "QueueUrl")
    return required(request.receipt_handle, "ReceiptHandle")


async def queue_at(call: AwsCall[In], url: str | None) -> Queue:
    """Return the definition of the queue that a URL names, after authorisation.

    Raises AwsError, Forbidden, QueueNotFound.
    """
    name = queue_name(call, url)
    catalog = call.storage.catalog
    return catalog.cached_queue(name) or await catalog.queue(name)


async def arns_of(call: AwsCall[In]) -> Arns:
    """Return the ARNs of the caller's queues."""
    return Arns(call.region, await call.account_id(), call.principal.namespace)


async def url_of(call: AwsCall[In], name: str) -> str:
    """Return a queue's URL, at the address that the caller used."""
    return queue_url(call.address, await call.account_id(), name)
