"""DeleteMessage and DeleteMessageBatch: acknowledgements.

On a standard queue any handle ever given for a message deletes it, also a late one; on a FIFO queue a handle is valid
for its delivery only. Deleting a message that no longer exists succeeds.
"""

from collections.abc import Sequence

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall, Operations
from api.aws.sqs.call_helpers import handle_in, queue_at
from api.aws.sqs.errors import (
    bad_handle,
    invalid_value,
    missing,
)
from api.aws.sqs.messages.batches import named_entries, results_of
from api.aws.sqs.shapes import (
    DeleteMessage,
    DeleteMessageBatch,
    DeleteMessageBatchResult,
)
from storage.domain.access.permissions import Action
from storage.domain.errors import ErrorCode
from storage.domain.queues.message import SETTLED, SettleAction, Settled, Settlement
from storage.domain.queues.queue import Queue

operations = Operations()

_ENTRY = "DeleteMessageBatchRequestEntry"


@operations.add("DeleteMessage", DeleteMessage, Action.QUEUE_RECEIVE)
async def delete_message(call: AwsCall[DeleteMessage]) -> None:
    """Delete a message, acknowledging its delivery."""
    request = call.request
    handle = handle_in(request)
    queue = await queue_at(call, request.queue_url)
    [settled] = await _delete(call, queue, [handle])
    if (refused := refusal(settled, handle)) is not None:
        raise refused


@operations.add("DeleteMessageBatch", DeleteMessageBatch, Action.QUEUE_RECEIVE)
async def delete_message_batch(call: AwsCall[DeleteMessageBatch]) -> DeleteMessageBatchResult:
    """Delete up to ten messages; each has its own result."""
    queue = await queue_at(call, call.request.queue_url)
    entries = named_entries(call.request.entries, _ENTRY)
    handles: dict[str, str] = {}
    for number, (name, entry) in enumerate(entries, 1):
        if not entry.receipt_handle:
            raise missing(f"{_ENTRY}.{number}.ReceiptHandle")
        handles[name] = entry.receipt_handle
    settled = await _delete(call, queue, list(handles.values()))
    pairs = zip(handles.items(), settled, strict=True)
    successful, refused = results_of(
        {
            name: None if verdict is SETTLED else refusal(verdict, handle)
            for (name, handle), verdict in pairs
        }
    )
    return DeleteMessageBatchResult(successful or None, refused or None)


async def _delete(
    call: AwsCall[DeleteMessage] | AwsCall[DeleteMessageBatch], queue: Queue, handles: Sequence[str]
) -> list[Settled]:
    settlements = [Settlement(handle, SettleAction.ACK) for handle in handles]
    settled = await call.storage.queues.settle(queue.name, settlements, any_delivery=True)
    done = sum([verdict.error is None for verdict in settled])
    call.metrics.settled(SettleAction.ACK, done)
    return settled


def refusal(settled: Settled, handle: str) -> AwsError | None:
    """Return the error if a delivery was not deleted; None if it was, or no longer exists."""
    match settled.error:
        case None | ErrorCode.MESSAGE_NOT_FOUND:
            return None
        case ErrorCode.RECEIPT_HANDLE_EXPIRED:
            return invalid_value("ReceiptHandle", handle, "The receipt handle has expired.")
        case _:
            return bad_handle(handle)
