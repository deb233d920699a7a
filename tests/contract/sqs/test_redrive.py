"""Dead-letter queues, and the tasks that move messages back."""

import base64
import json
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.conditions import PATIENCE_S
from tests.contract.sqs.conftest import arn_of, refusal


@pytest.fixture
def dead_url(sqs, name):
    return sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]


@pytest.fixture
def source_url(sqs, name, dead_url):
    attributes = redrive_policy(sqs, dead_url)
    return sqs.create_queue(QueueName=f"{name}-source", Attributes=attributes)["QueueUrl"]


def redrive_policy(sqs, dead_url, receives_max=1):
    policy = {"deadLetterTargetArn": arn_of(sqs, dead_url), "maxReceiveCount": receives_max}
    return {"RedrivePolicy": json.dumps(policy)}


def test_invalid_receive_count_is_named_as_it_was_sent(sqs, name, dead_url):
    """`true` was told back as `True`."""
    with pytest.raises(sqs.exceptions.ClientError, match="maxReceiveCount: true, valid values"):
        sqs.create_queue(QueueName=name, Attributes=redrive_policy(sqs, dead_url, True))


def receive(sqs, url, **options):
    response = sqs.receive_message(QueueUrl=url, AttributeNames=["All"], **options)
    return response.get("Messages", [])


def give_up(sqs, url, dead_url, count=1):
    """Dead-letter messages of the source, and wait until they are moved."""
    for nth in range(count):
        sqs.send_message(QueueUrl=url, MessageBody=str(nth))
    receive(sqs, url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    assert receive(sqs, url, MaxNumberOfMessages=10) == []
    wait_for(sqs, dead_url, count)


def ready(sqs, url):
    name = "ApproximateNumberOfMessages"
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])


def wait_for(sqs, url, count):
    give_up_at = time.monotonic() + PATIENCE_S
    while ready(sqs, url) != count:
        assert time.monotonic() < give_up_at, f"{ready(sqs, url)} messages, not {count}"
        time.sleep(0.02)


def tasks(sqs, url):
    response = sqs.list_message_move_tasks(SourceArn=arn_of(sqs, url), MaxResults=10)
    return response.get("Results", [])


def test_message_moves_to_dead_letter_queue_after_max_receives(sqs, source_url, dead_url):
    sent = sqs.send_message(QueueUrl=source_url, MessageBody="x")
    [_] = receive(sqs, source_url, VisibilityTimeout=1)
    time.sleep(1.2)

    assert (ready(sqs, source_url), ready(sqs, dead_url)) == (
        1,
        0,
    )  # an expired lease alone moves nothing
    assert receive(sqs, source_url) == []
    [dead] = receive(sqs, dead_url, WaitTimeSeconds=5)
    assert dead["MessageId"] == sent["MessageId"]
    assert dead["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(sqs, source_url)
    assert dead["Attributes"]["ApproximateReceiveCount"] == "2"


def test_dead_fifo_message_has_its_id_as_deduplication_id(sqs, name):
    fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    dead = sqs.create_queue(QueueName=f"{name}-dead.fifo", Attributes=fifo)["QueueUrl"]
    attributes = fifo | redrive_policy(sqs, dead)
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"]
    sent = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    [_] = receive(sqs, url, VisibilityTimeout=0)

    assert receive(sqs, url) == []
    [message] = receive(sqs, dead, WaitTimeSeconds=5)
    assert message["MessageId"] == sent["MessageId"]
    assert message["Attributes"]["MessageGroupId"] == "g"
    assert message["Attributes"]["MessageDeduplicationId"] == sent["MessageId"]


def test_redrive_policy_has_numbers_and_empty_text_removes_it(sqs, source_url, dead_url):
    response = sqs.get_queue_attributes(QueueUrl=source_url, AttributeNames=["RedrivePolicy"])
    sqs.set_queue_attributes(QueueUrl=source_url, Attributes={"RedrivePolicy": ""})
    after = sqs.get_queue_attributes(QueueUrl=source_url, AttributeNames=["RedrivePolicy"])

    assert json.loads(response["Attributes"]["RedrivePolicy"]) == {
        "deadLetterTargetArn": arn_of(sqs, dead_url),
        "maxReceiveCount": 1,
    }
    assert "Attributes" not in after


def test_dead_letter_queue_must_exist_match_and_allow_source(sqs, url, fifo_url, dead_url):
    policy = redrive_policy(sqs, dead_url)
    deny = {"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'}
    allow = {"redrivePermission": "byQueue", "sourceQueueArns": [arn_of(sqs, url)]}

    def reason(source, attributes):
        with pytest.raises(ClientError) as refused:
            sqs.set_queue_attributes(QueueUrl=source, Attributes=attributes)
        assert refusal(refused.value)[:2] == (400, "InvalidParameterValue")
        return refusal(refused.value)[2].partition("Reason: ")[2]

    other_type = reason(fifo_url, policy)
    missing = {"RedrivePolicy": policy["RedrivePolicy"].replace("-dead", "-none")}
    not_there = reason(url, missing)
    sqs.set_queue_attributes(QueueUrl=dead_url, Attributes=deny)
    unwilling = reason(url, policy)
    willing = {"RedriveAllowPolicy": json.dumps(allow)}
    sqs.set_queue_attributes(QueueUrl=dead_url, Attributes=willing)
    sqs.set_queue_attributes(QueueUrl=url, Attributes=policy)

    assert other_type == "Dead-letter queue must be same type of queue as the source."
    assert not_there == "Dead letter target does not exist."
    assert unwilling.endswith("RedriveAllowPolicy does not allow this source queue.")


def test_sources_of_dead_letter_queue_are_listed(sqs, source_url, dead_url):
    response = sqs.list_dead_letter_source_queues(QueueUrl=dead_url)
    none = sqs.list_dead_letter_source_queues(QueueUrl=source_url)

    assert response["queueUrls"] == [source_url]
    assert none["queueUrls"] == []


@pytest.mark.parametrize("size", [1, 2, 3])
def test_source_queues_are_listed_in_pages(sqs, source_url, dead_url, name, size):
    """A token was returned with the last page, if that was full."""
    policy = redrive_policy(sqs, dead_url)
    other_url = sqs.create_queue(QueueName=f"{name}-z", Attributes=policy)["QueueUrl"]
    urls: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = sqs.list_dead_letter_source_queues(QueueUrl=dead_url, MaxResults=size, **token)
        urls += page["queueUrls"]
        assert page["queueUrls"]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}

    assert sorted(urls) == sorted([source_url, other_url])


def test_move_task_returns_messages_to_their_source(sqs, source_url, dead_url):
    give_up(sqs, source_url, dead_url, 3)

    handle = sqs.start_message_move_task(SourceArn=arn_of(sqs, dead_url))["TaskHandle"]
    wait_for(sqs, source_url, 3)
    wait_for(sqs, dead_url, 0)
    while (task := tasks(sqs, dead_url)[0])["Status"] == "RUNNING":
        assert task["TaskHandle"] == handle
        time.sleep(0.02)

    assert task["Status"] == "COMPLETED"
    assert task["ApproximateNumberOfMessagesMoved"] == 3
    assert task["SourceArn"] == arn_of(sqs, dead_url)
    assert not task.keys() & {"TaskHandle", "DestinationArn", "FailureReason"}


def test_move_task_fails_for_message_without_source(sqs, source_url, dead_url):
    """A message sent to the dead-letter queue itself was reported as a queue that is missing."""
    sqs.send_message(QueueUrl=dead_url, MessageBody="direct")

    sqs.start_message_move_task(SourceArn=arn_of(sqs, dead_url))
    while (task := tasks(sqs, dead_url)[0])["Status"] == "RUNNING":
        time.sleep(0.02)

    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert ready(sqs, dead_url) == 1


def test_move_task_accepts_destination_and_rate(sqs, source_url, dead_url, name):
    give_up(sqs, source_url, dead_url)
    other = sqs.create_queue(QueueName=f"{name}-other")["QueueUrl"]

    sqs.start_message_move_task(
        SourceArn=arn_of(sqs, dead_url),
        DestinationArn=arn_of(sqs, other),
        MaxNumberOfMessagesPerSecond=100,
    )
    wait_for(sqs, other, 1)

    [task] = tasks(sqs, dead_url)
    assert task["DestinationArn"] == arn_of(sqs, other)
    assert task["MaxNumberOfMessagesPerSecond"] == 100


def test_running_move_task_is_exclusive_and_cancellable(sqs, source_url, dead_url):
    give_up(sqs, source_url, dead_url, 10)
    arn = arn_of(sqs, dead_url)
    handle = sqs.start_message_move_task(SourceArn=arn, MaxNumberOfMessagesPerSecond=1)[
        "TaskHandle"
    ]
    with pytest.raises(ClientError) as second:
        sqs.start_message_move_task(SourceArn=arn)
    moved = sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    while (task := tasks(sqs, dead_url)[0])["Status"] == "CANCELLING":
        time.sleep(0.02)

    assert refusal(second.value)[1:] == (
        "InvalidParameterValue",
        "There is already a task running. Only one active task is allowed for a source queue arn at a "
        "given time.",
    )
    assert task["Status"] == "CANCELLED"
    assert moved < 10
    assert ready(sqs, dead_url) > 0


def test_invalid_move_task_is_rejected(sqs, url, source_url, dead_url):
    arn, missing = arn_of(sqs, url), arn_of(sqs, url) + "-none"
    dead = arn_of(sqs, dead_url)
    cases: list[tuple[Any, dict[str, Any], int, str]] = [
        (sqs.start_message_move_task, {"SourceArn": "x"}, 400, "InvalidParameterValue"),
        (sqs.start_message_move_task, {"SourceArn": arn}, 400, "InvalidParameterValue"),
        (sqs.start_message_move_task, {"SourceArn": missing}, 404, "ResourceNotFoundException"),
        (sqs.start_message_move_task, {"SourceArn": dead, "DestinationArn": missing}, 404, "ResourceNotFoundException"),
        (sqs.start_message_move_task, {"SourceArn": dead, "MaxNumberOfMessagesPerSecond": 501}, 400, "InvalidParameterValue"),
        (sqs.list_message_move_tasks, {"SourceArn": missing}, 404, "ResourceNotFoundException"),
        (sqs.list_message_move_tasks, {"SourceArn": dead, "MaxResults": 11}, 400, "InvalidParameterValue"),
        (sqs.cancel_message_move_task, {"TaskHandle": "x"}, 400, "InvalidParameterValue"),
    ]  # fmt: skip

    for operation, parameters, status, code in cases:
        with pytest.raises(ClientError) as refused:
            operation(**parameters)
        assert refusal(refused.value)[:2] == (status, code), parameters


def test_move_task_fails_with_reason_when_destination_is_deleted(sqs, name, source_url, dead_url):
    give_up(sqs, source_url, dead_url)
    attributes = redrive_policy(sqs, dead_url)
    sqs.create_queue(QueueName=f"{name}-another", Attributes=attributes)
    sqs.delete_queue(QueueUrl=source_url)

    sqs.start_message_move_task(SourceArn=arn_of(sqs, dead_url))
    while (task := tasks(sqs, dead_url)[0])["Status"] == "RUNNING":
        time.sleep(0.02)

    assert task["Status"] == "FAILED"
    assert task["FailureReason"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert ready(sqs, dead_url) == 1


def test_forged_task_handle_of_another_queue_is_rejected(sqs, url, source_url, dead_url):
    give_up(sqs, source_url, dead_url, 3)
    started = sqs.start_message_move_task(
        SourceArn=arn_of(sqs, dead_url), MaxNumberOfMessagesPerSecond=1
    )
    body = json.loads(base64.b64decode(started["TaskHandle"]))
    forged = json.dumps({**body, "sourceArn": arn_of(sqs, url)}).encode()

    with pytest.raises(ClientError) as refused:
        sqs.cancel_message_move_task(TaskHandle=base64.b64encode(forged).decode())
    sqs.cancel_message_move_task(TaskHandle=started["TaskHandle"])

    assert refusal(refused.value)[:2] == (404, "ResourceNotFoundException")
