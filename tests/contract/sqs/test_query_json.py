"""The Query protocol with `Accept: application/json`, as API Gateway and axios send it."""

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from api.aws.protocol.shapes import plan_of
from api.aws.sqs.service import SQS
from tests.contract.sqs.conftest import NAMESPACE, arn_of

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ACCEPT = {"accept": "application/json, text/plain, */*"}


def post(client, action, **parameters):
    form = {name.replace("__", "."): str(value) for name, value in parameters.items()}
    return client.post("/", data={"Action": action, **form}, headers=ACCEPT)


def result_of(client, action, **parameters) -> Any:
    """Return the result of a call; None if it has none."""
    answer = post(client, action, **parameters)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    [(name, members)] = answer.json().items()
    assert name == f"{action}Response"
    request_id = members.pop("ResponseMetadata").pop("RequestId")
    assert UUID.fullmatch(request_id)
    assert request_id == answer.headers["x-amzn-requestid"]
    assert members.keys() <= {f"{action}Result"}
    return members.get(f"{action}Result")


def test_queues_are_listed_and_described(client, sqs, name, url):
    listed = result_of(client, "ListQueues", QueueNamePrefix=name)
    attributes = result_of(client, "GetQueueAttributes", QueueUrl=url, AttributeName="QueueArn")
    tagged = result_of(client, "TagQueue", QueueUrl=url, Tag__1__Key="a", Tag__1__Value="b")
    tags = result_of(client, "ListQueueTags", QueueUrl=url)

    assert listed == {"NextToken": None, "queueUrls": [url]}
    assert attributes == {"Attributes": [{"Name": "QueueArn", "Value": arn_of(sqs, url)}]}
    assert tagged is None
    assert tags == {"Tags": [{"Key": "a", "Value": "b"}]}


def test_message_is_sent_and_received(client, url):
    empty = result_of(client, "ReceiveMessage", QueueUrl=url)
    sent = result_of(client, "SendMessage", QueueUrl=url, MessageBody="hello")
    [received] = result_of(client, "ReceiveMessage", QueueUrl=url)["messages"]

    assert empty == {"messages": None}
    assert sent == {
        "MD5OfMessageAttributes": None,
        "MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592",
        "MD5OfMessageSystemAttributes": None,
        "MessageId": sent["MessageId"],
        "SequenceNumber": None,
    }
    assert received == {
        "Attributes": None,
        "Body": "hello",
        "MD5OfBody": sent["MD5OfMessageBody"],
        "MD5OfMessageAttributes": None,
        "MessageAttributes": None,
        "MessageId": sent["MessageId"],
        "ReceiptHandle": received["ReceiptHandle"],
    }


def test_attributes_of_messages_are_entries(client, url):
    attribute = {
        "MessageAttribute__1__Name": "n",
        "MessageAttribute__1__Value__DataType": "Binary",
        "MessageAttribute__1__Value__BinaryValue": "AAE=",
    }
    result_of(client, "SendMessage", QueueUrl=url, MessageBody="x", **attribute)
    receive = {"AttributeName": "ApproximateReceiveCount", "MessageAttributeName": "All"}
    [received] = result_of(client, "ReceiveMessage", QueueUrl=url, **receive)["messages"]

    assert received["Attributes"] == [{"Name": "ApproximateReceiveCount", "Value": "1"}]
    [entry] = received["MessageAttributes"]
    assert entry["Name"] == "n"
    assert (entry["Value"]["DataType"], entry["Value"]["BinaryValue"]) == ("Binary", "AAE=")


@pytest.mark.parametrize("action", SQS.operations)
def test_every_action_answers_in_json(client, url, action):
    """JSON was answered by none, and XML to clients that parse JSON."""
    members = {member.name for member in plan_of(SQS.operations[action].input_type).members}
    answer = post(client, action, **({"QueueUrl": url} if "QueueUrl" in members else {}))

    assert answer.headers["content-type"] == "application/json"
    if answer.status_code == 200:
        assert list(answer.json()) == [f"{action}Response"]
    else:
        assert answer.json().keys() == {"Error", "RequestId"}
        assert answer.json()["Error"].keys() == {"Code", "Message", "Type"}


def test_errors_are_those_of_xml(client):
    parameters = {"Action": "Nonsense"}
    in_json = client.post("/", data=parameters, headers=ACCEPT)
    in_xml = client.post("/", data=parameters)

    fault = ET.fromstring(in_xml.content)[0]
    expected = {child.tag.removeprefix(NAMESPACE): child.text for child in fault}
    assert in_json.status_code == in_xml.status_code
    assert in_json.json()["Error"] | {"Detail": None} == expected


def test_identity_is_returned_in_json(client):
    scope = "Credential=any/20260101/eu-west-1/sts/aws4_request"
    headers = ACCEPT | {
        "authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=x"
    }
    answer = client.post("/", data={"Action": "GetCallerIdentity"}, headers=headers)

    result = answer.json()["GetCallerIdentityResponse"]["GetCallerIdentityResult"]
    assert result.keys() == {"Account", "Arn", "UserId"}
    assert json.dumps(result["Account"])[1:-1].isdigit()
