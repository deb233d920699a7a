"""TagQueue, UntagQueue and ListQueueTags."""

from typing import Annotated

from msgspec.structs import replace

from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput, named
from api.aws.sqs.call_helpers import queue_at, queue_name
from api.aws.sqs.errors import missing
from api.aws.sqs.queues.tags import with_tags
from api.aws.sqs.shapes import Names, TagMap
from storage.domain.access.permissions import Action
from storage.domain.queues.queue import QueueSpec

operations = Operations()


class TagQueue(Input):
    """Tags to add or to replace."""

    queue_url: str | None = None
    tags: TagMap = None


class UntagQueue(Input):
    """Tags to remove."""

    queue_url: str | None = None
    tag_keys: Annotated[Names, named("TagKey")] = None


class ListQueueTags(Input):
    """A queue."""

    queue_url: str | None = None


class ListQueueTagsResult(OperationOutput):
    """The tags of a queue; the member is missing when there are none."""

    tags: TagMap = None


@operations.add("TagQueue", TagQueue, Action.QUEUE_MANAGE)
async def tag_queue(call: AwsCall[TagQueue]) -> None:
    """Add tags to a queue."""
    name = queue_name(call, call.request.queue_url)
    tags = call.request.tags
    if not tags:
        raise missing("Tags")

    def add(spec: QueueSpec) -> QueueSpec:
        return replace(spec, tags=with_tags(name.name, spec.tags, tags))

    await call.storage.catalog.change_queue(name, add)


@operations.add("UntagQueue", UntagQueue, Action.QUEUE_MANAGE)
async def untag_queue(call: AwsCall[UntagQueue]) -> None:
    """Remove tags from a queue; missing ones are ignored."""
    name = queue_name(call, call.request.queue_url)
    keys = frozenset(call.request.tag_keys or ())
    if not keys:
        raise missing("TagKeys")

    def remove(spec: QueueSpec) -> QueueSpec:
        return replace(
            spec, tags={key: value for key, value in spec.tags.items() if key not in keys}
        )

    await call.storage.catalog.change_queue(name, remove)


@operations.add("ListQueueTags", ListQueueTags, Action.QUEUE_LIST)
async def list_queue_tags(call: AwsCall[ListQueueTags]) -> ListQueueTagsResult:
    """Return a queue's tags."""
    queue = await queue_at(call, call.request.queue_url)
    return ListQueueTagsResult(queue.spec.tags or None)
