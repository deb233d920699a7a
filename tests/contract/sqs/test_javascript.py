"""The AWS SDK for JavaScript, unmodified except for the endpoint.

`javascript/exercise.mjs` has the steps.
"""

import base64
import hashlib
import struct
from pathlib import Path

import pytest

from tests.javascript import install, steps_of

HERE = Path(__file__).parent / "javascript"


@pytest.fixture(scope="module")
def steps(service_url):
    """The output of each step of the script, by name."""
    install(HERE)
    return steps_of(HERE, "node", "exercise.mjs", service_url, "javascript")


def md5(data):
    return hashlib.md5(data).hexdigest()


def md5_of_attributes(*attributes):
    """Compute AWS's digest of (name, type, value) by name, which this SDK does not verify."""
    digested = b""
    for name, data_type, value in attributes:
        digested += with_length(name.encode()) + with_length(data_type.encode())
        digested += (
            b"\x01" + with_length(value.encode())
            if isinstance(value, str)
            else b"\x02" + with_length(value)
        )
    return md5(digested)


def with_length(data):
    return struct.pack(">I", len(data)) + data


def test_sdk_verifies_body_digests(steps):
    """Without this check, a wrong digest would not fail the script."""
    assert steps["spoilt"]["send"] == "InvalidChecksumError"
    assert steps["spoilt"]["batch"].startswith("Invalid MD5 checksum on messages: ")
    assert steps["spoilt"]["receive"].startswith("Invalid MD5 checksum on messages: ")


def test_queues_are_created_and_found(steps, service_url):
    standard, fifo = (steps["created"][kind]["QueueUrl"] for kind in ("standard", "fifo"))
    pages = steps["found"]["pages"]

    assert standard.startswith(service_url)
    assert standard.endswith("/javascript")
    assert fifo == f"{standard}.fifo"
    assert steps["found"]["url"] == standard
    assert max(map(len, pages)) == 1
    assert sorted(url for page in pages for url in page) == [standard, fifo]


def test_message_with_attributes_round_trips(steps):
    sent, received = steps["sent"], steps["received"]
    raw = b"\x00\x7f\x80\xff"

    assert received["Body"] == '<é> & "🚂"\t\r\n'
    assert received["MessageAttributes"] == {
        "color": {"DataType": "String", "StringValue": "blüe"},
        "price": {"DataType": "Number.decimal", "StringValue": "007.50"},
        "raw": {"DataType": "Binary.png", "BinaryValue": base64.b64encode(raw).decode()},
    }
    assert received["MessageId"] == sent["MessageId"]
    assert received["MD5OfBody"] == sent["MD5OfMessageBody"] == md5(received["Body"].encode())
    digest = md5_of_attributes(
        ("color", "String", "blüe"),
        ("price", "Number.decimal", "007.50"),
        ("raw", "Binary.png", raw),
    )
    assert received["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"] == digest
    assert received["Attributes"].keys() == {
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
    }
    assert received["Attributes"]["ApproximateReceiveCount"] == "1"


def test_deleted_message_is_gone(steps):
    deleted = steps["deleted"]

    assert (deleted["status"], deleted["attempts"]) == (200, 1)
    assert deleted["request_id"]
    assert (deleted["during"], deleted["after"]) == ([0, 1, 0], [0, 0, 0])


def test_message_made_visible_is_redelivered_immediately(steps):
    first, hidden, second = (steps["visibility"][name] for name in ("first", "hidden", "second"))

    assert hidden == []
    assert second["MessageId"] == first["MessageId"]
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    assert second["Attributes"] == {"ApproximateReceiveCount": "2"}


def test_batch_is_sent_except_for_invalid_xml_characters(steps):
    sent = steps["batch sent"]
    one, two = steps["batch received"]["messages"]

    assert [entry["Id"] for entry in sent["Successful"]] == ["a", "b"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in sent["Failed"]] == [
        ("c", "InvalidMessageContents", True)
    ]
    assert [entry["MessageId"] for entry in sent["Successful"]] == [
        one["MessageId"],
        two["MessageId"],
    ]
    assert (one["Body"], two["Body"]) == ("one", "two")
    assert "MessageAttributes" not in one
    assert two["MessageAttributes"] == {"n": {"DataType": "Number", "StringValue": "1e3"}}
    assert two["MD5OfMessageAttributes"] == md5_of_attributes(("n", "Number", "1e3"))


def test_batch_is_changed_and_deleted_except_for_invalid_handle(steps):
    changed, deleted = steps["batch changed"], steps["batch deleted"]

    assert [entry["Id"] for entry in changed["Successful"]] == ["0", "1"]
    assert changed.get("Failed", []) == []
    assert [entry["Id"] for entry in deleted["Successful"]] == ["0", "1"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in deleted["Failed"]] == [
        ("none", "ReceiptHandleIsInvalid", True)
    ]
    assert deleted["after"] == [0, 0, 0]


def test_groups_keep_order_and_repeated_send_is_one_message(steps):
    first, same, second, third = steps["groups"]["sent"]
    messages = steps["groups"]["messages"]
    attributes = [message["Attributes"] for message in messages]

    assert same == first
    assert [message["MessageId"] for message in messages] == [
        entry["MessageId"] for entry in (first, second, third)
    ]
    assert [message["Body"] for message in messages] == ["one", "two", "three"]
    assert [attribute["MessageGroupId"] for attribute in attributes] == ["a", "a", "b"]
    assert [attribute["MessageDeduplicationId"] for attribute in attributes] == ["1", "2", "3"]
    numbers = [attribute["SequenceNumber"] for attribute in attributes]
    assert numbers == [entry["SequenceNumber"] for entry in (first, second, third)]
    assert numbers == sorted(set(numbers))
    assert steps["groups"]["after"] == [0, 0, 0]


def test_long_poll_ends_with_message(steps):
    poll = steps["long poll"]

    assert poll["waited"]
    assert [message["Body"] for message in poll["messages"]] == ["at last"]
    assert poll["came_after_ms"] < 5_000, "it should not wait for the end of its ten seconds"


def test_tags_and_attributes_are_returned_as_set(steps):
    standard, fifo = steps["attributes"]["standard"], steps["attributes"]["fifo"]

    assert steps["tags"] == {"Tags": {"team": "blüe"}}
    assert (standard["VisibilityTimeout"], standard["MessageRetentionPeriod"]) == ("40", "3600")
    assert standard["QueueArn"].startswith("arn:aws:sqs:us-east-1:")
    assert "FifoQueue" not in standard
    assert fifo == {"FifoQueue": "true", "QueueArn": f"{standard['QueueArn']}.fifo"}


@pytest.mark.parametrize(
    ("step", "name", "code", "message"),
    [
        (
            "no queue",
            "QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist.",
        ),
        (
            "no handle",
            "ReceiptHandleIsInvalid",
            "ReceiptHandleIsInvalid",
            'The input receipt handle "none" is not a valid receipt handle.',
        ),
        (
            "queue deleted",
            "QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist.",
        ),
    ],
)
def test_rejection_has_its_error_class_after_one_attempt(steps, step, name, code, message):
    refused = steps[step]

    assert refused["request_id"]
    assert 400 <= refused["status"] < 500
    assert refused == {
        "request_id": refused["request_id"],
        "status": refused["status"],
        "name": name,
        "is_its_class": True,
        "message": message,
        "fault": "client",
        "query_error": {"Code": code, "Type": "Sender", "Message": message},
        "attempts": 1,
    }
