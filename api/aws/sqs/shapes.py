"""Shapes of messages and batches, with the names of their members.

Names are those of the service model from which SDKs are generated; the Query names are those that it had while Query was
its protocol.
"""

from typing import Annotated

import msgspec
from msgspec import field

from api.aws.protocol.shapes import Input, OperationOutput, named

Names = list[str] | None
AttributeMap = Annotated[dict[str, str] | None, named("Attribute", "Name", "Value")]
TagMap = Annotated[dict[str, str] | None, named("Tag", "Key", "Value")]
QueueUrls = Annotated[list[str] | None, named("QueueUrl", query_json="queueUrls")]


class AttributeValue(msgspec.Struct, rename="pascal", omit_defaults=True):
    """The value of a message attribute, in requests and responses."""

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
    """One message, and its queue."""

    queue_url: str | None = None


class SendMessageEntry(MessageFields):
    """One message of a batch."""

    id: str | None = None


class SendMessageBatch(Input):
    """Messages, and their queue."""

    queue_url: str | None = None
    entries: Annotated[list[SendMessageEntry] | None, named("SendMessageBatchRequestEntry")] = None


class SendMessageResult(OperationOutput):
    """The id of a sent message, and the digests of the received content."""

    message_id: str | None = None
    md5_of_message_body: str | None = field(name="MD5OfMessageBody", default=None)
    md5_of_message_attributes: str | None = field(name="MD5OfMessageAttributes", default=None)
    md5_of_message_system_attributes: str | None = field(
        name="MD5OfMessageSystemAttributes", default=None
    )
    sequence_number: str | None = None


class SendMessageBatchResultEntry(SendMessageResult):
    """Result of one message of a batch."""

    id: str | None = None


class BatchResultErrorEntry(OperationOutput):
    """Error of one entry of a batch."""

    id: str
    sender_fault: bool
    code: str
    message: str | None = None


Failed = Annotated[list[BatchResultErrorEntry] | None, named("BatchResultErrorEntry")]


class SendMessageBatchResult(OperationOutput):
    """Results for each message of a batch."""

    successful: Annotated[
        list[SendMessageBatchResultEntry] | None, named("SendMessageBatchResultEntry")
    ] = None
    failed: Failed = None


class ReceiveMessage(Input):
    """A receive request of a consumer."""

    queue_url: str | None = None
    attribute_names: Annotated[Names, named("AttributeName")] = None
    message_system_attribute_names: Annotated[Names, named("MessageSystemAttributeName")] = None
    message_attribute_names: Annotated[Names, named("MessageAttributeName")] = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class Message(OperationOutput):
    """One delivery of a message."""

    message_id: str
    receipt_handle: str
    md5_of_body: str = field(name="MD5OfBody")
    body: str
    attributes: AttributeMap = None
    md5_of_message_attributes: str | None = field(name="MD5OfMessageAttributes", default=None)
    message_attributes: MessageAttributes = None


class ReceiveMessageResult(OperationOutput):
    """Deliveries; the member is missing when there are none."""

    messages: Annotated[list[Message] | None, named("Message", query_json="messages")] = None


class DeleteMessage(Input):
    """The delivery to acknowledge."""

    queue_url: str | None = None
    receipt_handle: str | None = None


class DeleteMessageEntry(Input):
    """One delivery of a batch."""

    id: str | None = None
    receipt_handle: str | None = None


class DeleteMessageBatch(Input):
    """The deliveries to acknowledge."""

    queue_url: str | None = None
    entries: Annotated[list[DeleteMessageEntry] | None, named("DeleteMessageBatchRequestEntry")] = (
        None
    )


class BatchResultEntry(OperationOutput):
    """An entry of a batch that succeeded."""

    id: str


class DeleteMessageBatchResult(OperationOutput):
    """Results for each delivery of a batch."""

    successful: Annotated[list[BatchResultEntry] | None, named("DeleteMessageBatchResultEntry")] = (
        None
    )
    failed: Failed = None


class ChangeMessageVisibility(Input):
    """The new visibility timeout of a delivery, from now."""

    queue_url: str | None = None
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeMessageVisibilityEntry(Input):
    """The new visibility timeout of one delivery of a batch."""

    id: str | None = None
    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatch(Input):
    """The new visibility timeouts of deliveries, from now."""

    queue_url: str | None = None
    entries: Annotated[
        list[ChangeMessageVisibilityEntry] | None,
        named("ChangeMessageVisibilityBatchRequestEntry"),
    ] = None


class ChangeMessageVisibilityBatchResult(OperationOutput):
    """Results for each delivery of a batch."""

    successful: Annotated[
        list[BatchResultEntry] | None, named("ChangeMessageVisibilityBatchResultEntry")
    ] = None
    failed: Failed = None
