"""Batches: a result for each entry, and errors of the whole call."""

import json

import pytest
from botocore.exceptions import ClientError

from tests.contract.sqs.conftest import refusal

PREFIX = "AWS.SimpleQueueService."


def entries(*bodies, **more):
    return [{"Id": str(nth), "MessageBody": body, **more} for nth, body in enumerate(bodies)]


def received(sqs, url):
    return sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])


def test_ten_messages_are_sent_and_received_per_call(sqs, url):
    bodies = [f"message {nth}" for nth in range(10)]
    response = sqs.send_message_batch(QueueUrl=url, Entries=entries(*bodies))
    messages = received(sqs, url)
    handles = [
        {"Id": str(nth), "ReceiptHandle": message["ReceiptHandle"]}
        for nth, message in enumerate(messages)
    ]
    changes = [{**handle, "VisibilityTimeout": 60} for handle in handles]
    changed = sqs.change_message_visibility_batch(QueueUrl=url, Entries=changes)
    deleted = sqs.delete_message_batch(QueueUrl=url, Entries=handles)

    assert "Failed" not in response
    assert sorted(message["Body"] for message in messages) == sorted(bodies)
    assert len(changed["Successful"]) == len(deleted["Successful"]) == 10


def test_valid_entries_succeed_and_invalid_ones_are_reported(sqs, url):
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": "1024"})
    good, bell, large, late = entries("good", "bell \x07", "x" * 1025, "late")
    response = sqs.send_message_batch(
        QueueUrl=url, Entries=[good, bell, large, {**late, "DelaySeconds": 901}]
    )

    assert [one["Id"] for one in response["Successful"]] == ["0"]
    assert [(one["Id"], one["SenderFault"], one["Code"]) for one in response["Failed"]] == [
        ("1", True, "InvalidMessageContents"),
        ("2", True, "InvalidParameterValue"),
        ("3", True, "InvalidParameterValue"),
    ]
    assert response["Failed"][1]["Message"] == (
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    )
    assert [message["Body"] for message in received(sqs, url)] == ["good"]


HALVES = [r"\ud800", r"\udc00x", r"\ud800\u0041", r"\uD83D\uD83D\uDE00"]
FORBIDDEN = "Invalid characters found. Valid unicode characters are"


def post(client, operation, content):
    headers = {
        "x-amz-target": f"AmazonSQS.{operation}",
        "content-type": "application/x-amz-json-1.0",
    }
    return client.post("/", content=content, headers=headers)


@pytest.mark.parametrize("half", HALVES)
def test_entry_with_half_of_surrogate_pair_fails_alone(client, sqs, url, half):
    """The whole batch was called truncated input."""
    entries = [
        {"Id": "good", "MessageBody": "\U0001f600 \\ud800"},
        {"Id": "bad", "MessageBody": "?"},
    ]
    content = json.dumps({"QueueUrl": url, "Entries": entries}).replace("?", half)
    response = post(client, "SendMessageBatch", content).json()
    [received] = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]

    assert [one["Id"] for one in response["Successful"]] == ["good"]
    [failed] = response["Failed"]
    assert (failed["Id"], failed["Code"]) == ("bad", "InvalidMessageContents")
    assert failed["Message"].startswith(FORBIDDEN)
    assert received["Body"] == "\U0001f600 \\ud800"


INPUTS = [
    ("SendMessage", {"MessageBody": "?"}),
    ("SendMessage", {"MessageBody": "x", "MessageGroupId": "?"}),
    ("SendMessage", {"MessageBody": "x", "MessageAttributes": {"a": {"DataType": "String", "StringValue": "?"}}}),
    ("SendMessage", {"MessageBody": "x", "MessageAttributes": {"?": {"DataType": "String", "StringValue": "x"}}}),
    ("SendMessage", {"MessageBody": "x", "MessageAttributes": {"a": {"DataType": "String.?", "StringValue": "x"}}}),
    ("ReceiveMessage", {"AttributeNames": ["?"]}),
    ("DeleteMessage", {"ReceiptHandle": "?"}),
    ("TagQueue", {"Tags": {"?": "x"}}),
    ("TagQueue", {"Tags": {"x": "?"}}),
    ("SetQueueAttributes", {"Attributes": {"Policy": '{"Statement":[],"Id":"?"}'}}),
    ("SetQueueAttributes", {"Attributes": {"KmsMasterKeyId": "?"}}),
    ("SetQueueAttributes", {"Attributes": {"RedrivePolicy": "?"}}),
    ("AddPermission", {"Label": "?", "AWSAccountIds": ["123456789012"], "Actions": ["*"]}),
    ("CreateQueue", {"QueueName": "?"}),
    ("GetQueueUrl", {"QueueName": "?"}),
    ("CancelMessageMoveTask", {"TaskHandle": "?"}),
    ("StartMessageMoveTask", {"SourceArn": "?"}),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "request_body"), INPUTS)
def test_half_of_surrogate_pair_is_never_accepted(client, url, operation, request_body):
    content = json.dumps({"QueueUrl": url, **request_body}).replace("?", r"\ud800")
    answer = post(client, operation, content)

    assert answer.status_code in (400, 404)
    assert "SerializationException" not in answer.text
    assert "truncated" not in answer.text


def test_invalid_handle_fails_alone(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    [message] = received(sqs, url)
    good, bad = (
        {"Id": "good", "ReceiptHandle": message["ReceiptHandle"]},
        {"Id": "bad", "ReceiptHandle": "x"},
    )
    changed = sqs.change_message_visibility_batch(
        QueueUrl=url,
        Entries=[{**one, "VisibilityTimeout": 30} for one in (good, bad)]
        + [{**good, "Id": "long", "VisibilityTimeout": 43_201}],
    )
    deleted = sqs.delete_message_batch(QueueUrl=url, Entries=[good, bad])

    assert [one["Id"] for one in changed["Successful"]] == ["good"]
    assert {one["Id"]: one["Code"] for one in changed["Failed"]} == {
        "bad": "ReceiptHandleIsInvalid",
        "long": "InvalidParameterValue",
    }
    assert [one["Id"] for one in deleted["Successful"]] == ["good"]
    assert [(one["Id"], one["Code"]) for one in deleted["Failed"]] == [
        ("bad", "ReceiptHandleIsInvalid")
    ]


@pytest.mark.parametrize(
    ("batch", "code", "message"),
    [
        ([], "EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request."),
        (entries(*"abcdefghijk"), "TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."),
        ([{"Id": "same", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct", "Id same repeated."),
        ([{"Id": "no spaces", "MessageBody": "x"}], "InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."),
        ([{"Id": "x" * 81, "MessageBody": "x"}], "InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."),
        (entries("x" * 600_000, "y" * 600_000), "BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1200000 bytes."),
    ],
)  # fmt: skip
def test_invalid_batch_is_rejected(sqs, url, batch, code, message):
    with pytest.raises(ClientError) as refused:
        sqs.send_message_batch(QueueUrl=url, Entries=batch)

    assert refusal(refused.value) == (400, PREFIX + code, message)
    assert received(sqs, url) == []


@pytest.mark.parametrize("operation", ["delete_message_batch", "change_message_visibility_batch"])
def test_other_batch_operations_reject_same_inputs(sqs, url, operation):
    entry: dict[str, object] = {"Id": "a", "ReceiptHandle": "x"}
    if operation.startswith("change"):
        entry["VisibilityTimeout"] = 1
    codes = []
    for batch in ([], [entry] * 11, [entry] * 2, [{**entry, "Id": "?"}]):
        with pytest.raises(ClientError) as refused:
            getattr(sqs, operation)(QueueUrl=url, Entries=batch)
        codes.append(refusal(refused.value)[1].removeprefix(PREFIX))

    assert codes == [
        "EmptyBatchRequest",
        "TooManyEntriesInBatchRequest",
        "BatchEntryIdsNotDistinct",
        "InvalidBatchEntryId",
    ]
