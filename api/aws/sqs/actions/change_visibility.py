"""ChangeMessageVisibility and ChangeMessageVisibilityBatch.

The new timeout counts from now, and does not apply to the next delivery. 0 makes the message ready immediately: no
failure is counted, as SQS counts receives only. In all, a delivery lasts 12 hours at most.
"""

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall, Operations
from api.aws.sqs.call_helpers import VISIBILITY_SECONDS_MAX, handle_in, queue_at
from api.aws.sqs.errors import bad_handle, invalid_value, missing
from api.aws.sqs.messages.batches import failed, named_entries, results_of
from api.aws.sqs.shapes import (
    ChangeMessageVisibility,
    ChangeMessageVisibilityBatch,
    ChangeMessageVisibilityBatchResult,
)
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ErrorCode
from storage.domain.queues.message import SettleAction, Settled, Settlement

operations = Operations()

_TOO_LONG = f"Total VisibilityTimeout for the message is beyond the limit [{VISIBILITY_SECONDS_MAX} seconds]"
_ENTRY = "ChangeMessageVisibilityBatchRequestEntry"


@operations.add("ChangeMessageVisibility", ChangeMessageVisibility, Action.QUEUE_RECEIVE)
async def change_message_visibility(call: AwsCall[ChangeMessageVisibility]) -> None:
    """Set the remaining visibility timeout of a delivery, counted from now."""
    request = call.request
    handle = handle_in(request)
    if request.visibility_timeout is None:
        raise missing("VisibilityTimeout")
    queue = await queue_at(call, request.queue_url)
    change = _settlement(handle, request.visibility_timeout)
    [settled] = await call.storage.queues.settle(queue.name, [change], any_delivery=True)
    if (refused := _refusal(settled, change)) is not None:
        raise refused


@operations.add("ChangeMessageVisibilityBatch", ChangeMessageVisibilityBatch, Action.QUEUE_RECEIVE)
async def change_message_visibility_batch(
    call: AwsCall[ChangeMessageVisibilityBatch],
) -> ChangeMessageVisibilityBatchResult:
    """Set the visibility timeout of up to ten deliveries; each has its own result."""
    queue = await queue_at(call, call.request.queue_url)
    entries = named_entries(call.request.entries, _ENTRY)
    changes: dict[str, Settlement] = {}
    refused = []
    for number, (name, entry) in enumerate(entries, 1):
        if not entry.receipt_handle:
            raise missing(f"{_ENTRY}.{number}.ReceiptHandle")
        try:
            if entry.visibility_timeout is None:
                raise missing(f"{_ENTRY}.{number}.VisibilityTimeout")
            changes[name] = _settlement(entry.receipt_handle, entry.visibility_timeout)
        except AwsError as error:
            refused.append(failed(name, error))
    settled = []
    if changes:
        settled = await call.storage.queues.settle(
            queue.name, list(changes.values()), any_delivery=True
        )
    pairs = zip(changes.items(), settled, strict=True)
    successful, unchanged = results_of(
        {name: _refusal(verdict, change) for (name, change), verdict in pairs}
    )
    return ChangeMessageVisibilityBatchResult(successful or None, [*refused, *unchanged] or None)


def _settlement(handle: str, seconds: int) -> Settlement:
    """Return the change as a settlement. Raises AwsError."""
    if not 0 <= seconds <= VISIBILITY_SECONDS_MAX:
        reason = f"Must be >= 0 and <= {VISIBILITY_SECONDS_MAX}, if provided."
        raise invalid_value("VisibilityTimeout", seconds, reason)
    timeout_ms = seconds * limits.SECOND_MS
    return Settlement(handle, SettleAction.EXTEND, visibility_timeout_ms=timeout_ms)


def _refusal(settled: Settled, change: Settlement) -> AwsError | None:
    """Return the error if a delivery's timeout did not change; None if it did."""
    handle = change.receipt_handle
    match settled.error:
        case None:
            return None
        case ErrorCode.MESSAGE_NOT_FOUND:
            reason = "Message does not exist or is not available for visibility timeout change."
            return invalid_value("ReceiptHandle", handle, reason)
        case ErrorCode.RECEIPT_HANDLE_EXPIRED:
            return invalid_value("ReceiptHandle", handle, "The receipt handle has expired.")
        case ErrorCode.VALIDATION_FAILED:
            seconds = change.visibility_timeout_ms // limits.SECOND_MS
            return invalid_value("VisibilityTimeout", seconds, _TOO_LONG)
        case _:
            return bad_handle(handle)
