"""Conversion between SQS messages and the engine's.

A body that SQS could not have accepted, because it is not UTF-8 or contains what XML cannot represent, was sent by
another protocol; it is returned in base64, without further indication, and its digest is that of the returned text.
"""

import base64
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from api.aws.protocol.codecs.xml import FORBIDDEN
from api.aws.sqs.errors import (
    INVALID_MESSAGE_CONTENTS,
    invalid,
    invalid_value,
    missing,
    no_deduplication,
    refuse,
    required,
    wrong_queue_type,
)
from api.aws.sqs.messages.digests import attributes_digest, body_digest, content_deduplication_id
from api.aws.sqs.messages.message_attributes import (
    TRACE_HEADER,
    TRACE_NAME,
    attribute_values,
    attributes_to_headers,
    chosen,
    representable_headers,
    system_attributes_to_headers,
    text_of,
    trace_to_headers,
)
from api.aws.sqs.messages.traces import from_traceparent
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.shapes import Message, MessageFields
from api.observability.tracing import TraceSpan, with_context
from storage.domain import limits
from storage.domain.log.record_batch import Headers
from storage.domain.queues.message import NewMessage, ReceivedMessage, SentMessage
from storage.domain.queues.queue import Queue, QueueType
from storage.domain.requests.token import REPLY_TO
from storage.domain.trace_context import context_of

DELAY_SECONDS_MAX = 900
FIRST_SEQUENCE_NUMBER = 10**19
ALL = "All"
REPLY_TO_NAME = "Millstream.ReplyTo"

# "alphanumeric characters and punctuation", 1 to 128
_ID = re.compile(r"[!-~]{1,128}")


class Digests(NamedTuple):
    """Digests of a sent message, for the response to its sender."""

    body: str
    attributes: str | None
    system: str | None


def check_batch_ids(entries: Iterable[MessageFields], queue: Queue) -> None:
    """Raise AwsError if any entry of a FIFO batch lacks its group or deduplication id.

    Then no entry of the batch is accepted.
    """
    for entry in entries:
        if not entry.message_group_id:
            raise invalid("The request must contain the parameter MessageGroupId.")
        if entry.message_deduplication_id is None and not queue.spec.deduplicate_by_content:
            raise no_deduplication()


def text_body(request: MessageFields) -> bytes:
    """Return the body of a message. Raises AwsError."""
    text = required(request.message_body, "MessageBody")
    if not text.isprintable() and FORBIDDEN.search(text):
        refuse(
            INVALID_MESSAGE_CONTENTS,
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | "
            "#xE000 to #xFFFD | #x10000 to #x10FFFF",
        )
    return text.encode()


def new_message(
    request: MessageFields,
    queue: Queue,
    request_headers: Mapping[bytes, bytes],
    trace: TraceSpan | None = None,
) -> NewMessage:
    """Build a message for this queue. Raises AwsError.

    It is in the trace of the sending request, unless it names another trace.
    """
    body = text_body(request)
    group, dedup_id, delay_seconds = (
        request.message_group_id,
        request.message_deduplication_id,
        request.delay_seconds,
    )
    if group is not None or dedup_id is not None or queue.spec.type is QueueType.FIFO:
        _check_ids(group, dedup_id, queue)
    if delay_seconds is not None:
        _check_delay(delay_seconds, queue)
        if queue.spec.type is QueueType.FIFO:  # 0 means the queue's own delay
            delay_seconds = None
    headers: Headers = ()
    system: Headers = ()
    if request.message_attributes:
        headers = attributes_to_headers(request.message_attributes)
    if request.message_system_attributes:
        system = system_attributes_to_headers(request.message_system_attributes)
    message = NewMessage(
        body,
        headers,
        "",
        group or "",
        dedup_id or "",
        None if delay_seconds is None else delay_seconds * limits.SECOND_MS,
        with_context(system or trace_to_headers(request_headers), headers, trace),
    )
    if message.size_bytes > queue.spec.message_bytes_max:
        raise invalid(
            "One or more parameters are invalid. Reason: Message must be shorter than "
            f"{queue.spec.message_bytes_max} bytes."
        )
    return message


def _check_ids(group: str | None, dedup_id: str | None, queue: Queue) -> None:
    fifo = queue.spec.type is QueueType.FIFO
    if fifo and not group:
        raise missing("MessageGroupId")
    if group is not None:
        _check_id("MessageGroupId", group)
    if dedup_id is not None:
        if not fifo:
            raise wrong_queue_type("MessageDeduplicationId", dedup_id)
        _check_id("MessageDeduplicationId", dedup_id)
    elif fifo and not queue.spec.deduplicate_by_content:
        raise no_deduplication()


def _check_id(parameter: str, value: str) -> None:
    if not _ID.fullmatch(value):
        reason = f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length."
        raise invalid_value(parameter, value[:256], reason)


def _check_delay(delay_seconds: int, queue: Queue) -> None:
    if not 0 <= delay_seconds <= DELAY_SECONDS_MAX:
        reason = f"DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}."
        raise invalid_value("DelaySeconds", delay_seconds, reason)
    if delay_seconds and queue.spec.type is QueueType.FIFO:
        raise wrong_queue_type("DelaySeconds", delay_seconds)


def digests_of(message: NewMessage, request: MessageFields) -> Digests:
    """Return the digests of a sent message.

    System attributes count only if the sender gave them as such.
    """
    body = body_digest(message.body)
    if not (message.headers or message.system):
        return Digests(body, None, None)
    system = [
        (TRACE_HEADER, kind, value)
        for name, kind, value in message.system
        if name == TRACE_NAME and request.message_system_attributes
    ]
    return Digests(body, attributes_digest(message.headers), attributes_digest(system))


def sequence_number(sent: SentMessage | ReceivedMessage, queue: Queue) -> str | None:
    """Return the position of a FIFO queue's message as in SQS: 20 digits that only grow."""
    if queue.spec.type is not QueueType.FIFO:
        return None
    return str(FIRST_SEQUENCE_NUMBER + sent.offset)


def received_message(
    message: ReceivedMessage,
    queue: Queue,
    system_names: Collection[str],
    attribute_names: Sequence[str],
    arns: Arns | None,
) -> Message:
    """Convert a delivery, with the requested attributes.

    `arns` is needed for system attributes only.
    """
    returned_body, body = message.body, text_of(message.body)
    if body is None:
        returned_body = base64.b64encode(message.body)
        body = returned_body.decode()
    headers: Headers = ()
    if attribute_names and (message.headers or message.system):
        headers = chosen(_attributes(message), attribute_names)
    return Message(
        message_id=message.message_id,
        receipt_handle=message.receipt_handle,
        md5_of_body=body_digest(returned_body),
        body=body,
        attributes=_system_attributes(message, queue, system_names, arns) if arns else None,
        md5_of_message_attributes=attributes_digest(headers) if headers else None,
        message_attributes=attribute_values(headers) if headers else None,
    )


def _attributes(message: ReceivedMessage) -> Headers:
    """Return the message attributes of a delivery; a request has one more, its reply address."""
    headers = representable_headers(message.headers)
    for name, _, token in message.system:
        if name == REPLY_TO:
            others = tuple([header for header in headers if header[0] != REPLY_TO_NAME])
            return (*others, (REPLY_TO_NAME, "String", token))
    return headers


def _system_attributes(
    message: ReceivedMessage, queue: Queue, names: Collection[str], arns: Arns
) -> dict[str, str] | None:
    attributes = {
        "SenderId": arns.account_id,
        "SentTimestamp": str(message.sent_at_ms),
        "ApproximateReceiveCount": str(message.receive_count),
        "ApproximateFirstReceiveTimestamp": str(message.first_received_at_ms),
    }
    if message.group:
        attributes["MessageGroupId"] = message.group
    number = sequence_number(message, queue)
    if number is not None:
        attributes["SequenceNumber"] = number
        attributes["MessageDeduplicationId"] = message.dedup_id or content_deduplication_id(
            message.body
        )
    if message.dead_letter_source:
        attributes["DeadLetterQueueSourceArn"] = arns.of(message.dead_letter_source)
    if trace_header := _trace_header(message):
        attributes[TRACE_HEADER] = trace_header
    if ALL not in names:
        attributes = {name: value for name, value in attributes.items() if name in names}
    return attributes or None


def _trace_header(message: ReceivedMessage) -> str:
    """Return the sender's trace header, or one converted from another protocol's traceparent."""
    for name, _, value in message.system:
        if name == TRACE_NAME:
            return value.decode()
    return from_traceparent(context_of(message.headers, message.system))
