"""SendMessage and SendMessageBatch."""

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall, Operations
from api.aws.sqs.call_helpers import queue_at
from api.aws.sqs.errors import BATCH_REQUEST_TOO_LONG, refuse, required
from api.aws.sqs.messages.batches import failed, named_entries
from api.aws.sqs.messages.message import (
    Digests,
    check_batch_ids,
    digests_of,
    new_message,
    sequence_number,
)
from api.aws.sqs.replies import is_reply_address, send_reply
from api.aws.sqs.shapes import (
    BatchResultErrorEntry,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
    SendMessageEntry,
    SendMessageResult,
)
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.queues.message import NewMessage, SentMessage
from storage.domain.queues.queue import Queue, QueueType
from storage.domain.trace_context import context_of

operations = Operations()

_BATCH_BYTES_MAX = (
    limits.MESSAGE_BYTES_MAX
)  # of all entries together, whatever the queue's own limit
_ENTRY = "SendMessageBatchRequestEntry"


@operations.add("SendMessage", SendMessage, Action.QUEUE_SEND)
async def send_message(call: AwsCall[SendMessage]) -> SendMessageResult:
    """Add a message to a queue, or reply to a request."""
    request = call.request
    url = required(request.queue_url, "QueueUrl")
    required(request.message_body, "MessageBody")
    if is_reply_address(url):
        return await send_reply(call, url)
    queue = await queue_at(call, url)
    message = new_message(request, queue, call.headers, call.trace)
    [sent] = await _send(call, queue, [message])
    digests = digests_of(message, request)
    return SendMessageResult(
        sent.message_id,
        digests.body,
        digests.attributes,
        digests.system,
        sequence_number(sent, queue),
    )


@operations.add("SendMessageBatch", SendMessageBatch, Action.QUEUE_SEND)
async def send_message_batch(call: AwsCall[SendMessageBatch]) -> SendMessageBatchResult:
    """Add up to ten messages; each has its own result, and the valid ones are added together."""
    request = call.request
    queue = await queue_at(call, request.queue_url)
    entries = named_entries(request.entries, _ENTRY)
    _check_size(entries)
    if queue.spec.type is QueueType.FIFO:
        check_batch_ids([entry for _, entry in entries], queue)
    messages: dict[str, tuple[NewMessage, SendMessageEntry]] = {}
    refused: list[BatchResultErrorEntry] = []
    for name, entry in entries:
        try:
            messages[name] = new_message(entry, queue, call.headers, call.trace), entry
        except AwsError as error:
            refused.append(failed(name, error))
    sent = await _send(call, queue, [one for one, _ in messages.values()]) if messages else []
    successful = [
        _result(name, digests_of(*messages[name]), where, queue)
        for name, where in zip(messages, sent, strict=True)
    ]
    return SendMessageBatchResult(successful or None, refused or None)


async def _send(
    call: AwsCall[SendMessage] | AwsCall[SendMessageBatch], queue: Queue, messages: list[NewMessage]
) -> list[SentMessage]:
    if call.trace is not None:
        call.trace.add_links(
            [context_of(one.headers, one.system) for one in messages], len(messages)
        )
    call.metrics.received(len(messages), sum([len(message.body) for message in messages]))
    sent = await call.storage.queues.send(queue.name, messages)
    call.metrics.confirmed(len(sent), sum([message.duplicate for message in sent]))
    return sent


def _result(
    name: str, digests: Digests, sent: SentMessage, queue: Queue
) -> SendMessageBatchResultEntry:
    return SendMessageBatchResultEntry(
        message_id=sent.message_id,
        md5_of_message_body=digests.body,
        md5_of_message_attributes=digests.attributes,
        md5_of_message_system_attributes=digests.system,
        sequence_number=sequence_number(sent, queue),
        id=name,
    )


def _check_size(entries: list[tuple[str, SendMessageEntry]]) -> None:
    size_bytes = sum([_size_bytes(entry) for _, entry in entries])
    if size_bytes > _BATCH_BYTES_MAX:
        refuse(
            BATCH_REQUEST_TOO_LONG,
            f"Batch requests cannot be longer than {_BATCH_BYTES_MAX} bytes. "
            f"You have sent {size_bytes} bytes.",
        )


def _size_bytes(entry: SendMessageEntry) -> int:
    """Return the size of the body and the attributes: names, types and values."""
    attributes = sum(
        [
            len(name.encode())
            + len((value.data_type or "").encode())
            + len((value.string_value or "").encode())
            + len(value.binary_value or b"")
            for name, value in (entry.message_attributes or {}).items()
        ]
    )
    return len((entry.message_body or "").encode()) + attributes
