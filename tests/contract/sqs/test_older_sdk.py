"""botocore with SQS's service model from before 2023, which uses the Query protocol.

Today's model is changed back: its protocol, and the names that lists and maps had.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import boto3
import botocore
import botocore.session
import pytest
from botocore.exceptions import ClientError

from tests.contract.sqs.conftest import refusal

LISTS = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "BinaryList": "BinaryListValue",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "StringList": "StringListValue",
    "TagKeyList": "TagKey",
}
MAPS = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}


def older_model() -> dict[str, Any]:
    [file] = (Path(botocore.__file__).parent / "data/sqs/2012-11-05").glob("service-2.json*")
    model: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    model["metadata"] |= {
        "protocol": "query",
        "protocols": ["query"],
        "xmlNamespace": "http://queue.amazonaws.com/doc/2012-11-05/",
    }
    del model["metadata"]["awsQueryCompatible"]
    shapes = model["shapes"]
    for name, item in LISTS.items():
        shapes[name] |= {"flattened": True}
        shapes[name]["member"]["locationName"] = item
    for name, (_, key, value) in MAPS.items():
        shapes[name]["key"]["locationName"] = key
        shapes[name]["value"]["locationName"] = value
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in MAPS:
                member["locationName"] = MAPS[member["shape"]][0]
    for operation in model["operations"].values():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{operation['name']}Result"
    return model


@pytest.fixture(scope="module")
def older(service_url, tmp_path_factory):
    """boto3's client with that model."""
    data = tmp_path_factory.mktemp("models")
    folder = data / "sqs" / "2012-11-05"
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(older_model()))
    session = botocore.session.Session()
    session.set_config_variable("data_path", str(data))
    client = boto3.Session(botocore_session=session).client(
        "sqs",
        endpoint_url=service_url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    assert client.meta.service_model.protocol == "query"
    yield client
    client.close()


def test_messages_with_attributes_round_trip(older, url):
    attributes = {
        "text": {"DataType": "String", "StringValue": "<é>\r\n"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    sent = older.send_message(QueueUrl=url, MessageBody="<x> & é", MessageAttributes=attributes)
    told = older.receive_message(
        QueueUrl=url,
        AttributeNames=["All"],
        MessageSystemAttributeNames=["SentTimestamp"],
        MessageAttributeNames=["All"],
    )
    [received] = told["Messages"]

    assert received["Body"] == "<x> & é"
    assert received["MessageAttributes"] == attributes
    assert received["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert received["Attributes"]["ApproximateReceiveCount"] == "1"


def test_batches_round_trip(older, url):
    sent = older.send_message_batch(
        QueueUrl=url,
        Entries=[{"Id": "a", "MessageBody": "x"}, {"Id": "b", "MessageBody": "y\x0b"}],
    )
    [received] = older.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    handle = {"Id": "a", "ReceiptHandle": received["ReceiptHandle"]}
    changed = older.change_message_visibility_batch(
        QueueUrl=url, Entries=[{**handle, "VisibilityTimeout": 60}]
    )
    deleted = older.delete_message_batch(
        QueueUrl=url, Entries=[handle, {"Id": "b", "ReceiptHandle": "x"}]
    )

    assert [one["Id"] for one in sent["Successful"]] == ["a"]
    assert [(one["Id"], one["SenderFault"]) for one in sent["Failed"]] == [("b", True)]
    assert [one["Id"] for one in changed["Successful"]] == ["a"]
    assert [one["Id"] for one in deleted["Successful"]] == ["a"]
    assert [one["Code"] for one in deleted["Failed"]] == ["ReceiptHandleIsInvalid"]


def test_queues_are_configured_tagged_and_listed(older, name):
    attributes = {"DelaySeconds": "5", "VisibilityTimeout": "7"}
    url = older.create_queue(QueueName=name, Attributes=attributes, tags={"a": "b"})["QueueUrl"]
    older.tag_queue(QueueUrl=url, Tags={"c": "d", "e": "f"})
    older.untag_queue(QueueUrl=url, TagKeys=["a", "c"])
    older.add_permission(
        QueueUrl=url, Label="one", AWSAccountIds=["1" * 12], Actions=["SendMessage"]
    )
    returned_attributes = older.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])[
        "Attributes"
    ]

    assert returned_attributes.items() >= attributes.items()
    assert "SQS:SendMessage" in returned_attributes["Policy"]
    assert older.list_queue_tags(QueueUrl=url)["Tags"] == {"e": "f"}
    assert older.list_queues(QueueNamePrefix=name)["QueueUrls"] == [url]
    assert older.list_dead_letter_source_queues(QueueUrl=url).get("queueUrls", []) == []


def test_unknown_queue_has_older_error_code(older):
    url = "http://localhost/123456789012/none"
    with pytest.raises(ClientError) as refused:
        older.send_message(QueueUrl=url, MessageBody="x")

    assert refusal(refused.value) == (
        400,
        "AWS.SimpleQueueService.NonExistentQueue",
        "The specified queue does not exist for this wsdl version.",
    )
