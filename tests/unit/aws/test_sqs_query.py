"""The Query protocol: parameters to shapes, and shapes to XML."""

import xml.etree.ElementTree as ET

import msgspec
import pytest

from api.aws.protocol.codecs.query import parse_parameters, read_parameters
from api.aws.protocol.codecs.xml import answer_xml, error_xml
from api.aws.protocol.errors import BAD_REQUEST, AwsError
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Scalar, Structure, plan_of
from api.aws.sqs.actions.move_tasks import ListMessageMoveTasksResult, MoveTask
from api.aws.sqs.actions.queue_attributes import GetQueueAttributesResult, SetQueueAttributes
from api.aws.sqs.actions.queues import CreateQueue
from api.aws.sqs.service import SQS
from api.aws.sqs.shapes import (
    AttributeValue,
    BatchResultErrorEntry,
    Message,
    ReceiveMessage,
    ReceiveMessageResult,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
)

NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"


def parsed(form: str, kind):
    return read_parameters(parse_parameters(b"", form.encode()), kind)


def test_numbers_and_text_are_parsed():
    told = parsed("QueueUrl=u&WaitTimeSeconds=20&VisibilityTimeout=-1&Extra=x", ReceiveMessage)

    assert told == ReceiveMessage(queue_url="u", wait_time_seconds=20, visibility_timeout=-1)


def test_text_parameter_is_not_converted():
    assert parsed("MessageBody=null", SendMessage).message_body == "null"
    assert parsed("MessageBody=a+b%26%E2%82%AC", SendMessage).message_body == "a b&€"


@pytest.mark.parametrize("middle", ["", "member."])
def test_list_is_ordered_by_index(middle):
    form = f"AttributeName.{middle}10=c&AttributeName.{middle}2=b&AttributeName.{middle}1=a"

    assert parsed(form, ReceiveMessage).attribute_names == ["a", "b", "c"]


def test_list_of_one_may_omit_index():
    """The form used in hand-written requests and by older clients."""
    assert parsed("AttributeName=All", ReceiveMessage).attribute_names == ["All"]
    assert parsed("AttributeName=", ReceiveMessage).attribute_names == []


@pytest.mark.parametrize("place", ["Attribute.1.", "Attribute.entry", "Attribute."])
def test_map_is_parsed_from_names_and_values(place):
    form = f"{place}Name=DelaySeconds&{place}Value=5"
    if place == "Attribute.entry":
        with pytest.raises(AwsError):
            parsed(form, SetQueueAttributes)
        return
    assert parsed(form, SetQueueAttributes).attributes == {"DelaySeconds": "5"}


def test_tags_are_parsed_from_keys_and_values():
    assert parsed("Tag.1.Key=a&Tag.1.Value=b&Tag.2.Key=c", CreateQueue).tags == {"a": "b", "c": ""}


def test_message_attributes_are_parsed_with_their_types():
    form = (
        "MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=Number"
        "&MessageAttribute.1.Value.StringValue=007"
        "&MessageAttribute.2.Name=b&MessageAttribute.2.Value.DataType=Binary"
        "&MessageAttribute.2.Value.BinaryValue=AAE%3D"
    )

    assert parsed(form, SendMessage).message_attributes == {
        "n": AttributeValue(string_value="007", data_type="Number"),
        "b": AttributeValue(binary_value=b"\x00\x01", data_type="Binary"),
    }


def test_batch_entries_have_their_own_attributes():
    entry = "SendMessageBatchRequestEntry.1"
    form = (
        f"{entry}.Id=one&{entry}.MessageBody=x&{entry}.DelaySeconds=3"
        f"&{entry}.MessageAttribute.1.Name=n&{entry}.MessageAttribute.1.Value.DataType=String"
        f"&{entry}.MessageAttribute.1.Value.StringValue=v"
    )
    entries = parsed(form, SendMessageBatch).entries
    assert entries is not None
    [each_entry] = entries

    assert (each_entry.id, each_entry.message_body, each_entry.delay_seconds) == ("one", "x", 3)
    assert each_entry.message_attributes == {
        "n": AttributeValue(string_value="v", data_type="String")
    }


def test_empty_list_is_given_by_bare_name():
    assert parsed("SendMessageBatchRequestEntry=", SendMessageBatch).entries == []


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("WaitTimeSeconds=x", "InvalidParameterValue"),
        ("WaitTimeSeconds=", "InvalidParameterValue"),
        ("WaitTimeSeconds=1.5", "InvalidParameterValue"),
        ("WaitTimeSeconds.1=5", "MalformedQueryString"),
        ("AttributeName=All&AttributeName.1=All", "MalformedQueryString"),
        ("AttributeName.1=All&AttributeName=All", "MalformedQueryString"),
        ("AttributeName.x=All", "MalformedQueryString"),
        ("AttributeName.1=All&AttributeName.1.x=All", "MalformedQueryString"),
        ("AttributeName.1.x=All&AttributeName.1=All", "MalformedQueryString"),
        ("QueueUrl=%FF", "MalformedQueryString"),
        ("&".join(f"a{n}=1" for n in range(10_001)), "MalformedQueryString"),
    ],
)
def test_malformed_parameters_are_rejected(form, code):
    with pytest.raises(AwsError) as refused:
        parsed(form, ReceiveMessage)

    assert refused.value.fault.code == code


def test_invalid_base64_is_rejected():
    with pytest.raises(AwsError):
        parsed("MessageAttribute.1.Name=b&MessageAttribute.1.Value.BinaryValue=!", SendMessage)


def test_query_string_and_form_are_merged():
    assert parse_parameters(b"Action=A&x=1", b"x=2&y=") == {"Action": "A", "x": "2", "y": ""}


def test_deeply_nested_parameter_is_ignored():
    assert parsed("a" + ".b" * 100_000 + "=1&QueueUrl=u", ReceiveMessage).queue_url == "u"


# Responses


def test_lists_and_maps_are_flattened_in_xml():
    message = Message(
        message_id="m",
        receipt_handle="r",
        md5_of_body="d",
        body='<&>\r\n"é',
        attributes={"SentTimestamp": "1"},
        md5_of_message_attributes="e",
        message_attributes={"b": AttributeValue(binary_value=b"\x00\x01", data_type="Binary")},
    )

    told = answer_xml("ReceiveMessage", ReceiveMessageResult([message, message]), "id", NAMESPACE)

    one = (
        "<Message><MessageId>m</MessageId><ReceiptHandle>r</ReceiptHandle><MD5OfBody>d</MD5OfBody>"
        "<Body>&lt;&amp;&gt;&#xD;\n&quot;é</Body>"
        "<Attribute><Name>SentTimestamp</Name><Value>1</Value></Attribute>"
        "<MD5OfMessageAttributes>e</MD5OfMessageAttributes>"
        "<MessageAttribute><Name>b</Name><Value><BinaryValue>AAE=</BinaryValue>"
        "<DataType>Binary</DataType></Value></MessageAttribute></Message>"
    )
    assert told.decode() == (
        f'<?xml version="1.0"?><ReceiveMessageResponse xmlns="{NAMESPACE}">'
        f"<ReceiveMessageResult>{one}{one}</ReceiveMessageResult>"
        "<ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></ReceiveMessageResponse>"
    )
    body = ET.fromstring(told).find(f".//{{{NAMESPACE}}}Body")
    assert body is not None
    assert body.text == '<&>\r\n"é'


def test_batch_response_lists_each_entry_by_id():
    result = SendMessageBatchResult(
        [SendMessageBatchResultEntry(message_id="m", id="1")],
        [BatchResultErrorEntry("2", True, "Code", "why")],
    )

    text = answer_xml("SendMessageBatch", result, "id", NAMESPACE).decode()

    assert (
        "<SendMessageBatchResultEntry><MessageId>m</MessageId><Id>1</Id></SendMessageBatchResultEntry>"
        "<BatchResultErrorEntry><Id>2</Id><SenderFault>true</SenderFault><Code>Code</Code>"
        "<Message>why</Message></BatchResultErrorEntry>"
    ) in text


def test_attributes_are_written_as_names_and_values():
    told = answer_xml("G", GetQueueAttributesResult({"DelaySeconds": "0"}), "id", NAMESPACE)

    assert b"<Attribute><Name>DelaySeconds</Name><Value>0</Value></Attribute>" in told


def test_structures_in_lists_are_named_after_the_list():
    task = MoveTask("RUNNING", "arn", 1, 2, 3)

    told = answer_xml("L", ListMessageMoveTasksResult([task]), "id", NAMESPACE)

    assert b"<ListMessageMoveTasksResultEntry><Status>RUNNING</Status>" in told


def test_empty_result_is_one_empty_element():
    """Recorded from AWS; programs compare the text."""
    received = answer_xml("ReceiveMessage", ReceiveMessageResult(), "id", NAMESPACE)

    assert b"<ReceiveMessageResult/><ResponseMetadata>" in received


def test_empty_response_has_no_result_element():
    told = answer_xml("DeleteMessage", None, "id", NAMESPACE)

    assert b"Result" not in told
    assert b"<RequestId>id</RequestId>" in told


def test_error_xml_is_well_formed_for_any_message():
    error = AwsError(BAD_REQUEST, 'no "<\x00\ufffe>" here')

    root = ET.fromstring(error_xml(error, "id", NAMESPACE))

    assert [child.tag.partition("}")[2] for child in root] == ["Error", "RequestId"]
    message = root.find(f".//{{{NAMESPACE}}}Message")
    assert message is not None
    assert message.text == 'no "<\ufffd\ufffd>" here'


def renamed_members() -> list[tuple[type[msgspec.Struct], str, str]]:
    """Return the members of requests whose name in a query differs from their own."""
    return [
        (operation.input_type, member.query_name, member.name)
        for service in (SQS,)
        for operation in service.operations.values()
        for member in plan_of(operation.input_type).members
        if member.query_name != member.name
    ]


@pytest.mark.parametrize(("kind", "query_name", "name"), renamed_members())
def test_maps_and_lists_are_parsed_under_their_own_names(kind, query_name, name):
    """The attributes of SDKs that send `MessageAttributes.1` and `Tags.1` were dropped, with 200."""
    [member] = [one for one in plan_of(kind).members if one.query_name == query_name]

    assert parsed(form_of(member.plan, name), kind) == parsed(
        form_of(member.plan, query_name), kind
    )
    assert parsed(form_of(member.plan, name), kind) != kind()


def form_of(plan: Plan, path: str) -> str:
    """Return parameters that set a member of this shape."""
    match plan:
        case ListOf(item=item):
            return form_of(item, f"{path}.1")
        case MapOf(key_name=key_name, value_name=value_name, value=value):
            return f"{path}.1.{key_name}=k&" + form_of(value, f"{path}.1.{value_name}")
        case Structure(members=members):
            return "&".join(form_of(one.plan, f"{path}.{one.query_name}") for one in members)
        case Scalar(kind=kind):
            return f"{path}={'1' if kind is int else 'AAE%3D' if kind is bytes else 'text'}"
