"""ReceiveMessage."""

from collections.abc import Sequence

from api.auth.consumers import consumer_of
from api.aws.protocol.service import AwsCall, Operations
from api.aws.sqs.call_helpers import VISIBILITY_SECONDS_MAX, arns_of, queue_at
from api.aws.sqs.errors import (
    INVALID_ATTRIBUTE_NAME,
    invalid,
    invalid_value,
    refuse,
    wrong_queue_type,
)
from api.aws.sqs.messages.message import ALL, received_message
from api.aws.sqs.messages.message_attributes import TRACE_HEADER
from api.aws.sqs.queues.queue_attributes import QUEUE_ATTRIBUTE_NAMES
from api.aws.sqs.shapes import ReceiveMessage, ReceiveMessageResult
from api.errors import ClientDisconnected
from api.observability.tracing import contexts_of
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.names import QueueName
from storage.domain.queues.consumer import ConsumerProtocol
from storage.domain.queues.message import ReceivedMessage
from storage.domain.queues.queue import Queue, QueueType

operations = Operations()

MESSAGES_MAX = 10
WAIT_SECONDS_MAX = 20
ATTEMPT_ID_CHARACTERS_MAX = 128
ATTRIBUTE_NAMES_MAX = 1_000  # each is matched against each message; Amazon documents no limit

_CHANGED = "Messages of this attempt were deleted or their visibility timeout was changed."

SYSTEM_ATTRIBUTE_NAMES = frozenset(
    {
        ALL,
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "SequenceNumber",
        "MessageDeduplicationId",
        "MessageGroupId",
        TRACE_HEADER,
        "DeadLetterQueueSourceArn",
    }
)


@operations.add("ReceiveMessage", ReceiveMessage, Action.QUEUE_RECEIVE)
async def receive_message(call: AwsCall[ReceiveMessage]) -> ReceiveMessageResult:
    """Receive messages; each is hidden until its visibility timeout passes.

    WaitTimeSeconds is the maximum wait for the first one, also if it is 0; without it the queue's own wait applies.
    """
    request = call.request
    queue = await queue_at(call, request.queue_url)
    _check(request, queue)
    system_names = _system_names(request)
    wait_seconds = request.wait_time_seconds
    wait_ms = (
        queue.spec.receive_wait_ms if wait_seconds is None else wait_seconds * limits.SECOND_MS
    )
    attempt_id = request.receive_request_attempt_id or ""
    try:
        messages = await call.storage.queues.receive(
            queue.name,
            messages_max=request.max_number_of_messages or 1,
            visibility_timeout_ms=_optional_ms(request.visibility_timeout),
            wait_ms=wait_ms,
            is_client_connected=call.is_client_connected,
            attempt_id=attempt_id,
            strict_attempt=True,
            consumer=consumer_of(call.principal, ConsumerProtocol.SQS, call.client, call.headers),
        )
    except ValidationFailed:  # everything else was checked above
        raise invalid_value("ReceiveRequestAttemptId", attempt_id, _CHANGED) from None
    if messages or wait_ms:
        await _release_if_disconnected(call, queue.name, messages)
    call.metrics.delivered(messages)
    if not messages:
        return ReceiveMessageResult()
    if call.trace is not None:
        call.trace.add_links(contexts_of(messages), len(messages))
    arns = await arns_of(call) if system_names else None
    attribute_names = request.message_attribute_names or ()
    deliveries = [
        received_message(one, queue, system_names, attribute_names, arns) for one in messages
    ]
    return ReceiveMessageResult(deliveries)


def _check(request: ReceiveMessage, queue: Queue) -> None:
    _check_range("MaxNumberOfMessages", request.max_number_of_messages, 1, MESSAGES_MAX)
    _check_range("WaitTimeSeconds", request.wait_time_seconds, 0, WAIT_SECONDS_MAX)
    _check_range("VisibilityTimeout", request.visibility_timeout, 0, VISIBILITY_SECONDS_MAX)
    if len(request.message_attribute_names or ()) > ATTRIBUTE_NAMES_MAX:
        raise invalid(f"A call can request at most {ATTRIBUTE_NAMES_MAX} message attributes.")
    attempt_id = request.receive_request_attempt_id
    if attempt_id is None:
        return
    if queue.spec.type is not QueueType.FIFO:
        raise wrong_queue_type("ReceiveRequestAttemptId", attempt_id[:ATTEMPT_ID_CHARACTERS_MAX])
    is_printable = attempt_id.isascii() and attempt_id.isprintable() and " " not in attempt_id
    if not is_printable or not 1 <= len(attempt_id) <= ATTEMPT_ID_CHARACTERS_MAX:
        raise invalid(
            "ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. "
            "1 to 128 in length."
        )


def _check_range(parameter: str, value: int | None, low: int, high: int) -> None:
    if value is None or low <= value <= high:
        return
    if low == 0:
        reason = f"Must be >= 0 and <= {high}, if provided."
    else:
        reason = f"Must be between {low} and {high}, if provided."
    raise invalid_value(parameter, value, reason)


def _system_names(request: ReceiveMessage) -> frozenset[str]:
    """Return the system attributes that either of the two members names. Raises AwsError."""
    names = request.message_system_attribute_names or ()
    old_names = request.attribute_names or ()
    for name in names:
        if name not in SYSTEM_ATTRIBUTE_NAMES:
            refuse(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:80]}.")
    for name in old_names:
        # The old member's type lists the attributes of queues, which have no effect here.
        if name not in SYSTEM_ATTRIBUTE_NAMES and name not in QUEUE_ATTRIBUTE_NAMES:
            refuse(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:80]}.")
    return SYSTEM_ATTRIBUTE_NAMES.intersection((*names, *old_names))


def _optional_ms(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * limits.SECOND_MS


async def _release_if_disconnected(
    call: AwsCall[ReceiveMessage], name: QueueName, messages: Sequence[ReceivedMessage]
) -> None:
    """Release the messages immediately if the client has disconnected.

    Raises ClientDisconnected.
    """
    if not call.is_client_connected():
        if messages:
            await call.storage.queues.release(name, messages)
        raise ClientDisconnected
