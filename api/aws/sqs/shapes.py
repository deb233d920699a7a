"""The shapes of messages and batches: what SQS calls their members.

Names are those of the service model that SDKs are made from; the Query names are those it had while Query
was its protocol.
"""

from typing import Annotated

import msgspec
from msgspec import field

from api.aws.protocol.shapes import Input, Output, named

Names = list[str] | None
AttributeMap = Annotated[dict[str, str] | None, named("Attribute", "Name", "Value")]
TagMap = Annotated[dict[str, str] | None, named("Tag", "Key", "Value")]
QueueUrls = Annotated[list[str] | None, named("QueueUrl")]


class AttributeValue(msgspec.Struct, rename="pascal", omit_defaults=True):
    """The value of a message attribute, on its way in or out."""

    string_value: str | None = None
    binary_value: bytes | None = None
    data_type: str | None = None
    string_list_values: Annotated[list[str] | None, named("StringListValue")] = None
    binary_list_values: Annotated[list[bytes] | None, named("BinaryListValue")] = None


MessageAttributes = Annotated[
    dict[str, AttributeValue] | None, named("MessageAttribute", "Name", "Value")
]
MessageSystemAttributes = Annotated[
    dict[str, AttributeValue] | None, named("MessageSystemAttribute", "Name", "Value")
]


class MessageFields(Input):
    """A message to send, alone or in a batch."""

    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: MessageAttributes = None
    message_system_attributes: MessageSystemAttributes = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessage(MessageFields):
    """One message, and the queue it goes to."""

    queue_url: str | None = None


class SendMessageEntry(MessageFields):
    """One message of a batch."""

    id: str | None = None


class SendMessageBatch(Input):
    """Messages, and the queue they go to."""

    queue_url: str | None = None
    entries: Annotated[list[SendMessageEntry] | None, named("SendMessageBatchRequestEntry")] = None


class SendMessageResult(Output):
    """Where a message went, and the digests of what arrived."""

    message_id: str | None = None
    md5_of_message_body: str | None = field(name="MD5OfMessageBody", default=None)
    md5_of_message_attributes: str | None = field(name="MD5OfMessageAttributes", default=None)
    md5_of_message_system_attributes: str | None = field(
        name="MD5OfMessageSystemAttributes", default=None
    )
    sequence_number: str | None = None


class SendMessageBatchResultEntry(SendMessageResult):
    """The same, of one message of a batch."""

    id: str | None = None


class BatchResultErrorEntry(Output):
    """Why one entry of a batch was refused."""

    id: str
    sender_fault: bool
    code: str
    message: str | None = None


Failed = Annotated[list[BatchResultErrorEntry] | None, named("BatchResultErrorEntry")]


class SendMessageBatchResult(Output):
    """An answer for each message of a batch."""

    successful: Annotated[
        list[SendMessageBatchResultEntry] | None, named("SendMessageBatchResultEntry")
    ] = None
    failed: Failed = None


class ReceiveMessage(Input):
    """What a consumer wants of a queue."""

    queue_url: str | None = None
    attribute_names: Annotated[Names, named("AttributeName")] = None
    message_system_attribute_names: Annotated[Names, named("MessageSystemAttributeName")] = None
    message_attribute_names: Annotated[Names, named("MessageAttributeName")] = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class Message(Output):
    """One delivery of a message."""

    message_id: str
    receipt_handle: str
    md5_of_body: str = field(name="MD5OfBody")
    body: str
    attributes: AttributeMap = None
    md5_of_message_attributes: str | None = field(name="MD5OfMessageAttributes", default=None)
    message_attributes: MessageAttributes = None


class ReceiveMessageResult(Output):
    """Deliveries; the member is missing when there are none."""

    messages: Annotated[list[Message] | None, named("Message")] = None


class DeleteMessage(Input):
    """The delivery that was worked on."""

    queue_url: str | None = None
    receipt_handle: str | None = None


class DeleteMessageEntry(Input):
    """One delivery of a batch."""

    id: str | None = None
    receipt_handle: str | None = None


class DeleteMessageBatch(Input):
    """The deliveries that were worked on."""

    queue_url: str | None = None
    entries: Annotated[list[DeleteMessageEntry] | None, named("DeleteMessageBatchRequestEntry")] = (
        None
    )


class BatchResultEntry(Output):
    """An entry of a batch that was taken."""

    id: str


class DeleteMessageBatchResult(Output):
    """An answer for each delivery of a batch."""

    successful: Annotated[list[BatchResultEntry] | None, named("DeleteMessageBatchResultEntry")] = (
        None
    )
    failed: Failed = None


class ChangeMessageVisibility(Input):
    """How long a delivery stays hidden from now on."""

    queue_url: str | None = None
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeMessageVisibilityEntry(Input):
    """The same, of one delivery of a batch."""

    id: str | None = None
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatch(Input):
    """How long deliveries stay hidden from now on."""

    queue_url: str | None = None
    entries: Annotated[
        list[ChangeMessageVisibilityEntry] | None,
        named("ChangeMessageVisibilityBatchRequestEntry"),
    ] = None


class ChangeMessageVisibilityBatchResult(Output):
    """An answer for each delivery of a batch."""

    successful: Annotated[
        list[BatchResultEntry] | None, named("ChangeMessageVisibilityBatchResultEntry")
    ] = None
    failed: Failed = None
