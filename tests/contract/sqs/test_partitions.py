"""Queues with partitions, created by REST and driven by unmodified boto3."""

from typing import Any

import pytest

PARTITIONS = 4


@pytest.fixture
def url(sqs: Any, client: Any, name: str) -> str:
    """The URL of a standard queue with partitions."""
    client.put(f"/v1/queues/{name}", json={"partitions": PARTITIONS}).raise_for_status()
    return str(sqs.get_queue_url(QueueName=name)["QueueUrl"])


@pytest.fixture
def fifo_url(sqs: Any, client: Any, name: str) -> str:
    """The URL of a FIFO queue with partitions."""
    config = {
        "type": "fifo",
        "partitions": PARTITIONS,
        "dedup_scope": "group",
        "deduplicate_by_content": True,
    }
    client.put(f"/v1/queues/{name}.fifo", json=config).raise_for_status()
    return str(sqs.get_queue_url(QueueName=f"{name}.fifo")["QueueUrl"])


def send(sqs: Any, url: str, bodies: range) -> list[Any]:
    return [sqs.send_message(QueueUrl=url, MessageBody=str(body)) for body in bodies]


def send_to_group(sqs: Any, url: str, body: object, group: str) -> Any:
    return sqs.send_message(QueueUrl=url, MessageBody=str(body), MessageGroupId=group)


def receive(sqs: Any, url: str, **options: Any) -> list[Any]:
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], **options
    )
    return list(answer.get("Messages", []))


def delete(sqs: Any, url: str, messages: list[Any]) -> Any:
    entries = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
        for number, message in enumerate(messages)
    ]
    return sqs.delete_message_batch(QueueUrl=url, Entries=entries)


def drain(sqs: Any, url: str) -> list[Any]:
    """Receive and delete messages until there are none."""
    messages: list[Any] = []
    while received := receive(sqs, url):
        messages += received
        assert "Failed" not in delete(sqs, url, received)
    return messages


def attributes_of(sqs: Any, url: str) -> dict[str, str]:
    return dict(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"])


def test_attributes_are_those_of_one_queue(sqs, client, url, name):
    send(sqs, url, range(8))
    in_flight = len(receive(sqs, url)[:10])
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "77"})
    sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "77"})

    attributes = attributes_of(sqs, url)

    assert attributes["VisibilityTimeout"] == "77"
    assert attributes["ApproximateNumberOfMessages"] == str(8 - in_flight)
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == str(in_flight)
    assert client.get(f"/v1/queues/{name}").json()["partitions"] == PARTITIONS


def test_each_message_is_received_once(sqs, url):
    sent = send(sqs, url, range(25))

    received = drain(sqs, url)

    assert sorted(one["MessageId"] for one in received) == sorted(one["MessageId"] for one in sent)


def test_batch_is_answered_by_entry(sqs, url):
    send(sqs, url, range(8))
    received: list[Any] = []
    while taken := receive(sqs, url):
        received += taken
    entries = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
        for number, message in enumerate(received)
    ]
    wrong = {"Id": "wrong", "ReceiptHandle": "AAAA", "VisibilityTimeout": 0}

    changed = sqs.change_message_visibility_batch(QueueUrl=url, Entries=[*entries, wrong])

    assert sorted(one["Id"] for one in changed["Successful"]) == [str(nth) for nth in range(8)]
    assert [one["Id"] for one in changed["Failed"]] == ["wrong"]
    assert len(drain(sqs, url)) == 8


def test_groups_keep_order_and_their_sequence_numbers_rise(sqs, fifo_url):
    sent: dict[str, list[str]] = {}
    for number in range(24):
        group = f"g{number % 6}"
        answer = send_to_group(sqs, fifo_url, number, group)
        sent.setdefault(group, []).append(answer["SequenceNumber"])

    received = drain(sqs, fifo_url)

    assert len(received) == 24
    for group, numbers in sent.items():
        of_group = [
            one["Attributes"]["SequenceNumber"]
            for one in received
            if one["Attributes"]["MessageGroupId"] == group
        ]
        assert of_group == numbers == sorted(numbers)
        assert {len(number) for number in numbers} == {20}


def test_repeat_in_group_is_no_new_message(sqs, fifo_url):
    first = [send_to_group(sqs, fifo_url, "same", f"g{number}") for number in range(6)]
    again = [send_to_group(sqs, fifo_url, "same", f"g{number}") for number in range(6)]

    assert [one["MessageId"] for one in again] == [one["MessageId"] for one in first]
    assert len({one["MessageId"] for one in first}) == 6
    assert len(drain(sqs, fifo_url)) == 6


def test_batch_of_many_groups_is_sent(sqs, fifo_url):
    entries = [
        {"Id": str(number), "MessageBody": str(number), "MessageGroupId": f"g{number}"}
        for number in range(10)
    ]

    answer = sqs.send_message_batch(QueueUrl=fifo_url, Entries=entries)

    assert [one["Id"] for one in answer["Successful"]] == [str(number) for number in range(10)]
    assert sorted(int(one["Body"]) for one in drain(sqs, fifo_url)) == list(range(10))


def test_repeated_attempt_id_returns_same_messages(sqs, fifo_url):
    for number in range(8):
        send_to_group(sqs, fifo_url, number, f"g{number}")

    first = receive(sqs, fifo_url, ReceiveRequestAttemptId="a")
    again = receive(sqs, fifo_url, ReceiveRequestAttemptId="a")
    others = receive(sqs, fifo_url, ReceiveRequestAttemptId="b")

    ids = [{one["MessageId"] for one in messages} for messages in (first, again, others)]
    assert ids[0]
    assert ids[0] == ids[1]
    assert not ids[0] & ids[2]


def test_long_poll_waits_for_any_partition(sqs, url):
    assert receive(sqs, url, WaitTimeSeconds=1) == []
    for number in range(PARTITIONS):
        send(sqs, url, range(number, number + 1))
        [message] = receive(sqs, url, WaitTimeSeconds=20)
        assert message["Body"] == str(number)
        delete(sqs, url, [message])


def test_move_task_returns_messages_of_every_partition(sqs, client, url, name):
    """They go back to a source of other partitions."""
    dead_letters = {"queue": name, "receives_max": 1}
    config = {"partitions": 3, "dead_letters": dead_letters, "visibility_timeout_seconds": 0}
    client.put(f"/v1/queues/{name}-source", json=config).raise_for_status()
    source_url = sqs.get_queue_url(QueueName=f"{name}-source")["QueueUrl"]
    send(sqs, source_url, range(9))
    while int(attributes_of(sqs, url)["ApproximateNumberOfMessages"]) < 9:
        receive(sqs, source_url)
    client.patch(f"/v1/queues/{name}-source", json={"visibility_timeout_seconds": 30})

    sqs.start_message_move_task(SourceArn=attributes_of(sqs, url)["QueueArn"])
    received: list[Any] = []
    while len(received) < 9:
        taken = receive(sqs, source_url, WaitTimeSeconds=10)
        assert taken, "the move has stopped"
        received += taken

    assert sorted(one["Body"] for one in received) == [str(number) for number in range(9)]


def test_purge_deletes_messages_of_every_partition(sqs, url):
    send(sqs, url, range(8))

    sqs.purge_queue(QueueUrl=url)

    assert receive(sqs, url) == []
