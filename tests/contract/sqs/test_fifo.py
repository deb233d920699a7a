"""FIFO queues: order within groups, one delivery at a time, one message per deduplication id."""

import time

import pytest
from botocore.exceptions import ClientError

from tests.contract.sqs.conftest import refusal


def send(sqs, url, body, group="g", **options):
    return sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=group, **options)


def receive(sqs, url, messages_max=10, **options):
    response = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=messages_max, **options)
    return response.get("Messages", [])


def bodies(messages):
    return [message["Body"] for message in messages]


def delete(sqs, url, message):
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_sequence_numbers_have_twenty_digits_and_increase(sqs, fifo_url):
    numbers = [send(sqs, fifo_url, body)["SequenceNumber"] for body in ("a", "b")]
    received = receive(sqs, fifo_url, AttributeNames=["All"])

    assert [len(number) for number in numbers] == [20, 20]
    assert int(numbers[0]) < int(numbers[1])
    assert [message["Attributes"]["SequenceNumber"] for message in received] == numbers


def test_repeat_returns_first_result_and_adds_nothing(sqs, fifo_url):
    first = send(sqs, fifo_url, "a", MessageDeduplicationId="d")
    again = send(sqs, fifo_url, "other", MessageDeduplicationId="d")
    delete(sqs, fifo_url, receive(sqs, fifo_url)[0])
    late = send(sqs, fifo_url, "a", MessageDeduplicationId="d")

    assert first["MessageId"] == again["MessageId"] == late["MessageId"]
    assert first["SequenceNumber"] == again["SequenceNumber"]
    assert receive(sqs, fifo_url) == []


def test_content_hash_is_default_deduplication_id(sqs, fifo_url):
    attributes = {"a": {"DataType": "String", "StringValue": "x"}}
    first = send(sqs, fifo_url, "hello")
    again = send(sqs, fifo_url, "hello", MessageAttributes=attributes)
    [received] = receive(sqs, fifo_url, AttributeNames=["MessageDeduplicationId"])

    assert first["MessageId"] == again["MessageId"]
    assert received["Attributes"]["MessageDeduplicationId"] == (
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    )


def test_group_scope_allows_same_id_in_two_groups(sqs, name):
    attributes = {"FifoQueue": "true", "DeduplicationScope": "messageGroup"}
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"]
    ids = [
        send(sqs, url, "x", group, MessageDeduplicationId="d")["MessageId"]
        for group in ("g", "h", "g")
    ]

    assert ids[0] == ids[2] != ids[1]


def test_group_is_drained_before_next(sqs, fifo_url):
    for body, group in [("1", "g"), ("2", "g"), ("3", "g"), ("4", "h")]:
        send(sqs, fifo_url, body, group)

    assert bodies(receive(sqs, fifo_url, 4)) == ["1", "2", "3", "4"]


def test_group_stays_locked_while_message_is_in_flight(sqs, fifo_url):
    for body in ("1", "2", "3"):
        send(sqs, fifo_url, body)
    first, second = receive(sqs, fifo_url, 2)

    delete(sqs, fifo_url, first)
    assert receive(sqs, fifo_url) == []
    delete(sqs, fifo_url, second)
    assert bodies(receive(sqs, fifo_url)) == ["3"]


def test_only_messages_before_invisible_one_are_redelivered(sqs, fifo_url):
    for body in ("1", "2", "3"):
        send(sqs, fifo_url, body)
    first, _, third = receive(sqs, fifo_url)
    for message in (third, first):
        sqs.change_message_visibility(
            QueueUrl=fifo_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )

    assert bodies(receive(sqs, fifo_url)) == ["1"]


def test_handle_ends_with_its_delivery(sqs, fifo_url):
    send(sqs, fifo_url, "x")
    [received] = receive(sqs, fifo_url, VisibilityTimeout=1)

    time.sleep(1.1)
    with pytest.raises(ClientError) as refused:
        delete(sqs, fifo_url, received)

    handle = received["ReceiptHandle"]
    assert refusal(refused.value) == (
        400,
        "InvalidParameterValue",
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
    )
    assert bodies(receive(sqs, fifo_url)) == ["x"]


def test_repeated_attempt_id_returns_same_messages(sqs, fifo_url):
    send(sqs, fifo_url, "x")

    first = receive(sqs, fifo_url, ReceiveRequestAttemptId="try")
    again = receive(sqs, fifo_url, ReceiveRequestAttemptId="try")
    other = receive(sqs, fifo_url, ReceiveRequestAttemptId="another")

    assert [one["ReceiptHandle"] for one in first] == [one["ReceiptHandle"] for one in again]
    assert other == []


@pytest.mark.parametrize("change", ["delete", "extend", "release"])
def test_attempt_id_is_rejected_after_change(sqs, fifo_url, change):
    """Other messages were received as if nothing of the attempt was changed."""
    send(sqs, fifo_url, "x")
    send(sqs, fifo_url, "y")
    [received] = receive(sqs, fifo_url, messages_max=1, ReceiveRequestAttemptId="try")
    handle = {"QueueUrl": fifo_url, "ReceiptHandle": received["ReceiptHandle"]}
    if change == "delete":
        sqs.delete_message(**handle)
    else:
        seconds = 60 if change == "extend" else 0
        sqs.change_message_visibility(**handle, VisibilityTimeout=seconds)

    with pytest.raises(ClientError) as refused:
        receive(sqs, fifo_url, ReceiveRequestAttemptId="try")

    assert refusal(refused.value) == (
        400,
        "InvalidParameterValue",
        "Value try for parameter ReceiveRequestAttemptId is invalid. Reason: Messages of this attempt "
        "were deleted or their visibility timeout was changed.",
    )
    assert receive(sqs, fifo_url, ReceiveRequestAttemptId="next") != [] or change == "extend"


def test_queue_delay_applies_to_every_message(sqs, fifo_url):
    sqs.set_queue_attributes(QueueUrl=fifo_url, Attributes={"DelaySeconds": "1"})
    send(sqs, fifo_url, "x", DelaySeconds=0)

    assert receive(sqs, fifo_url) == []
    assert bodies(receive(sqs, fifo_url, WaitTimeSeconds=5)) == ["x"]


def test_changed_queue_delay_is_retroactive(sqs, fifo_url):
    """The messages kept the delay of their sending; standard queues do so on AWS, too."""
    sqs.set_queue_attributes(QueueUrl=fifo_url, Attributes={"DelaySeconds": "900"})
    send(sqs, fifo_url, "x")
    send(sqs, fifo_url, "y")
    early = receive(sqs, fifo_url)
    sqs.set_queue_attributes(QueueUrl=fifo_url, Attributes={"DelaySeconds": "0"})
    send(sqs, fifo_url, "z")

    assert early == []
    assert bodies(receive(sqs, fifo_url)) == ["x", "y", "z"]


def test_ready_messages_are_delayed_by_changed_queue_delay(sqs, fifo_url):
    send(sqs, fifo_url, "x")
    sqs.set_queue_attributes(QueueUrl=fifo_url, Attributes={"DelaySeconds": "900"})
    names = ["ApproximateNumberOfMessagesDelayed"]
    counts = sqs.get_queue_attributes(QueueUrl=fifo_url, AttributeNames=names)["Attributes"]

    assert receive(sqs, fifo_url) == []
    assert counts == {"ApproximateNumberOfMessagesDelayed": "1"}


def test_changed_delay_of_standard_queue_is_not_retroactive(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "900"})

    assert bodies(receive(sqs, url)) == ["x"]


def test_purge_forgets_deduplication_ids(sqs, fifo_url):
    send(sqs, fifo_url, "x", MessageDeduplicationId="d")
    sqs.purge_queue(QueueUrl=fifo_url)
    send(sqs, fifo_url, "y", MessageDeduplicationId="d")

    assert bodies(receive(sqs, fifo_url)) == ["y"]


def test_batch_entries_are_rejected_individually(sqs, name):
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    good = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    response = sqs.send_message_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "good", **good},
            {"Id": "bad-group", **good, "MessageGroupId": "ü"},
            {"Id": "delayed", **good, "DelaySeconds": 1},
        ],
    )

    assert [one["Id"] for one in response["Successful"]] == ["good"]
    assert {one["Id"]: one["Code"] for one in response["Failed"]} == {
        "bad-group": "InvalidParameterValue",
        "delayed": "InvalidParameterValue",
    }


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ("MessageGroupId", "The request must contain the parameter MessageGroupId."),
        (
            "MessageDeduplicationId",
            "The queue should either have ContentBasedDeduplication enabled or "
            "MessageDeduplicationId provided explicitly",
        ),
    ],
)
def test_batch_with_entry_lacking_group_or_id_is_rejected(sqs, name, lacks, message):
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    good = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    bad = {name: value for name, value in good.items() if name != lacks}

    with pytest.raises(ClientError) as refused:
        sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", **good}, {"Id": "2", **bad}])

    assert refusal(refused.value) == (400, "InvalidParameterValue", message)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
