"""Sending, receiving and deleting on standard queues with boto3."""

import base64
import hashlib
import time

import pytest
from botocore.exceptions import ClientError

from tests.contract.sqs.conftest import arn_of, refusal

ATTRIBUTES = {
    "color": {"DataType": "String", "StringValue": "blüe"},
    "price": {"DataType": "Number.decimal", "StringValue": "007.50"},
    "raw": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
}


def receive(sqs, url, **options):
    return sqs.receive_message(QueueUrl=url, **options).get("Messages", [])


def counts(sqs, url):
    names = ["", "NotVisible", "Delayed"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return tuple(int(attributes[f"ApproximateNumberOfMessages{name}"]) for name in names)


def test_message_is_sent_received_and_deleted(sqs, url):
    sent = sqs.send_message(QueueUrl=url, MessageBody="hello")
    before = counts(sqs, url)
    [received] = receive(sqs, url)
    during = counts(sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=received["ReceiptHandle"])
    after = counts(sqs, url)

    assert sent["MD5OfMessageBody"] == "5d41402abc4b2a76b9719d911017c592"
    assert "SequenceNumber" not in sent
    assert "MD5OfMessageAttributes" not in sent
    assert received["MessageId"] == sent["MessageId"]
    assert received["Body"] == "hello"
    assert received.keys() == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}
    assert (before, during, after) == ((1, 0, 0), (0, 1, 0), (0, 0, 0))


def test_empty_queue_returns_no_messages(sqs, url):
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_attributes_round_trip(sqs, url):
    sent = sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=ATTRIBUTES)
    [received] = receive(sqs, url, MessageAttributeNames=["All"])

    assert received["MessageAttributes"] == ATTRIBUTES
    assert received["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["All"], {"a.x", "a.y", "b"}),
        ([".*"], {"a.x", "a.y", "b"}),
        (["a.*"], {"a.x", "a.y"}),
        (["a.x.*", "b.*"], {"a.x", "b"}),
        (["Ab.*"], set()),
        (["b", "c"], {"b"}),
        (["a"], set()),
        ([], set()),
    ],
)
def test_only_requested_attributes_are_returned_and_digested(sqs, url, names, told):
    sent = {name: {"DataType": "String", "StringValue": name} for name in ("a.x", "a.y", "b")}
    all_of_them = sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=sent)
    [received] = receive(sqs, url, MessageAttributeNames=names)
    alone = {name: sent[name] for name in told}
    expected = None
    if alone:
        again = sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=alone)
        expected = again["MD5OfMessageAttributes"]

    assert received.get("MessageAttributes", {}).keys() == told
    assert received.get("MD5OfMessageAttributes") == expected
    assert (expected == all_of_them["MD5OfMessageAttributes"]) is (len(told) == 3)


def test_number_attribute_keeps_its_text(sqs, url):
    for text in ("007", "1e3", "-0.10", "1.0"):
        sent = {"n": {"DataType": "Number", "StringValue": text}}
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=sent)
        [received] = receive(sqs, url, MessageAttributeNames=["n"])

        assert received["MessageAttributes"]["n"]["StringValue"] == text


def test_system_attributes_are_returned_on_request(sqs, url):
    trace = {
        "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a9"}
    }
    sent = sqs.send_message(
        QueueUrl=url, MessageBody="x", MessageGroupId="tenant", MessageSystemAttributes=trace
    )
    [first] = receive(sqs, url, MessageSystemAttributeNames=["All"], VisibilityTimeout=0)
    [again] = receive(sqs, url, AttributeNames=["ApproximateReceiveCount", "Policy"])

    attributes = first["Attributes"]
    assert attributes["ApproximateReceiveCount"] == "1"
    assert attributes["MessageGroupId"] == "tenant"
    assert len(attributes["SenderId"]) == 12
    assert abs(int(attributes["SentTimestamp"]) / 1000 - time.time()) < 60
    assert int(attributes["ApproximateFirstReceiveTimestamp"]) >= int(attributes["SentTimestamp"])
    assert attributes["AWSTraceHeader"] == trace["AWSTraceHeader"]["StringValue"]
    assert "MD5OfMessageSystemAttributes" in sent
    assert "SequenceNumber" not in attributes
    assert again["Attributes"] == {"ApproximateReceiveCount": "2"}


def test_trace_header_of_request_is_default_attribute(sqs, url):
    """X-Ray tools send the header with every call."""
    header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    own = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3f"}}

    def add_header(request, **_):
        request.headers["X-Amzn-Trace-Id"] = header

    sqs.meta.events.register("before-send.sqs", add_header)
    try:
        alone = sqs.send_message(QueueUrl=url, MessageBody="alone")
        sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "batch"}])
        sqs.send_message(QueueUrl=url, MessageBody="own", MessageSystemAttributes=own)
    finally:
        sqs.meta.events.unregister("before-send.sqs", add_header)
    received = receive(
        sqs, url, MessageSystemAttributeNames=["AWSTraceHeader"], MaxNumberOfMessages=10
    )

    assert "MD5OfMessageSystemAttributes" not in alone
    assert {message["Body"]: message["Attributes"]["AWSTraceHeader"] for message in received} == {
        "alone": header,
        "batch": header,
        "own": "Root=1-5759e988-bd862e3f",
    }


def test_queue_is_identified_by_name_alone(sqs, url, name):
    sqs.send_message(QueueUrl=name, MessageBody="x")

    assert [message["Body"] for message in receive(sqs, url)] == ["x"]


def test_message_with_zero_visibility_timeout_stays_ready(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")

    [first] = receive(sqs, url, VisibilityTimeout=0)
    [second] = receive(sqs, url, VisibilityTimeout=0)

    assert first["MessageId"] == second["MessageId"]
    assert first["ReceiptHandle"] != second["ReceiptHandle"]


def test_old_handle_deletes_redelivered_message(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    [first] = receive(sqs, url, VisibilityTimeout=0)
    [_] = receive(sqs, url)

    sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])

    assert counts(sqs, url) == (0, 0, 0)


def test_delete_is_idempotent(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    [received] = receive(sqs, url)

    for _ in range(2):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=received["ReceiptHandle"])


def test_visibility_changes_count_from_now(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    [first] = receive(sqs, url)
    change = {"QueueUrl": url, "ReceiptHandle": first["ReceiptHandle"]}

    sqs.change_message_visibility(**change, VisibilityTimeout=40)
    assert counts(sqs, url) == (0, 1, 0)
    sqs.change_message_visibility(**change, VisibilityTimeout=0)

    [again] = receive(sqs, url)
    assert again["MessageId"] == first["MessageId"]


def test_delivery_lasts_twelve_hours_in_all(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    [received] = receive(sqs, url)
    change = {"QueueUrl": url, "ReceiptHandle": received["ReceiptHandle"]}

    with pytest.raises(ClientError) as refused:
        sqs.change_message_visibility(**change, VisibilityTimeout=43_200)
    sqs.change_message_visibility(**change, VisibilityTimeout=43_190)

    assert refusal(refused.value)[:2] == (400, "InvalidParameterValue")
    assert "beyond the limit [43200 seconds]" in refusal(refused.value)[2]


def test_visibility_of_deleted_message_cannot_change(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    [received] = receive(sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=received["ReceiptHandle"])

    with pytest.raises(ClientError) as refused:
        sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=received["ReceiptHandle"], VisibilityTimeout=1
        )

    assert refusal(refused.value)[:2] == (400, "InvalidParameterValue")


def test_delayed_message_is_held_back(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=1)

    assert receive(sqs, url) == []
    assert counts(sqs, url) == (0, 0, 1)
    [received] = receive(sqs, url, WaitTimeSeconds=5)
    assert received["Body"] == "later"


def test_wait_of_call_overrides_wait_of_queue(sqs, url):
    attributes = {"ReceiveMessageWaitTimeSeconds": "1"}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    waits = []
    for options in ({}, {"WaitTimeSeconds": 0}):
        started = time.monotonic()
        assert receive(sqs, url, **options) == []
        waits.append(time.monotonic() - started)

    assert waits[0] >= 1
    assert waits[1] < 0.5


def test_purge_drops_everything_and_runs_once_per_minute(sqs, url, name):
    for delay in (0, 0, 60):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)
    receive(sqs, url)

    sqs.purge_queue(QueueUrl=url)
    with pytest.raises(ClientError) as refused:
        sqs.purge_queue(QueueUrl=url)

    assert counts(sqs, url) == (0, 0, 0)
    assert refusal(refused.value) == (
        403,
        "AWS.SimpleQueueService.PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {name} is allowed every 60 seconds.",
    )


def test_in_flight_limit_is_reported(sqs, client, name):
    client.put(f"/v1/queues/{name}", json={"in_flight_max": 1}).raise_for_status()
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    for _ in range(2):
        sqs.send_message(QueueUrl=url, MessageBody="x")
    receive(sqs, url)

    with pytest.raises(ClientError) as refused:
        receive(sqs, url)

    assert refusal(refused.value)[:2] == (403, "OverLimit")


def test_backlog_of_one_group_does_not_delay_another(sqs, url):
    for tenant, bodies in (("noisy", range(10)), ("noisy", range(10)), ("quiet", range(1))):
        entries = [
            {"Id": str(nth), "MessageBody": tenant, "MessageGroupId": tenant} for nth in bodies
        ]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)

    messages = receive(sqs, url, MaxNumberOfMessages=2)

    assert {message["Body"] for message in messages} == {"noisy", "quiet"}


# Messages of other protocols


def test_native_message_shows_headers_as_attributes(sqs, client, url, name):
    client.post(
        f"/v1/queues/{name}/messages",
        json={
            "body": "hi",
            "headers": {"color": "blue", "no name": "x", "aws.x": "y", "empty": ""},
        },
    ).raise_for_status()
    [received] = receive(sqs, url, MessageAttributeNames=["All"])

    assert received["Body"] == "hi"
    assert received["MessageAttributes"] == {"color": {"DataType": "String", "StringValue": "blue"}}


@pytest.mark.parametrize("body", [b"\xff\x00", b"bell \x07"])
def test_body_invalid_in_sqs_is_returned_as_base64(sqs, client, url, name, body):
    sent = client.post(
        f"/v1/queues/{name}/messages",
        content=body,
        headers={"content-type": "application/octet-stream"},
    )
    sent.raise_for_status()
    [received] = receive(sqs, url)

    assert base64.b64decode(received["Body"]) == body
    assert received["MD5OfBody"] == hashlib.md5(received["Body"].encode()).hexdigest()


def test_message_sent_over_sqs_is_received_natively(sqs, client, url, name):
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=ATTRIBUTES)

    [received] = client.post(f"/v1/queues/{name}/receive", json={}).json()["messages"]

    assert received["body"] == "x"
    assert received["headers"]["color"] == "blüe"


def test_native_queue_with_dot_in_name_is_reachable(sqs, client, url, name):
    client.put(f"/v1/queues/{name}.native").raise_for_status()

    queue_url = sqs.get_queue_url(QueueName=f"{name}.native")["QueueUrl"]
    sqs.send_message(QueueUrl=queue_url, MessageBody="x")

    assert len(receive(sqs, queue_url)) == 1
    assert arn_of(sqs, queue_url).endswith(f":{name}.native")


def test_full_queue_throttles_senders(sqs, client, url, name):
    """With an error that SDKs retry."""
    client.patch(f"/v1/queues/{name}", json={"messages_max": 1}).raise_for_status()
    sqs.send_message(QueueUrl=url, MessageBody="1")

    with pytest.raises(ClientError) as error_info:
        sqs.send_message(QueueUrl=url, MessageBody="2")
    with pytest.raises(ClientError) as batch:
        sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", "MessageBody": "2"}])

    for refused in (error_info, batch):
        status, code, _ = refusal(refused.value)
        assert (status, code) == (403, "RequestThrottled")


def test_parked_messages_count_as_not_visible(sqs, client, fifo_url):
    name = fifo_url.rsplit("/", 1)[1]
    sqs.send_message(
        QueueUrl=fifo_url, MessageBody="1", MessageGroupId="g", MessageDeduplicationId="1"
    )
    client.put(f"/v1/queues/{name}/groups/g/pause").raise_for_status()

    attributes = sqs.get_queue_attributes(QueueUrl=fifo_url, AttributeNames=["All"])["Attributes"]

    assert attributes["ApproximateNumberOfMessages"] == "0"
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "1"
    assert "Messages" not in sqs.receive_message(QueueUrl=fifo_url)


def test_native_put_keeps_sqs_only_attributes(sqs, client, url, name):
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"SqsManagedSseEnabled": "false"})

    client.put(f"/v1/queues/{name}", json={"delay_seconds": 3}).raise_for_status()

    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (attributes["SqsManagedSseEnabled"], attributes["DelaySeconds"]) == ("false", "3")
