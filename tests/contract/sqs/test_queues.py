"""Queues, their attributes, tags and permissions."""

import json
import time

import pytest
from botocore.exceptions import ClientError

from tests.contract.sqs.conftest import arn_of, refusal


def attributes_of(sqs, url, *names):
    response = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))
    return response.get("Attributes", {})


def test_queue_url_has_address_used_by_client(sqs, service_url, name):
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    base, account, last = url.rsplit("/", 2)

    assert (base, last) == (service_url, name)
    assert len(account) == 12
    assert account.isdigit()
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    assert arn_of(sqs, url) == f"arn:aws:sqs:us-east-1:{account}:{name}"


def test_plain_queue_has_exact_aws_attributes(sqs, url):
    attributes = attributes_of(sqs, url, "All")

    assert attributes.keys() == {
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "CreatedTimestamp",
        "DelaySeconds",
        "LastModifiedTimestamp",
        "MaximumMessageSize",
        "MessageRetentionPeriod",
        "QueueArn",
        "ReceiveMessageWaitTimeSeconds",
        "SqsManagedSseEnabled",
        "VisibilityTimeout",
    }
    assert abs(int(attributes["CreatedTimestamp"]) - time.time()) < 60
    assert attributes_of(sqs, url) == {}
    assert attributes_of(sqs, url, "DelaySeconds", "Policy") == {"DelaySeconds": "0"}


def test_setting_attributes_keeps_others(sqs, url):
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "5"})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7"})

    assert attributes_of(sqs, url, "VisibilityTimeout", "DelaySeconds") == {
        "VisibilityTimeout": "5",
        "DelaySeconds": "7",
    }


def test_create_with_equal_attributes_returns_existing_queue(sqs, url, name):
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7"})

    again = [
        sqs.create_queue(QueueName=name),
        sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "7"}, tags={"a": "b"}),
    ]

    assert [one["QueueUrl"] for one in again] == [url, url]
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=url)


def test_create_of_native_fifo_queue_is_rejected(sqs, client, name):
    """A program that asked for a standard queue got the URL of a FIFO queue."""
    client.put(f"/v1/queues/{name}", json={"type": "fifo"}).raise_for_status()

    with pytest.raises(ClientError) as refused:
        sqs.create_queue(QueueName=name)

    assert refusal(refused.value) == (
        400,
        "QueueAlreadyExists",
        "A queue already exists with the same name and a different value for attribute FifoQueue",
    )


def test_create_with_other_attributes_is_rejected(sqs, name):
    sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "1"})
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7"})

    with pytest.raises(ClientError) as refused:
        sqs.create_queue(
            QueueName=name, Attributes={"VisibilityTimeout": "30", "DelaySeconds": "1"}
        )

    assert refusal(refused.value) == (
        400,
        "QueueAlreadyExists",
        "A queue already exists with the same name and a different value for attribute DelaySeconds",
    )
    assert refused.value.response["Error"]["QueryErrorCode"] == "QueueNameExists"


def test_deleted_queue_is_gone_and_its_name_reusable(sqs, url, name):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.delete_queue(QueueUrl=url)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.send_message(QueueUrl=url, MessageBody="x")
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.delete_queue(QueueUrl=url)

    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_queues_are_listed_by_prefix_in_pages(sqs, name):
    urls = [sqs.create_queue(QueueName=f"{name}-{nth}")["QueueUrl"] for nth in range(3)]

    everything = sqs.list_queues(QueueNamePrefix=f"{name}-")
    first = sqs.list_queues(QueueNamePrefix=f"{name}-", MaxResults=2)
    rest = sqs.list_queues(QueueNamePrefix=f"{name}-", MaxResults=2, NextToken=first["NextToken"])

    assert everything["QueueUrls"] == urls
    assert "NextToken" not in everything
    assert first["QueueUrls"] + rest["QueueUrls"] == urls
    assert "NextToken" not in rest
    assert "NextToken" not in sqs.list_queues(QueueNamePrefix=f"{name}-", MaxResults=3)
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{name}-none")


def test_tags_are_added_listed_and_removed(sqs, name):
    url = sqs.create_queue(QueueName=name, tags={"team": "a"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={"Team": "b", "empty": ""})
    sqs.untag_queue(QueueUrl=url, TagKeys=["team", "missing"])

    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"Team": "b", "empty": ""}


def test_queue_has_fifty_tags_at_most(sqs, url):
    sqs.tag_queue(QueueUrl=url, Tags={str(nth): "" for nth in range(50)})
    for tags in ({"one more": ""}, {"x" * 129: ""}, {"0": "x" * 257}, {"0": "\x00"}):
        with pytest.raises(ClientError) as refused:
            sqs.tag_queue(QueueUrl=url, Tags=tags)
        assert refusal(refused.value)[:2] == (400, "InvalidParameterValue")


def test_permissions_are_stored_as_policy(sqs, url):
    sqs.add_permission(
        QueueUrl=url, Label="one", AWSAccountIds=["111111111111"], Actions=["SendMessage"]
    )
    policy = json.loads(attributes_of(sqs, url, "Policy")["Policy"])
    for label, actions, code in [
        ("one", ["SendMessage"], "InvalidParameterValue"),
        ("two", ["Nonsense"], "InvalidParameterValue"),
        ("three", ["*"] * 8, "OverLimit"),
    ]:
        with pytest.raises(ClientError) as refused:
            sqs.add_permission(
                QueueUrl=url, Label=label, AWSAccountIds=["111111111111"], Actions=actions
            )
        assert refusal(refused.value)[1] == code
    sqs.remove_permission(QueueUrl=url, Label="one")
    with pytest.raises(ClientError) as refused:
        sqs.remove_permission(QueueUrl=url, Label="one")

    assert [statement["Sid"] for statement in policy["Statement"]] == ["one"]
    assert policy["Statement"][0]["Resource"] == arn_of(sqs, url)
    assert attributes_of(sqs, url, "Policy") == {}
    assert refusal(refused.value)[1] == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("name", "attributes", "code"),
    [
        ("dots.are.bad", {}, "InvalidParameterValue"),
        ("x" * 81, {}, "InvalidParameterValue"),
        ("no-suffix", {"FifoQueue": "true"}, "InvalidParameterValue"),
        ("suffix.fifo", {}, "InvalidParameterValue"),
        ("x" * 76 + ".fifo", {"FifoQueue": "true"}, "InvalidParameterValue"),
        ("standard", {"FifoQueue": "false"}, "InvalidAttributeName"),
        ("standard", {"ContentBasedDeduplication": "true"}, "InvalidAttributeName"),
        ("standard", {"Nonsense": "1"}, "InvalidAttributeName"),
        ("standard", {"DelaySeconds": "901"}, "InvalidAttributeValue"),
        ("standard", {"KmsMasterKeyId": "k\x00"}, "InvalidAttributeValue"),
    ],
)
def test_invalid_queue_is_rejected(sqs, name, attributes, code):
    with pytest.raises(ClientError) as refused:
        sqs.create_queue(QueueName=name, Attributes=attributes)

    assert refusal(refused.value)[:2] == (400, code)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.get_queue_url(QueueName=name)


def test_queue_type_cannot_change(sqs, fifo_url, url):
    with pytest.raises(ClientError) as refused:
        sqs.set_queue_attributes(QueueUrl=fifo_url, Attributes={"FifoQueue": "false"})
    assert refusal(refused.value) == (
        400,
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    )
    for value in ("true", "false"):
        with pytest.raises(ClientError) as refused:
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"FifoQueue": value})
        assert refusal(refused.value) == (
            400,
            "InvalidAttributeName",
            "Unknown Attribute FifoQueue.",
        )


def test_removing_kms_key_does_not_restore_sqs_encryption(sqs, url):
    for key in ("alias/mine", ""):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"KmsMasterKeyId": key})

    assert attributes_of(sqs, url, "SqsManagedSseEnabled", "KmsMasterKeyId") == {
        "SqsManagedSseEnabled": "false"
    }


def test_tag_with_nul_is_rejected(sqs, name):
    """SDKs retried the internal error that it was."""
    with pytest.raises(ClientError) as refused:
        sqs.create_queue(QueueName=name, tags={"a": "a\0b"})

    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
