"""Rows of SQS's error table that a client can cause, in both protocols."""

import json
from typing import Any, NamedTuple

import pytest

PREFIX = "AWS.SimpleQueueService."


class Fault(NamedTuple):
    """An error, as either protocol returns it."""

    operation: str
    asked: dict[str, Any]
    shape: str
    code: str
    message: str
    status: int = 400
    query_message: str | None = None


def _attribute(data_type="String", value="x", name="a"):
    return {"MessageAttributes": {name: {"DataType": data_type, "StringValue": value}}}


def _invalid(operation, asked, message):
    return Fault(
        operation, asked, "InvalidParameterValueException", "InvalidParameterValue", message
    )


def _missing(operation, asked, parameter):
    message = f"The request must contain the parameter {parameter}."
    return Fault(operation, asked, "MissingRequiredParameterException", "MissingParameter", message)


SEND: dict[str, Any] = {"MessageBody": "x"}
NOT_OF_THIS_TYPE = "The request include parameter that is not valid for this queue type."
WORDS = "can only include alphanumeric and punctuation characters. 1 to 128 in length."

STANDARD = [
    _missing("SendMessage", {}, "MessageBody"),
    _missing("SendMessage", {"MessageBody": ""}, "MessageBody"),
    _missing("DeleteMessage", {}, "ReceiptHandle"),
    _missing("ChangeMessageVisibility", {"VisibilityTimeout": 1}, "ReceiptHandle"),
    _missing("ChangeMessageVisibility", {"ReceiptHandle": "x"}, "VisibilityTimeout"),
    _missing("SetQueueAttributes", {}, "Attributes"),
    _missing("TagQueue", {}, "Tags"),
    _missing("UntagQueue", {}, "TagKeys"),
    _missing("AddPermission", {}, "Label"),
    _missing("AddPermission", {"Label": "a"}, "AWSAccountIds"),
    _missing("AddPermission", {"Label": "a", "AWSAccountIds": ["1"]}, "Actions"),
    _missing("RemovePermission", {}, "Label"),
    _missing("SendMessageBatch", {"Entries": [{"MessageBody": "x"}]}, "SendMessageBatchRequestEntry.1.Id"),
    _missing("DeleteMessageBatch", {"Entries": [{"Id": "a"}]}, "DeleteMessageBatchRequestEntry.1.ReceiptHandle"),
    Fault("SendMessage", {"MessageBody": "bell \x07"}, "InvalidMessageContents", "InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"),
    Fault("SendMessage", {"MessageBody": "\uffff"}, "InvalidMessageContents", "InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"),
    _invalid("SendMessage", {"MessageBody": "x" * 1_048_577}, "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."),
    _invalid("SendMessage", {"MessageBody": "x" * 1_048_570, **_attribute()}, "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."),
    _invalid("SendMessage", SEND | {"DelaySeconds": 901}, "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."),
    _invalid("SendMessage", SEND | {"DelaySeconds": -1}, "Value -1 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."),
    _invalid("SendMessage", SEND | {"MessageDeduplicationId": "d"}, f"Value d for parameter MessageDeduplicationId is invalid. Reason: {NOT_OF_THIS_TYPE}"),
    _invalid("SendMessage", SEND | {"MessageGroupId": "a b"}, f"Value a b for parameter MessageGroupId is invalid. Reason: MessageGroupId {WORDS}"),
    _invalid("SendMessage", SEND | _attribute("", "x"), "The message attribute 'a' must contain non-empty message attribute type."),
    _invalid("SendMessage", SEND | _attribute("Text", "x"), "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."),
    _invalid("SendMessage", SEND | _attribute("String", ""), "Message (user) attribute 'a' must contain a non-empty value of type 'String'."),
    _invalid("SendMessage", SEND | _attribute("Binary", "x"), "Message (user) attribute 'a' must contain a non-empty value of type 'Binary'."),
    *[_invalid("SendMessage", SEND | _attribute("Number", text), "Can't cast the value of message (user) attribute 'a' to a number.") for text in ("x", "1e", "0x1", "--1", "1e200", "9" * 39, "٣")],
    _invalid("SendMessage", SEND | _attribute(value="\x02"), "Message (user) attribute 'a' contains characters that are not allowed."),
    *[_invalid("SendMessage", SEND | _attribute(name=name), f"The message attribute name '{name[:80]}' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters, is 1 to 256 long, does not begin or end with a period nor have two together, nor begin with AWS. or Amazon.") for name in ("a b", ".a", "a.", "a..b", "AWS.a", "amazon.a", "x" * 257)],
    _invalid("SendMessage", SEND | {"MessageAttributes": {f"a{n}": {"DataType": "String", "StringValue": "x"} for n in range(11)}}, "Number of message attributes [11] exceeds the allowed maximum [10]."),
    _invalid("SendMessage", SEND | {"MessageSystemAttributes": {"Other": {"DataType": "String", "StringValue": "x"}}}, "Message system attribute name 'Other' is invalid."),
    Fault("SendMessage", SEND | {"MessageAttributes": {"a": {"DataType": "String", "StringListValues": ["x"]}}}, "UnsupportedOperation", PREFIX + "UnsupportedOperation", "Message attribute list values in SendMessage operation are not supported."),
    _invalid("ReceiveMessage", {"MaxNumberOfMessages": 0}, "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."),
    _invalid("ReceiveMessage", {"MaxNumberOfMessages": 11}, "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."),
    _invalid("ReceiveMessage", {"WaitTimeSeconds": 21}, "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."),
    _invalid("ReceiveMessage", {"VisibilityTimeout": 43_201}, "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided."),
    _invalid("ReceiveMessage", {"ReceiveRequestAttemptId": "a"}, f"Value a for parameter ReceiveRequestAttemptId is invalid. Reason: {NOT_OF_THIS_TYPE}"),
    Fault("ReceiveMessage", {"AttributeNames": ["Nonsense"]}, "InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute Nonsense."),
    Fault("ReceiveMessage", {"MessageSystemAttributeNames": ["Policy"]}, "InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute Policy."),
    Fault("GetQueueAttributes", {"AttributeNames": ["Nonsense"]}, "InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute Nonsense."),
    *[Fault("SetQueueAttributes", {"Attributes": {"ContentBasedDeduplication": word}}, "InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute ContentBasedDeduplication.") for word in ("true", "false")],
    *[Fault("SetQueueAttributes", {"Attributes": {name: "x"}}, "InvalidAttributeName", "InvalidAttributeName", f"You can specify the {name} only when FifoQueue is set to true.") for name in ("DeduplicationScope", "FifoThroughputLimit")],
    *[_invalid("AddPermission", {"Label": "a", "AWSAccountIds": ["123456789012"], "Actions": ["SendMessage", action]}, f"Value SQS:{action} for parameter ActionName is invalid. Reason: Only the queue owner is allowed to invoke this action.") for action in ("CreateQueue", "ListQueues", "StartMessageMoveTask", "UntagQueue")],
    _invalid("AddPermission", {"Label": "a", "AWSAccountIds": ["123456789012"], "Actions": ["Nonsense"]}, "Value SQS:Nonsense for parameter ActionName is invalid. Reason: Please refer to the appropriate WSDL for a list of valid actions."),
    *[_invalid("TagQueue", {"Tags": {key: "x"}}, "aws: prefixed tag key names are not allowed for external use.") for key in ("aws:x", "AWS:x", "aws:")],
    _invalid("TagQueue", {"Tags": {str(n): "" for n in range(51)}}, "Too many tags added for queue {queue}."),
    Fault("SetQueueAttributes", {"Attributes": {"QueueArn": "x"}}, "InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute QueueArn."),
    Fault("SetQueueAttributes", {"Attributes": {"DelaySeconds": "x"}}, "InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter DelaySeconds."),
    *[Fault(operation, asked | {"ReceiptHandle": "x"}, "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 'The input receipt handle "x" is not a valid receipt handle.') for operation, asked in (("DeleteMessage", {}), ("ChangeMessageVisibility", {"VisibilityTimeout": 1}))],
    _invalid("ChangeMessageVisibility", {"ReceiptHandle": "x", "VisibilityTimeout": 43_201}, "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided."),
    _invalid("ListDeadLetterSourceQueues", {"MaxResults": 1001}, "Value 1001 for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."),
    Fault("SendMessageBatch", {}, "EmptyBatchRequest", PREFIX + "EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request."),
]  # fmt: skip

FIFO = [
    _missing("SendMessage", SEND, "MessageGroupId"),
    _invalid("SendMessage", SEND | {"MessageGroupId": "g"}, "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"),
    _invalid("SendMessage", SEND | {"MessageGroupId": "g", "MessageDeduplicationId": "x" * 129}, f"Value {'x' * 129} for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId {WORDS}"),
    _invalid("SendMessage", SEND | {"MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 1}, f"Value 1 for parameter DelaySeconds is invalid. Reason: {NOT_OF_THIS_TYPE}"),
]  # fmt: skip

ANYWHERE = [
    _missing("SendMessage", SEND, "QueueUrl"),
    _missing("CreateQueue", {}, "QueueName"),
    _missing("StartMessageMoveTask", {}, "SourceArn"),
    _missing("CancelMessageMoveTask", {}, "TaskHandle"),
    Fault("SendMessage", SEND | {"QueueUrl": "http://localhost/123456789012/none"}, "QueueDoesNotExist", PREFIX + "NonExistentQueue", "The specified queue does not exist.", query_message="The specified queue does not exist for this wsdl version."),
    Fault("SendMessage", SEND | {"QueueUrl": "http://localhost/123456789012/n?ne"}, "QueueDoesNotExist", PREFIX + "NonExistentQueue", "The specified queue does not exist.", query_message="The specified queue does not exist for this wsdl version."),
    Fault("GetQueueUrl", {"QueueName": "n/ne"}, "QueueDoesNotExist", PREFIX + "NonExistentQueue", "The specified queue does not exist.", query_message="The specified queue does not exist for this wsdl version."),
    *[Fault("CreateQueue", {"QueueName": "none", "Attributes": {"ContentBasedDeduplication": word}}, "InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute ContentBasedDeduplication.") for word in ("true", "false")],
    _invalid("CreateQueue", {"QueueName": "none", "tags": {"aws:x": "y"}}, "aws: prefixed tag key names are not allowed for external use."),
    _invalid("ListQueues", {"MaxResults": 0}, "Value 0 for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."),
    _invalid("ListQueues", {"NextToken": "?"}, "Invalid or expired next token."),
    Fault("ListMessageMoveTasks", {"SourceArn": "arn:aws:sqs:us-east-1:123456789012:none"}, "ResourceNotFoundException", "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.", 404),
    _invalid("CancelMessageMoveTask", {"TaskHandle": "x"}, "Value for parameter TaskHandle is invalid."),
]  # fmt: skip


def call_json(client, operation, asked):
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"AmazonSQS.{operation}",
        "x-amzn-query-mode": "true",
    }
    return client.post("/", content=json.dumps(asked), headers=headers)


QUERY_NAMES = {
    "AttributeNames": "AttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
    "MessageAttributes": "MessageAttribute",
    "MessageSystemAttributes": "MessageSystemAttribute",
    "Attributes": "Attribute",
    "Tags": "Tag",
    "tags": "Tag",
    "StringListValues": "StringListValue",
}


def flattened(operation, asked, path=""):
    """Flatten a JSON input into parameters of the Query protocol."""
    form: dict[str, Any] = {}
    for name, value in asked.items():
        query_name = QUERY_NAMES.get(name, name)
        if name == "Entries":
            query_name = f"{operation}RequestEntry"
        if isinstance(value, dict) and name in QUERY_NAMES:
            key_name = "Key" if query_name == "Tag" else "Name"
            value = [{key_name: key, "Value": item} for key, item in value.items()]
        if isinstance(value, list):
            value = {str(nth): item for nth, item in enumerate(value, 1)}
            for nth, item in value.items():
                items = item if isinstance(item, dict) else None
                place = f"{path}{query_name}.{nth}"
                form |= flattened(operation, items, f"{place}.") if items else {place: item}
        elif isinstance(value, dict):
            form |= flattened(operation, value, f"{path}{query_name}.")
        else:
            form[path + query_name] = value
    return form


def assert_refused_in_json(client, fault, asked):
    answer = call_json(client, fault.operation, asked)

    assert answer.status_code == fault.status
    assert answer.json() == {"__type": f"com.amazonaws.sqs#{fault.shape}", "message": fault.message}
    assert answer.headers["x-amzn-query-error"] == f"{fault.code};Sender"
    assert answer.headers["x-amzn-errortype"] == fault.shape
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    assert len(answer.headers["x-amzn-requestid"]) == 36


def assert_refused_in_query(query, fault, asked):
    error = query.error(fault.operation, **flattened(fault.operation, asked))

    assert error == (fault.status, fault.code, fault.query_message or fault.message)


@pytest.mark.parametrize("nth", range(len(STANDARD)))
def test_standard_queue_rejects_invalid_calls(client, query, url, nth):
    fault = STANDARD[nth]
    fault = fault._replace(message=fault.message.replace("{queue}", url.rpartition("/")[2]))
    request = {"QueueUrl": url, **fault.asked}

    assert_refused_in_json(client, fault, request)
    assert_refused_in_query(query, fault, request)


@pytest.mark.parametrize("nth", range(len(FIFO)))
def test_fifo_queue_rejects_invalid_calls(client, query, sqs, fifo_url, nth):
    off = {"ContentBasedDeduplication": "false"}
    sqs.set_queue_attributes(QueueUrl=fifo_url, Attributes=off)
    request = {"QueueUrl": fifo_url, **FIFO[nth].asked}

    assert_refused_in_json(client, FIFO[nth], request)
    assert_refused_in_query(query, FIFO[nth], request)


@pytest.mark.parametrize("nth", range(len(ANYWHERE)))
def test_invalid_queue_url_is_rejected(client, query, nth):
    fault = ANYWHERE[nth]

    assert_refused_in_json(client, fault, fault.asked)
    assert_refused_in_query(query, fault, fault.asked)
