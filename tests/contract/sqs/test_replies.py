"""Requests at SQS clients: the reply address they see, and SendMessage to it."""

from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

REPLY_TO = "Millstream.ReplyTo"
NONE = "AWS.SimpleQueueService.NonExistentQueue"


@pytest.fixture
def ask(client: httpx.Client, url: str, name: str):
    """Send a request to a new queue; return the queue's URL, and the path of the reply."""

    def send(**terms: Any) -> tuple[str, str]:
        path = f"/v1/queues/{name}/requests"
        answer = client.post(path, json={"body": "a", "wait_seconds": 0, **terms})
        answer.raise_for_status()
        return url, answer.headers["location"]

    return send


def address_of(sqs, url: str) -> str:
    """Receive the request; return the URL to which its reply is sent."""
    [message] = sqs.receive_message(QueueUrl=url, MessageAttributeNames=[REPLY_TO])["Messages"]
    token = message["MessageAttributes"][REPLY_TO]["StringValue"]
    return f"{url.rpartition('/')[0]}/reply:{token}"


def error_of(call, **parameters: Any) -> tuple[str, int]:
    """Return the code and status of a refused call."""
    with pytest.raises(ClientError) as refusal:
        call(**parameters)
    response = refusal.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


@pytest.mark.parametrize("names", [["All"], [REPLY_TO], ["Millstream.*"], [".*"]])
def test_request_shows_reply_address_if_asked_for(sqs, ask, names):
    """boto3 compares the digest of the attributes."""
    url, _ = ask(headers={"n": "1"})

    [message] = sqs.receive_message(QueueUrl=url, MessageAttributeNames=names)["Messages"]

    value = message["MessageAttributes"][REPLY_TO]
    assert value["DataType"] == "String"
    assert ("n" in message["MessageAttributes"]) is (names in (["All"], [".*"]))
    assert message["MD5OfMessageAttributes"]


def test_request_hides_reply_address_unless_asked_for(sqs, ask):
    url, _ = ask()

    [message] = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["n"])["Messages"]

    assert "MessageAttributes" not in message


def test_message_sent_to_reply_address_is_the_reply(sqs, client, ask):
    url, location = ask()
    attributes = {"currency": {"DataType": "String", "StringValue": "EUR"}}

    sent = sqs.send_message(
        QueueUrl=address_of(sqs, url), MessageBody="250", MessageAttributes=attributes
    )

    answer = client.get(location).json()
    assert answer["complete"]
    [reply] = answer["replies"]
    assert (reply["body"], reply["headers"]) == ("250", {"currency": "EUR"})
    assert sent["MessageId"]


def test_url_of_reply_address_is_found_by_name(sqs, client, ask):
    url, location = ask()
    name = address_of(sqs, url).rpartition("/")[2]

    found = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    sqs.send_message(QueueUrl=found, MessageBody="a")

    assert client.get(location).json()["complete"]


def test_reply_with_same_deduplication_id_is_accepted_once(sqs, client, ask):
    url, location = ask(replies_max=2)
    reply = {"QueueUrl": address_of(sqs, url), "MessageDeduplicationId": "k"}

    for _ in range(2):
        sqs.send_message(MessageBody="a", **reply)

    assert len(client.get(location).json()["replies"]) == 1


def test_attempts_of_one_call_reply_once(client, ask, sqs):
    url, location = ask(replies_max=2)
    call = {"QueueUrl": address_of(sqs, url), "MessageBody": "a"}
    headers = {
        "x-amz-target": "AmazonSQS.SendMessage",
        "content-type": "application/x-amz-json-1.0",
        "amz-sdk-invocation-id": "7d2f6c1e",
    }

    for _ in range(2):
        client.post("/", json=call, headers=headers).raise_for_status()

    assert len(client.get(location).json()["replies"]) == 1


def test_refused_replies_are_client_errors(sqs, ask):
    url, _ = ask()
    address = address_of(sqs, url)
    sqs.send_message(QueueUrl=address, MessageBody="a")
    forged = f"{address[:-4]}AAAA"

    refusals = [
        error_of(sqs.send_message, QueueUrl=address, MessageBody="b"),
        error_of(sqs.send_message, QueueUrl=forged, MessageBody="b"),
        error_of(sqs.send_message, QueueUrl=address, MessageBody="b", DelaySeconds=1),
        error_of(sqs.get_queue_url, QueueName=forged.rpartition("/")[2]),
        error_of(sqs.get_queue_url, QueueName="reply:short"),
    ]

    assert refusals == [
        ("AWS.SimpleQueueService.UnsupportedOperation", 400),
        (NONE, 400),
        ("InvalidParameterValue", 400),
        (NONE, 400),
        (NONE, 400),
    ]


def test_late_reply_is_unsupported_operation(sqs, client, ask):
    url, location = ask(timeout_seconds=0.5)
    address = address_of(sqs, url)
    assert client.get(f"{location}?wait_seconds=20").json()["timed_out"]

    code, status = error_of(sqs.send_message, QueueUrl=address, MessageBody="b")

    assert (code, status) == ("AWS.SimpleQueueService.UnsupportedOperation", 400)


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("receive_message", {}),
        ("delete_message", {"ReceiptHandle": "r"}),
        ("get_queue_attributes", {}),
        ("send_message_batch", {"Entries": [{"Id": "1", "MessageBody": "a"}]}),
        ("purge_queue", {}),
        ("delete_queue", {}),
    ],
)
def test_other_operations_find_no_queue(sqs, ask, operation, parameters):
    url, _ = ask()
    address = address_of(sqs, url)

    assert error_of(getattr(sqs, operation), QueueUrl=address, **parameters) == (NONE, 400)


def test_query_protocol_replies(sqs, query, client, ask):
    url, location = ask(replies_max=2)
    address = address_of(sqs, url)
    path = address.partition("://")[2].partition("/")[2]

    query.call("SendMessage", QueueUrl=address, MessageBody="a", MessageDeduplicationId="1")
    query.call("SendMessage", path=f"/{path}", MessageBody="b", MessageDeduplicationId="2")

    assert [one["body"] for one in client.get(location).json()["replies"]] == ["a", "b"]
