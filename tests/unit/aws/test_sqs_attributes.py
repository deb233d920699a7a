"""Translation of queue attributes into a specification and back, without a server."""

import json

import pytest
from msgspec.structs import replace

from api.aws.protocol.errors import AwsError
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.queues.attributes import apply_attributes, first_difference, read_attributes
from api.aws.sqs.queues.policies import add_permission, remove_permission
from storage.domain.queues.queue import (
    DeadLetterTarget,
    DedupScope,
    QueueSpec,
    QueueType,
    RedriveAllow,
    RedrivePermission,
)

ARNS = Arns("us-east-1", "123456789012", "default")
STANDARD = QueueSpec(attempts_max=None)
FIFO = QueueSpec(type=QueueType.FIFO, attempts_max=None)
ARN = "arn:aws:sqs:us-east-1:123456789012:dead"


def refusal(spec: QueueSpec, attributes: dict[str, str]) -> tuple[str, str]:
    with pytest.raises(AwsError) as refused:
        apply_attributes(spec, attributes, ARNS)
    return refused.value.fault.code, refused.value.message


def test_standard_queue_has_sqs_defaults():
    assert read_attributes(STANDARD, ARNS) == {
        "VisibilityTimeout": "30",
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
    }


def test_fifo_queue_has_four_additional_attributes():
    more = read_attributes(FIFO, ARNS).keys() - read_attributes(STANDARD, ARNS).keys()

    assert more == {
        "FifoQueue",
        "ContentBasedDeduplication",
        "DeduplicationScope",
        "FifoThroughputLimit",
    }


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("VisibilityTimeout", "0", "visibility_timeout_ms", 0),
        ("VisibilityTimeout", "43200", "visibility_timeout_ms", 43_200_000),
        ("DelaySeconds", "900", "delay_ms", 900_000),
        ("MaximumMessageSize", "1024", "message_bytes_max", 1024),
        ("MessageRetentionPeriod", "60", "retention_ms", 60_000),
        ("MessageRetentionPeriod", "1209600", "retention_ms", 1_209_600_000),
        ("ReceiveMessageWaitTimeSeconds", "20", "receive_wait_ms", 20_000),
        ("ContentBasedDeduplication", "true", "deduplicate_by_content", True),
        ("DeduplicationScope", "messageGroup", "dedup_scope", DedupScope.GROUP),
        (
            "RedrivePolicy",
            f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":3}}',
            "dead_letters",
            DeadLetterTarget("dead", 3),
        ),
        ("RedriveAllowPolicy", '{"redrivePermission":"denyAll"}', "redrive_allow", RedriveAllow(RedrivePermission.DENY_ALL)),
        (
            "RedriveAllowPolicy",
            f'{{"redrivePermission":"byQueue","sourceQueueArns":["{ARN}"]}}',
            "redrive_allow",
            RedriveAllow(RedrivePermission.BY_QUEUE, ("dead",)),
        ),
    ],
)  # fmt: skip
def test_attribute_sets_specification_field_and_round_trips(name, text, field, value):
    spec = apply_attributes(FIFO, {name: text}, ARNS)

    assert getattr(spec, field) == value
    assert read_attributes(spec, ARNS)[name] == text
    assert first_difference(spec, {name: text}, ARNS) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Policy", '{"Version":"2012-10-17","Statement":[]}'),
        ("KmsMasterKeyId", "alias/aws/sqs"),
        ("KmsDataKeyReusePeriodSeconds", "600"),
        ("SqsManagedSseEnabled", "false"),
        ("FifoThroughputLimit", "perQueue"),
        ("RedriveAllowPolicy", '{"redrivePermission":"allowAll"}'),
    ],
)
def test_attribute_without_effect_is_stored(name, text):
    spec = apply_attributes(FIFO, {name: text}, ARNS)

    assert read_attributes(spec, ARNS)[name] == text
    assert replace(spec, annotations={}) == FIFO


@pytest.mark.parametrize(
    "name", ["Policy", "KmsMasterKeyId", "RedrivePolicy", "RedriveAllowPolicy"]
)
def test_empty_value_removes_attribute(name):
    attributes = {
        "Policy": '{"Statement":[]}',
        "KmsMasterKeyId": "alias/key",
        "RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":"3"}}',
        "RedriveAllowPolicy": '{"redrivePermission":"denyAll"}',
    }
    spec = apply_attributes(STANDARD, {name: attributes[name]}, ARNS)

    left = apply_attributes(spec, {name: ""}, ARNS)
    assert name not in read_attributes(left, ARNS)
    assert apply_attributes(left, {"SqsManagedSseEnabled": "true"}, ARNS) == STANDARD


def test_kms_key_and_sqs_managed_encryption_are_exclusive():
    with_key = apply_attributes(STANDARD, {"KmsMasterKeyId": "k"}, ARNS)
    with_own = apply_attributes(with_key, {"SqsManagedSseEnabled": "true"}, ARNS)

    assert read_attributes(with_key, ARNS)["SqsManagedSseEnabled"] == "false"
    assert "KmsMasterKeyId" not in read_attributes(with_own, ARNS)
    code, _ = refusal(STANDARD, {"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"})
    assert code == "InvalidAttributeName"


def test_throughput_limit_per_group_requires_group_scope():
    both = {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}

    assert refusal(FIFO, {"FifoThroughputLimit": "perMessageGroupId"})[0] == "InvalidAttributeValue"
    assert read_attributes(apply_attributes(FIFO, both, ARNS), ARNS).items() >= both.items()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("VisibilityTimeout", "43201"),
        ("VisibilityTimeout", "-1"),
        ("VisibilityTimeout", "ten"),
        ("VisibilityTimeout", "1.5"),
        ("VisibilityTimeout", "٣"),
        ("DelaySeconds", "901"),
        ("MaximumMessageSize", "1023"),
        ("MaximumMessageSize", "1048577"),
        ("MessageRetentionPeriod", "59"),
        ("MessageRetentionPeriod", "1209601"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("Policy", "no"),
        ("Policy", '{"Statement":{}}'),
        ("KmsDataKeyReusePeriodSeconds", "59"),
        ("SqsManagedSseEnabled", "maybe"),
        ("RedriveAllowPolicy", "[]"),
        ("RedriveAllowPolicy", '{"redrivePermission":"some"}'),
        ("RedriveAllowPolicy", '{"redrivePermission":"byQueue"}'),
        ("RedriveAllowPolicy", '{"redrivePermission":"byQueue","sourceQueueArns":[]}'),
        ("RedriveAllowPolicy", '{"redrivePermission":"byQueue","sourceQueueArns":"x"}'),
        ("RedriveAllowPolicy", '{"redrivePermission":"byQueue","sourceQueueArns":["x"]}'),
        ("RedriveAllowPolicy", f'{{"redrivePermission":"denyAll","sourceQueueArns":["{ARN}"]}}'),
    ],
)
def test_invalid_attribute_value_is_rejected(name, text):
    code, message = refusal(STANDARD, {name: text})

    assert code == "InvalidAttributeValue"
    assert message.startswith(f"Invalid value for the parameter {name}.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", "Redrive policy is not a valid JSON map."),
        ("[]", "Redrive policy is not a valid JSON map."),
        ("{}", "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."),
        (
            f'{{"deadLetterTargetArn":"{ARN}"}}',
            "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
        ),
        (
            '{"deadLetterTargetArn":"dead","maxReceiveCount":1}',
            "Dead letter target does not exist.",
        ),
        (
            f'{{"deadLetterTargetArn":"{ARN.replace("123", "999")}","maxReceiveCount":1}}',
            "Dead letter target does not exist.",
        ),
        *[
            (
                f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":{count}}}',
                f"Invalid value for maxReceiveCount: {told}, valid values are from 1 to 1000 both "
                "inclusive.",
            )
            for count, told in [("0", "0"), ("1001", "1001"), ('"x"', "x"), ("1.5", "1.5"), ("true", "true")]
        ],
    ],
)  # fmt: skip
def test_invalid_redrive_policy_is_explained(text, reason):
    assert refusal(STANDARD, {"RedrivePolicy": text}) == (
        "InvalidParameterValue",
        f"Value {text} for parameter RedrivePolicy is invalid. Reason: {reason}",
    )


@pytest.mark.parametrize(
    "name", ["Nonsense", "QueueArn", "ApproximateNumberOfMessages", "CreatedTimestamp", "All"]
)
def test_read_only_attribute_is_rejected_as_unknown(name):
    assert refusal(STANDARD, {name: "1"}) == ("InvalidAttributeName", f"Unknown Attribute {name}.")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FifoQueue", "Unknown Attribute FifoQueue."),
        ("ContentBasedDeduplication", "Unknown Attribute ContentBasedDeduplication."),
        *[
            (name, f"You can specify the {name} only when FifoQueue is set to true.")
            for name in ("DeduplicationScope", "FifoThroughputLimit")
        ],
    ],
)
@pytest.mark.parametrize("text", ["true", "false"])
def test_standard_queue_rejects_fifo_attributes(name, message, text):
    assert refusal(STANDARD, {name: text}) == ("InvalidAttributeName", message)


def test_permission_is_a_statement_of_the_policy():
    policy = add_permission(None, ARN, "one", ["111111111111"], ["SendMessage"])
    policy = add_permission(policy, ARN, "two", ["111111111111", "222222222222"], ["*"])
    first, second = json.loads(policy)["Statement"]
    left = remove_permission(policy, "one")

    assert first == {
        "Sid": "one",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::111111111111:root"},
        "Action": "SQS:SendMessage",
        "Resource": ARN,
    }
    assert len(second["Principal"]["AWS"]) == 2
    assert left is not None
    assert json.loads(left)["Statement"] == [second]
    assert remove_permission(left, "two") is None
