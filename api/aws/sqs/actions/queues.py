"""CreateQueue, DeleteQueue, PurgeQueue, GetQueueUrl and ListQueues.

A name is available again as soon as its queue is deleted: nothing of the old queue can reach the new one, so the 60
seconds that Amazon requires are not needed.
"""

import re
from collections.abc import Awaitable
from typing import cast

from msgspec import field

from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from api.aws.sqs.aws_limits_mode import NAME_REUSE_DELAY_MS, AwsLimits
from api.aws.sqs.call_helpers import arns_of, queue_name, url_of
from api.aws.sqs.errors import (
    INVALID_ATTRIBUTE_NAME,
    PURGE_QUEUE_IN_PROGRESS,
    QUEUE_DELETED_RECENTLY,
    QUEUE_NAME_EXISTS,
    invalid,
    no_such_queue,
    refuse,
    required,
)
from api.aws.sqs.pagination import next_token, page_of, visible_names
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.queues.attributes import FIFO_QUEUE, POLICY, apply_attributes, first_difference
from api.aws.sqs.queues.policies import check_honoured
from api.aws.sqs.queues.redrive_target import check_redrive_target
from api.aws.sqs.queues.tags import with_tags
from api.aws.sqs.queues.urls import queue_url
from api.aws.sqs.replies import is_reply_address, request_of
from api.aws.sqs.shapes import AttributeMap, QueueUrls, TagMap
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import (
    PreconditionFailed,
    PurgeInProgress,
    QueueNotFound,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue, QueueSpec, QueueType

operations = Operations()

IN_FLIGHT_MAX = 120_000  # beyond it OverLimit, or no messages from a FIFO queue, as at Amazon

FIFO_SUFFIX = ".fifo"
PURGE_SECONDS_MIN = 60

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")


class CreateQueue(Input):
    """A queue's name, attributes and tags."""

    queue_name: str | None = None
    attributes: AttributeMap = None
    tags: TagMap = field(name="tags", default=None)


class QueueUrlResult(OperationOutput):
    """The URL of a queue."""

    queue_url: str


@operations.add("CreateQueue", CreateQueue, Action.QUEUE_MANAGE)
async def create_queue(call: AwsCall[CreateQueue]) -> QueueUrlResult:
    """Create a queue, or return the existing one if each given attribute matches.

    The attributes are compared with the queue's current values.
    """
    request = call.request
    attributes = request.attributes or {}
    name = _new_name(required(request.queue_name, "QueueName"), attributes, call)
    call.authorise(str(name))
    arns = await arns_of(call)
    existing = await _existing(call, name)
    if existing is None:
        await _check_rested(call, name)
        existing = await _create(call, name, arns)
    if existing is not None:
        _check_same(existing, attributes, arns)
    return QueueUrlResult(queue_url(call.address, arns.account_id, name.name))


def _new_name(name: str, attributes: dict[str, str], call: AwsCall[CreateQueue]) -> QueueName:
    fifo = attributes.get(FIFO_QUEUE)
    if fifo is not None:
        if (
            fifo.lower() != "true"
        ):  # no other value is valid: standard queues do not have the attribute
            refuse(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {FIFO_QUEUE}.")
        if not _FIFO_NAME.fullmatch(name):
            raise invalid(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or "
                "underscores, must end with .fifo suffix and be 1 to 80 in length"
            )
    elif not _NAME.fullmatch(name):
        raise invalid(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        )
    return QueueName(name, call.principal.namespace)


async def _existing(call: AwsCall[CreateQueue], name: QueueName) -> Queue | None:
    try:
        return await call.storage.catalog.fresh_queue(name)
    except QueueNotFound:
        return None


async def _check_rested(call: AwsCall[CreateQueue], name: QueueName) -> None:
    """Raise AwsError for a name that AWS would not accept yet, if AWS limits are enforced."""
    aws_limits = cast(AwsLimits, call.process_state)
    if aws_limits.enforced and await call.storage.catalog.queue_deleted_within(
        name, NAME_REUSE_DELAY_MS
    ):
        refuse(
            QUEUE_DELETED_RECENTLY,
            "You must wait 60 seconds after deleting a queue before you can create another with the same "
            "name.",
        )


async def _create(call: AwsCall[CreateQueue], name: QueueName, arns: Arns) -> Queue | None:
    """Create the queue and return None; return the queue if it was created concurrently."""
    request = call.request
    tags = with_tags(name.name, {}, request.tags or {})
    fifo = name.name.endswith(FIFO_SUFFIX)
    attributes = request.attributes or {}
    spec = QueueSpec(
        type=QueueType.FIFO if fifo else QueueType.STANDARD,
        attempts_max=None,
        in_flight_max=IN_FLIGHT_MAX,
        tags=tags,
    )
    spec = apply_attributes(spec, attributes, arns)
    await check_honoured(call, attributes.get(POLICY))
    await check_redrive_target(call, name, spec, attributes)
    try:
        await call.storage.catalog.put_queue(name, spec, create_only=True)
    except PreconditionFailed:  # created concurrently
        return await call.storage.catalog.fresh_queue(name)
    return None


def _check_same(existing: Queue, attributes: dict[str, str], arns: Arns) -> None:
    """Raise AwsError if the existing queue differs from the request.

    Without FifoQueue a standard queue is requested; natively any name can be that of a FIFO queue.
    """
    different = first_difference(existing.spec, attributes, arns)
    if existing.spec.type is QueueType.FIFO and FIFO_QUEUE not in attributes:
        different = FIFO_QUEUE
    if different is not None:
        refuse(
            QUEUE_NAME_EXISTS,
            "A queue already exists with the same name and a different value for attribute "
            f"{different}",
        )


class QueueOnly(Input):
    """Input of an operation that names only a queue."""

    queue_url: str | None = None


@operations.add("DeleteQueue", QueueOnly, Action.QUEUE_MANAGE)
async def delete_queue(call: AwsCall[QueueOnly]) -> None:
    """Delete a queue with all its messages."""
    await call.storage.catalog.delete_queue(queue_name(call, call.request.queue_url))


@operations.add("PurgeQueue", QueueOnly, Action.QUEUE_PURGE)
async def purge_queue(call: AwsCall[QueueOnly]) -> None:
    """Delete every message of a queue: ready, delayed and in flight."""
    name = queue_name(call, call.request.queue_url)
    seconds = PURGE_SECONDS_MIN
    try:
        await call.storage.queues.purge(name, at_most_every_ms=seconds * limits.SECOND_MS)
    except PurgeInProgress:
        refuse(
            PURGE_QUEUE_IN_PROGRESS,
            f"Only one PurgeQueue operation on {name.name} is allowed every {seconds} seconds.",
        )


class GetQueueUrl(Input):
    """A queue's name. The caller's credentials determine its owner."""

    queue_name: str | None = None
    owner: str | None = field(name="QueueOwnerAWSAccountId", default=None)


@operations.add("GetQueueUrl", GetQueueUrl, Action.QUEUE_LIST)
async def get_queue_url(call: AwsCall[GetQueueUrl]) -> QueueUrlResult:
    """Return the URL of a queue, or of the address of a reply."""
    word = required(call.request.queue_name, "QueueName")
    if is_reply_address(word):
        call.authorise_list()
        await call.storage.requests.verify(request_of(word, call.principal.namespace))
        return QueueUrlResult(await url_of(call, word))
    try:
        name = QueueName(word, call.principal.namespace)
    except ValidationFailed:
        raise no_such_queue() from None
    call.authorise(str(name))
    if call.account and call.request.owner not in (None, call.account):
        raise no_such_queue()
    await call.storage.catalog.queue(name)
    return QueueUrlResult(await url_of(call, name.name))


class ListQueues(Input):
    """The prefix of the queues to list, and the page size."""

    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class ListQueuesResult(OperationOutput):
    """A page of queues. The token is set only if a page size was given, as at Amazon."""

    queue_urls: QueueUrls = None
    next_token: str | None = None


@operations.add("ListQueues", ListQueues, Action.QUEUE_LIST)
async def list_queues(call: AwsCall[ListQueues]) -> ListQueuesResult:
    """List queues by name."""
    request = call.request
    prefix = request.queue_name_prefix or ""
    call.authorise_list()
    limit, after = page_of(request.max_results, request.next_token)
    catalog, namespace = call.storage.catalog, call.principal.namespace

    def read_page(after: str, size: int) -> Awaitable[list[Queue]]:
        return catalog.list_queues(namespace, prefix=prefix, after=after, limit=size)

    names = await visible_names(call, read_page, after, limit + 1)
    urls = [await url_of(call, name) for name in names[:limit]]
    return ListQueuesResult(urls or None, next_token(names, request.max_results))
