"""AddTagsToStream and related for streams, TagResource and related also for consumers."""

from collections.abc import Callable
from typing import Annotated

from msgspec.structs import replace

from api.aws.kinesis.call_helpers import charged_stream
from api.aws.kinesis.resources.resource import ByResource, change_tags, tags_of
from api.aws.kinesis.resources.tags import tag_list, with_tags, without_tags
from api.aws.kinesis.shapes import StreamIdentity, Tag, TagKeysIn, TagsIn
from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import OperationOutput
from storage.domain.access.permissions import Action

operations = Operations()

_LISTED_MAX = 50


class AddTagsToStream(StreamIdentity):
    """Tags to add or to replace."""

    tags: Annotated[TagsIn, REQUIRED] = None


class RemoveTagsFromStream(StreamIdentity):
    """Tags to remove."""

    tag_keys: TagKeysIn = None


class ListTagsForStream(StreamIdentity):
    """A page of a stream's tags."""

    exclusive_start_tag_key: Annotated[str | None, bounds(1, 128)] = None
    limit: Annotated[int | None, bounds(1, 50)] = None


class ListTagsForStreamResult(OperationOutput):
    """Tags by their keys."""

    tags: list[Tag]
    has_more_tags: bool


class TagResource(ByResource):
    """Tags to add."""

    tags: Annotated[TagsIn, REQUIRED] = None


class UntagResource(ByResource):
    """Tags to remove."""

    tag_keys: TagKeysIn = None


class ListTagsForResource(ByResource):
    """A stream or a consumer."""


class ListTagsForResourceResult(OperationOutput):
    """All its tags."""

    tags: list[Tag]


@operations.add("AddTagsToStream", AddTagsToStream, Action.STREAM_MANAGE)
async def add_tags(call: AwsCall[AddTagsToStream]) -> None:
    """Add tags to a stream."""
    await _change_stream(call, lambda before: with_tags(before, call.request.tags or {}))


@operations.add("RemoveTagsFromStream", RemoveTagsFromStream, Action.STREAM_MANAGE)
async def remove_tags(call: AwsCall[RemoveTagsFromStream]) -> None:
    """Remove tags from a stream; missing ones are ignored."""
    await _change_stream(call, lambda before: without_tags(before, call.request.tag_keys or []))


async def _change_stream(
    call: AwsCall[AddTagsToStream] | AwsCall[RemoveTagsFromStream],
    change: Callable[[dict[str, str]], dict[str, str]],
) -> None:
    stream = await charged_stream(call, "TagStream", 5)
    await call.storage.catalog.change_stream(
        stream.name, lambda spec: replace(spec, tags=change(spec.tags))
    )


@operations.add("ListTagsForStream", ListTagsForStream, Action.STREAM_LIST)
async def list_tags(call: AwsCall[ListTagsForStream]) -> ListTagsForStreamResult:
    """List a stream's tags."""
    request = call.request
    stream = await charged_stream(call, "ListTagsForStream", 5)
    after, limit = request.exclusive_start_tag_key or "", request.limit or _LISTED_MAX
    behind = [tag for tag in tag_list(stream.spec.tags) if tag.key > after]
    return ListTagsForStreamResult(behind[:limit], len(behind) > limit)


@operations.add("TagResource", TagResource, Action.STREAM_MANAGE)
async def tag_resource(call: AwsCall[TagResource]) -> None:
    """Add tags to a stream or a consumer."""
    await change_tags(call, lambda before: with_tags(before, call.request.tags or {}))


@operations.add("UntagResource", UntagResource, Action.STREAM_MANAGE)
async def untag_resource(call: AwsCall[UntagResource]) -> None:
    """Remove tags from a stream or a consumer."""
    await change_tags(call, lambda before: without_tags(before, call.request.tag_keys or []))


@operations.add("ListTagsForResource", ListTagsForResource, Action.STREAM_LIST)
async def list_resource_tags(call: AwsCall[ListTagsForResource]) -> ListTagsForResourceResult:
    """List all tags of a stream or a consumer."""
    return ListTagsForResourceResult(tag_list(await tags_of(call)))
