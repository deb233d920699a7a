"""Every operation over the Query protocol: parameters in, XML out."""

import hashlib
import json
import time

from tests.conditions import PATIENCE_S
from tests.contract.sqs.conftest import arn_of, map_of, text_of, texts_of

ATTRIBUTE = {
    "MessageAttribute__1__Name": "n",
    "MessageAttribute__1__Value__DataType": "Number",
    "MessageAttribute__1__Value__StringValue": "007",
    "MessageAttribute__2__Name": "b",
    "MessageAttribute__2__Value__DataType": "Binary",
    "MessageAttribute__2__Value__BinaryValue": "AAE=",
}


def test_queues_are_created_found_listed_and_deleted(sqs, query, name):
    created = query.call(
        "CreateQueue",
        QueueName=name,
        Attribute__1__Name="DelaySeconds",
        Attribute__1__Value=5,
        Tag__1__Key="team",
        Tag__1__Value="a",
    )
    url = text_of(created, "QueueUrl")
    response = query.call("GetQueueUrl", QueueName=name)
    listed = query.call("ListQueues", QueueNamePrefix=name)
    attributes = query.call("GetQueueAttributes", QueueUrl=url, AttributeName__1="DelaySeconds")
    tags = query.call("ListQueueTags", QueueUrl=url)
    query.call("DeleteQueue", QueueUrl=url)

    assert text_of(response, "QueueUrl") == url
    assert texts_of(listed, "QueueUrl") == [url]
    assert map_of(attributes, "Attribute") == {"DelaySeconds": "5"}
    assert map_of(tags, "Tag", "Key") == {"team": "a"}
    assert query.error("GetQueueUrl", QueueName=name) == (
        400,
        "AWS.SimpleQueueService.NonExistentQueue",
        "The specified queue does not exist for this wsdl version.",
    )


def test_pages_have_tokens(sqs, query, name):
    for nth in range(2):
        query.call("CreateQueue", QueueName=f"{name}-{nth}")
    first = query.call("ListQueues", QueueNamePrefix=f"{name}-", MaxResults=1)
    token = text_of(first, "NextToken")
    second = query.call("ListQueues", QueueNamePrefix=f"{name}-", MaxResults=1, NextToken=token)

    assert text_of(second, "QueueUrl").endswith(f"{name}-1")


def test_attributes_tags_and_permissions_change(query, url):
    query.call(
        "SetQueueAttributes",
        QueueUrl=url,
        Attribute__1__Name="DelaySeconds",
        Attribute__1__Value=1,
        Attribute__2__Name="VisibilityTimeout",
        Attribute__2__Value=2,
    )
    query.call("TagQueue", QueueUrl=url, Tag__1__Key="a", Tag__1__Value="b", Tag__2__Key="c")
    query.call("UntagQueue", QueueUrl=url, TagKey__1="c")
    query.call(
        "AddPermission",
        QueueUrl=url,
        Label="one",
        AWSAccountId__1="111111111111",
        ActionName__1="SendMessage",
        ActionName__2="ReceiveMessage",
    )
    with_policy = query.call("GetQueueAttributes", QueueUrl=url, AttributeName__1="All")
    query.call("RemovePermission", QueueUrl=url, Label="one")
    tags = query.call("ListQueueTags", QueueUrl=url)

    told = map_of(with_policy, "Attribute")
    assert (told["DelaySeconds"], told["VisibilityTimeout"]) == ("1", "2")
    assert len(json.loads(told["Policy"])["Statement"][0]["Action"]) == 2
    assert map_of(tags, "Tag", "Key") == {"a": "b"}


def test_message_is_processed_at_path_of_queue(query, url):
    path = "/" + url.split("/", 3)[3]
    sent = query.call("SendMessage", path, MessageBody="<é>\r\n", **ATTRIBUTE)
    received = query.call(
        "ReceiveMessage",
        path,
        AttributeName__1="All",
        MessageAttributeName__1="All",
        VisibilityTimeout=30,
    )
    handle = text_of(received, "Message/ReceiptHandle")
    query.call("ChangeMessageVisibility", path, ReceiptHandle=handle, VisibilityTimeout=60)
    query.call("DeleteMessage", path, ReceiptHandle=handle)

    assert text_of(sent, "MD5OfMessageBody") == hashlib.md5("<é>\r\n".encode()).hexdigest()
    assert text_of(received, "Message/Body") == "<é>\r\n"
    assert text_of(received, "Message/MessageId") == text_of(sent, "MessageId")
    digest = text_of(received, "Message/MD5OfMessageAttributes")
    assert digest == text_of(sent, "MD5OfMessageAttributes")
    assert texts_of(received, "Message/MessageAttribute/Name") == ["n", "b"]
    assert texts_of(received, "Message/MessageAttribute/Value/StringValue") == ["007"]
    assert texts_of(received, "Message/MessageAttribute/Value/BinaryValue") == ["AAE="]
    message = received.find("*")
    assert message is not None
    assert map_of(message, "Attribute")["ApproximateReceiveCount"] == "1"
    assert len(query.call("ReceiveMessage", path)) == 0


def test_batches_are_answered_entry_by_entry(query, url):
    sent = query.call(
        "SendMessageBatch",
        QueueUrl=url,
        SendMessageBatchRequestEntry__1__Id="a",
        SendMessageBatchRequestEntry__1__MessageBody="x",
        SendMessageBatchRequestEntry__2__Id="b",
        SendMessageBatchRequestEntry__2__MessageBody="bell \x07",
    )
    received = query.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    handle = text_of(received, "Message/ReceiptHandle")
    answers = {}
    for action, change in (("ChangeMessageVisibility", True), ("DeleteMessage", False)):
        form: dict[str, object] = {}
        for nth, (name, told) in enumerate([("a", handle), ("b", "x")], 1):
            entry = f"{action}BatchRequestEntry__{nth}"
            form |= {f"{entry}__Id": name, f"{entry}__ReceiptHandle": told}
            form |= {f"{entry}__VisibilityTimeout": 9} if change else {}
        answers[action] = query.call(f"{action}Batch", QueueUrl=url, **form)

    assert texts_of(sent, "SendMessageBatchResultEntry/Id") == ["a"]
    assert texts_of(sent, "BatchResultErrorEntry/Code") == ["InvalidMessageContents"]
    assert texts_of(sent, "BatchResultErrorEntry/SenderFault") == ["true"]
    for action, answer in answers.items():
        assert texts_of(answer, f"{action}BatchResultEntry/Id") == ["a"]
        assert texts_of(answer, "BatchResultErrorEntry/Code") == ["ReceiptHandleIsInvalid"]


def test_queue_is_purged(query, url):
    query.call("SendMessage", QueueUrl=url, MessageBody="x")
    query.call("PurgeQueue", QueueUrl=url)

    assert query.error("PurgeQueue", QueueUrl=url)[:2] == (
        403,
        "AWS.SimpleQueueService.PurgeQueueInProgress",
    )
    assert len(query.call("ReceiveMessage", QueueUrl=url)) == 0


def test_dead_letters_are_listed_and_moved(sqs, query, name, url):
    dead = text_of(query.call("CreateQueue", QueueName=f"{name}-dead"), "QueueUrl")
    arn = arn_of(sqs, dead)
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    query.call(
        "SetQueueAttributes", QueueUrl=url, Attribute__Name="RedrivePolicy", Attribute__Value=policy
    )
    sources = query.call("ListDeadLetterSourceQueues", QueueUrl=dead)
    for nth in range(3):
        query.call("SendMessage", QueueUrl=dead, MessageBody=nth)
    started = query.call(
        "StartMessageMoveTask",
        SourceArn=arn,
        DestinationArn=arn_of(sqs, url),
        MaxNumberOfMessagesPerSecond=1,
    )
    handle = text_of(started, "TaskHandle")
    running = query.call("ListMessageMoveTasks", SourceArn=arn)
    cancelled = query.call("CancelMessageMoveTask", TaskHandle=handle)
    give_up_at = time.monotonic() + PATIENCE_S
    entry = "ListMessageMoveTasksResultEntry"
    while (
        text_of(query.call("ListMessageMoveTasks", SourceArn=arn), f"{entry}/Status") != "CANCELLED"
    ):
        assert time.monotonic() < give_up_at

    assert texts_of(sources, "QueueUrl") == [url]
    assert text_of(running, f"{entry}/Status") == "RUNNING"
    assert text_of(running, f"{entry}/TaskHandle") == handle
    assert text_of(running, f"{entry}/SourceArn") == arn
    assert int(text_of(cancelled, "ApproximateNumberOfMessagesMoved")) < 3


def test_get_request_is_accepted(client, url):
    query = "Action=SendMessage&Version=2012-11-05&MessageBody=hello"
    at_its_path = client.get(f"{url}?{query}")
    at_the_root = client.get("/", params={"Action": "ReceiveMessage", "QueueUrl": url})

    assert at_its_path.status_code == at_the_root.status_code == 200
    assert b"<MD5OfMessageBody>5d41402abc4b2a76b9719d911017c592<" in at_its_path.content
    assert b"<Body>hello</Body>" in at_the_root.content
