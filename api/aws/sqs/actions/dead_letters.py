"""ListDeadLetterSourceQueues."""

from collections.abc import Awaitable
from typing import Annotated

from msgspec import field

from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput, named
from api.aws.sqs.call_helpers import queue_at, url_of
from api.aws.sqs.pagination import next_token, page_of, visible_names
from storage.domain.access.permissions import Action
from storage.domain.queues.queue import Queue

operations = Operations()


class ListDeadLetterSourceQueues(Input):
    """A dead-letter queue, and the page size of the list of its sources."""

    queue_url: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class ListDeadLetterSourceQueuesResult(OperationOutput):
    """A page of queues; the member's name is in lower case, and it is always present."""

    queue_urls: Annotated[list[str], named("QueueUrl")] = field(name="queueUrls")
    next_token: str | None = None


@operations.add("ListDeadLetterSourceQueues", ListDeadLetterSourceQueues, Action.QUEUE_LIST)
async def list_dead_letter_source_queues(
    call: AwsCall[ListDeadLetterSourceQueues],
) -> ListDeadLetterSourceQueuesResult:
    """List the queues whose RedrivePolicy names this one."""
    request = call.request
    queue = await queue_at(call, request.queue_url)
    limit, after = page_of(request.max_results, request.next_token)
    catalog = call.storage.catalog

    def read_page(after: str, size: int) -> Awaitable[list[Queue]]:
        return catalog.dead_letter_sources(queue.name, after=after, limit=size)

    names = await visible_names(call, read_page, after, limit + 1)
    urls = [await url_of(call, name) for name in names[:limit]]
    return ListDeadLetterSourceQueuesResult(urls, next_token(names, request.max_results))
