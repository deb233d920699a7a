"""Every error that a client can cause, with the wording of AWS."""

import datetime

import pytest

from api.aws.kinesis.records.sequence_numbers import sequence_number
from tests.contract.kinesis.conftest import (
    CBOR,
    JSON,
    arn_of,
    iterator_of,
    read,
    refusal,
    shards_of,
)

NOT_FOUND, IN_USE = "ResourceNotFoundException", "ResourceInUseException"
INVALID, VALIDATION = "InvalidArgumentException", "ValidationException"
FUTURE = sequence_number(1_700_000_000_000, 0, 5, 4_000_000_000_000)
TOMORROW = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)


def account_of(kinesis, stream):
    return arn_of(kinesis, stream).split(":")[4]


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        ("describe_stream", {}),
        ("describe_stream_summary", {}),
        ("list_shards", {}),
        ("list_tags_for_stream", {}),
        ("delete_stream", {}),
        ("put_record", {"Data": b"x", "PartitionKey": "k"}),
        ("put_records", {"Records": [{"Data": b"x", "PartitionKey": "k"}]}),
        (
            "get_shard_iterator",
            {"ShardId": "shardId-000000000000", "ShardIteratorType": "LATEST"},
        ),
        ("split_shard", {"ShardToSplit": "shardId-0", "NewStartingHashKey": "5"}),
        ("merge_shards", {"ShardToMerge": "shardId-0", "AdjacentShardToMerge": "shardId-1"}),
        ("update_shard_count", {"TargetShardCount": 2, "ScalingType": "UNIFORM_SCALING"}),
        ("increase_stream_retention_period", {"RetentionPeriodHours": 48}),
        ("decrease_stream_retention_period", {"RetentionPeriodHours": 24}),
        ("enable_enhanced_monitoring", {"ShardLevelMetrics": ["ALL"]}),
        ("disable_enhanced_monitoring", {"ShardLevelMetrics": ["ALL"]}),
        ("start_stream_encryption", {"EncryptionType": "KMS", "KeyId": "k"}),
        ("stop_stream_encryption", {"EncryptionType": "KMS", "KeyId": "k"}),
        ("add_tags_to_stream", {"Tags": {"a": "b"}}),
        ("remove_tags_from_stream", {"TagKeys": ["a"]}),
        ("update_stream_warm_throughput", {"WarmThroughputMiBps": 1}),
    ],
)
def test_unknown_stream_is_not_found(kinesis, stream, operation, asked):
    account = account_of(kinesis, stream)

    told = refusal(getattr(kinesis, operation), StreamName="missing", **asked)

    assert told == (400, NOT_FOUND, f"Stream missing under account {account} not found.")


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        ("update_max_record_size", {"MaxRecordSizeInKiB": 1024}),
        ("update_stream_mode", {"StreamModeDetails": {"StreamMode": "ON_DEMAND"}}),
        (
            "update_stream_record_distribution_strategy",
            {"RecordDistributionStrategy": "AUTO"},
        ),
        ("register_stream_consumer", {"ConsumerName": "c"}),
        ("list_stream_consumers", {}),
        ("describe_stream_consumer", {"ConsumerName": "c"}),
        ("deregister_stream_consumer", {"ConsumerName": "c"}),
    ],
)
def test_unknown_stream_arn_is_not_found(kinesis, stream, operation, asked):
    arn = f"{arn_of(kinesis, stream)}-missing"
    elsewhere = f"arn:aws:kinesis:us-east-1:000000000000:stream/{stream}"

    assert refusal(getattr(kinesis, operation), StreamARN=arn, **asked)[:2] == (400, NOT_FOUND)
    assert refusal(getattr(kinesis, operation), StreamARN=elsewhere, **asked)[1] == NOT_FOUND


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        ("tag_resource", {"Tags": {"a": "b"}}),
        ("untag_resource", {"TagKeys": ["a"]}),
        ("list_tags_for_resource", {}),
        ("put_resource_policy", {"Policy": '{"Statement":[]}'}),
        ("get_resource_policy", {}),
        ("delete_resource_policy", {}),
    ],
)
def test_unknown_resource_is_not_found(kinesis, stream, operation, asked):
    arn = arn_of(kinesis, stream)

    for missing in (f"{arn}-missing", f"{arn}/consumer/none:1", arn.replace(":stream/", ":queue/")):
        told = refusal(getattr(kinesis, operation), ResourceARN=missing, **asked)
        assert told[:2] == (400, NOT_FOUND)


def test_duplicate_stream_name_is_rejected(kinesis, stream):
    told = refusal(kinesis.create_stream, StreamName=stream, ShardCount=1)

    account = account_of(kinesis, stream)
    assert told == (400, IN_USE, f"Stream {stream} under account {account} already exists.")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"ShardCount": 1}, VALIDATION),
        ({"StreamName": "", "ShardCount": 1}, VALIDATION),
        ({"StreamName": "a b", "ShardCount": 1}, VALIDATION),
        ({"StreamName": "x" * 129, "ShardCount": 1}, VALIDATION),
        ({"StreamName": "x" * 81, "ShardCount": 1}, INVALID),
        ({"StreamName": "..", "ShardCount": 1}, INVALID),
        ({"StreamName": "a", "StreamModeDetails": {"StreamMode": "PROVISIONED"}}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 0}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 10**6}, "LimitExceededException"),
        ({"StreamName": "a", "ShardCount": 1, "MaxRecordSizeInKiB": 1023}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 1, "MaxRecordSizeInKiB": 10_241}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 1, "WarmThroughputMiBps": 1}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 1, "RecordDistributionStrategy": "AUTO"}, VALIDATION),
        ({"StreamName": "a", "StreamModeDetails": {"StreamMode": "X"}}, VALIDATION),
        ({"StreamName": "a", "StreamModeDetails": {}}, VALIDATION),
        (
            {"StreamName": "a", "ShardCount": 1, "StreamModeDetails": {"StreamMode": "ON_DEMAND"}},
            VALIDATION,
        ),
        (
            {
                "StreamName": "a",
                "WarmThroughputMiBps": 10_241,
                "StreamModeDetails": {"StreamMode": "ON_DEMAND"},
            },
            VALIDATION,
        ),
        ({"StreamName": "a", "ShardCount": 1, "Tags": {"": "x"}}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 1, "Tags": {"a": "x" * 257}}, VALIDATION),
        ({"StreamName": "a", "ShardCount": 1, "Tags": {"a": "\0"}}, INVALID),
        (
            {"StreamName": "a", "ShardCount": 1, "Tags": {str(n): "" for n in range(51)}},
            INVALID,
        ),
        ({"StreamName": "a", "ShardCount": "1"}, "SerializationException"),
        ({"StreamName": 1, "ShardCount": 1}, "SerializationException"),
    ],
)
def test_invalid_stream_is_rejected(kinesis, raw, asked, code):
    for kind in (JSON, CBOR):
        answer = raw.post("CreateStream", asked, kind)
        assert (answer.status_code, read(answer)["__type"]) == (400, code), read(answer)
    assert "a" not in kinesis.list_streams(Limit=10_000)["StreamNames"]


def test_validation_errors_have_aws_wording(raw):
    told = read(raw.post("CreateStream", {"StreamName": "a b", "ShardCount": 0}))

    assert told == {
        "__type": VALIDATION,
        "message": "2 validation errors detected: Value 'a b' at 'streamName' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value '0' at 'shardCount' failed "
        "to satisfy constraint: Member must have value greater than or equal to 1",
    }


@pytest.mark.parametrize(
    ("record", "code", "words"),
    [
        ({"PartitionKey": "k"}, VALIDATION, "'data' failed to satisfy constraint: Member must not be null"),
        ({"Data": "eA=="}, VALIDATION, "artitionKey' failed to satisfy constraint: Member must not be null"),
        ({"Data": "eA==", "PartitionKey": ""}, VALIDATION, "greater than or equal to 1"),
        ({"Data": "eA==", "PartitionKey": "k" * 257}, VALIDATION, "less than or equal to 256"),
        ({"Data": "eA==", "PartitionKey": "k", "ExplicitHashKey": "01"}, VALIDATION, "pattern"),
        ({"Data": "eA==", "PartitionKey": "k", "ExplicitHashKey": str(2**128)}, INVALID, "Invalid ExplicitHashKey"),
        ({"Data": "x" * 4 * 349_526, "PartitionKey": "k"}, VALIDATION, "less than or equal to 1048576"),
        ({"Data": "not base64!", "PartitionKey": "k"}, "SerializationException", "base64"),
        ({"Data": 5, "PartitionKey": "k"}, "SerializationException", ""),
        ({"Data": "eA==", "PartitionKey": 5}, "SerializationException", ""),
    ],
)  # fmt: skip
def test_one_invalid_record_rejects_whole_call(raw, stream, record, code, words):
    words = words.replace("'data'", "ata'")
    good = {"Data": "eA==", "PartitionKey": "k"}
    alone = raw.post("PutRecord", {"StreamName": stream, **record})
    among = raw.post("PutRecords", {"StreamName": stream, "Records": [good, record]})

    for answer in (alone, among):
        told = read(answer)
        assert (answer.status_code, told["__type"]) == (400, code), told
        assert words in told["message"]
    for shard in range(2):
        request = {"StreamName": stream, "ShardId": str(shard), "ShardIteratorType": "TRIM_HORIZON"}
        shard_iterator = raw.call("GetShardIterator", request)["ShardIterator"]
        assert raw.call("GetRecords", {"ShardIterator": shard_iterator})["Records"] == []


@pytest.mark.parametrize("count", [0, 501])
def test_record_count_must_be_one_to_five_hundred(kinesis, stream, count):
    records = [{"Data": b"x", "PartitionKey": "k"}] * count

    assert refusal(kinesis.put_records, StreamName=stream, Records=records)[1] == VALIDATION


@pytest.mark.parametrize("number", ["0", "5", "9" * 129, FUTURE])
def test_invalid_sequence_number_for_ordering_is_rejected(kinesis, stream, number):
    told = refusal(
        kinesis.put_record,
        StreamName=stream,
        Data=b"x",
        PartitionKey="k",
        SequenceNumberForOrdering=number,
    )

    account = account_of(kinesis, stream)
    words = f"ExclusiveMinimumSequenceNumber {number} used in PutRecord on stream {stream} under account {account} is invalid."
    assert told == (400, INVALID, words)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"ShardIteratorType": "NEVER"}, VALIDATION),
        ({}, VALIDATION),
        ({"ShardIteratorType": "AT_SEQUENCE_NUMBER"}, INVALID),
        ({"ShardIteratorType": "AFTER_SEQUENCE_NUMBER"}, INVALID),
        ({"ShardIteratorType": "AT_TIMESTAMP"}, INVALID),
        ({"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": TOMORROW}, INVALID),
        ({"ShardIteratorType": "LATEST", "StartingSequenceNumber": "5"}, INVALID),
        ({"ShardIteratorType": "TRIM_HORIZON", "Timestamp": TOMORROW}, INVALID),
        ({"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "0"}, INVALID),
        ({"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "x"}, VALIDATION),
    ],
)
def test_invalid_position_is_rejected(kinesis, stream, asked, code):
    told = refusal(
        kinesis.get_shard_iterator, StreamName=stream, ShardId="shardId-000000000000", **asked
    )

    assert told[:2] == (400, code)


def test_foreign_sequence_number_is_rejected(kinesis, stream, single):
    numbers = [
        shard["SequenceNumberRange"]["StartingSequenceNumber"]
        for shard in shards_of(kinesis, stream)
    ]
    request = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StreamName": stream}
    told = refusal(
        kinesis.get_shard_iterator,
        ShardId="shardId-000000000000",
        StartingSequenceNumber=numbers[1],
        **request,
    )
    ahead = str(int(numbers[0]) + (1_000 << 80))
    older = str(int(numbers[0]) - (1_000 << 148))

    assert told == (
        400,
        INVALID,
        "Invalid StartingSequenceNumber. It encodes shardId-000000000001, while it was used in a call "
        "to a shard with shardId-000000000000",
    )
    for number in (ahead, older):
        told = refusal(
            kinesis.get_shard_iterator,
            ShardId="shardId-000000000000",
            StartingSequenceNumber=number,
            **request,
        )
        assert told[:2] == (400, INVALID)
        assert "did not come from this stream" in told[2]


def test_unknown_shard_is_not_found(kinesis, stream):
    for shard in ("shardId-000000000002", "nothing"):
        told = refusal(
            kinesis.get_shard_iterator,
            StreamName=stream,
            ShardId=shard,
            ShardIteratorType="LATEST",
        )
        account = account_of(kinesis, stream)
        words = f"Shard {shard} in stream {stream} under account {account} does not exist"
        assert told == (400, NOT_FOUND, words)


RESHARDS = [
    ("split_shard", {"ShardToSplit": "{shard}", "NewStartingHashKey": "5"}),
    ("merge_shards", {"ShardToMerge": "{shard}", "AdjacentShardToMerge": "shardId-000000000001"}),
    ("merge_shards", {"ShardToMerge": "shardId-000000000001", "AdjacentShardToMerge": "{shard}"}),
]


def reshard_refusal(kinesis, stream, operation, asked, shard):
    named = {name: value.format(shard=shard) for name, value in asked.items()}
    return refusal(getattr(kinesis, operation), StreamName=stream, **named)


@pytest.mark.parametrize(("operation", "asked"), RESHARDS)
@pytest.mark.parametrize("shard", ["shardId-000000000009", "nothing"])
def test_reshard_of_unknown_shard_is_rejected(kinesis, stream, operation, asked, shard):
    account = account_of(kinesis, stream)
    words = f"Could not find shard {shard} in stream {stream} under account {account}."

    assert reshard_refusal(kinesis, stream, operation, asked, shard) == (400, NOT_FOUND, words)


@pytest.mark.parametrize(("operation", "asked"), RESHARDS)
def test_reshard_of_closed_shard_is_rejected(kinesis, stream, operation, asked):
    closed, account = "shardId-000000000000", account_of(kinesis, stream)
    kinesis.split_shard(StreamName=stream, ShardToSplit=closed, NewStartingHashKey="5")
    words = (
        f"Shard {closed} in stream {stream} under account {account} has already been merged or split, "
        "and thus is not eligible for merging or splitting."
    )

    assert reshard_refusal(kinesis, stream, operation, asked, closed) == (400, INVALID, words)


@pytest.mark.parametrize(
    ("operation", "asked", "member", "pattern"),
    [
        ("SplitShard", {"ShardToSplit": "0", "NewStartingHashKey": "01"}, "newStartingHashKey", r"0|([1-9]\d{0,38})"),
        ("PutRecord", {"Data": "eA==", "PartitionKey": "k", "ExplicitHashKey": "01"}, "explicitHashKey", r"0|([1-9]\d{0,38})"),
        ("PutRecord", {"Data": "eA==", "PartitionKey": "k", "SequenceNumberForOrdering": "01"}, "sequenceNumberForOrdering", r"0|([1-9]\d{0,128})"),
    ],
)  # fmt: skip
def test_patterns_are_reported_without_anchors(raw, stream, operation, asked, member, pattern):
    message = read(raw.post(operation, {"StreamName": stream, **asked}))["message"]

    assert message == (
        f"1 validation error detected: Value '01' at '{member}' failed to satisfy constraint: "
        f"Member must satisfy regular expression pattern: {pattern}"
    )


@pytest.mark.parametrize("kind", [JSON, CBOR])
def test_error_type_is_repeated_in_header(raw, kind):
    answer = raw.post("DescribeStream", {"StreamName": "missing"}, kind)

    assert answer.headers["x-amzn-errortype"] == read(answer)["__type"] == NOT_FOUND


def test_half_of_surrogate_pair_is_reported(raw, client, stream):
    """Such input was called truncated."""
    content = f'{{"StreamName":"{stream}","PartitionKey":"\\ud800","Data":"eA=="}}'
    headers = {"x-amz-target": "Kinesis_20131202.PutRecord", "content-type": JSON}
    answer = client.post("/", content=content, headers=headers)

    assert read(answer) == {
        "__type": "SerializationException",
        "message": "The body cannot be parsed: A text contains half of a surrogate pair.",
    }


@pytest.mark.parametrize("iterator", ["x", "A" * 200, "é"])
def test_malformed_iterator_is_rejected(kinesis, iterator):
    assert refusal(kinesis.get_records, ShardIterator=iterator) == (
        400,
        INVALID,
        "Invalid ShardIterator.",
    )


def test_iterator_of_deleted_stream_is_not_found(kinesis, single):
    iterator = iterator_of(kinesis, single)
    kinesis.delete_stream(StreamName=single)
    gone = refusal(kinesis.get_records, ShardIterator=iterator)
    kinesis.create_stream(StreamName=single, ShardCount=1)

    assert gone[:2] == (400, NOT_FOUND)
    assert refusal(kinesis.get_records, ShardIterator=iterator)[:2] == (400, NOT_FOUND)


@pytest.mark.parametrize("limit", [0, 10_001])
def test_read_limits_are_enforced(kinesis, single, limit):
    told = refusal(kinesis.get_records, ShardIterator=iterator_of(kinesis, single), Limit=limit)

    assert told[:2] == (400, VALIDATION)


@pytest.mark.parametrize(
    ("operation", "hours"),
    [("increase", 23), ("increase", 8_761), ("decrease", 48), ("decrease", 1)],
)
def test_retention_is_bounded_and_changes_in_one_direction(kinesis, stream, operation, hours):
    call = getattr(kinesis, f"{operation}_stream_retention_period")

    code, fault, words = refusal(call, StreamName=stream, RetentionPeriodHours=hours)

    assert (code, fault) == (400, INVALID)
    assert f"equested retention period ({hours} hours)" in words


def test_retention_in_wrong_direction_names_other_operation(kinesis, stream):
    increase, decrease = (
        kinesis.increase_stream_retention_period,
        kinesis.decrease_stream_retention_period,
    )
    increase(StreamName=stream, RetentionPeriodHours=48)

    asked = f"for stream {stream} can not be"
    assert refusal(increase, StreamName=stream, RetentionPeriodHours=36)[2] == (
        f"Requested retention period (36 hours) {asked} shorter than existing retention period "
        "(48 hours). Use DecreaseRetentionPeriod API."
    )
    assert refusal(decrease, StreamName=stream, RetentionPeriodHours=72)[2] == (
        f"Requested retention period (72 hours) {asked} longer than existing retention period "
        "(48 hours). Use IncreaseRetentionPeriod API."
    )


@pytest.mark.parametrize("operation", ["increase", "decrease"])
def test_present_retention_is_accepted_without_a_change(kinesis, stream, operation):
    """Terraform sets the default of 24 hours on every create, and failed."""
    change = getattr(kinesis, f"{operation}_stream_retention_period")

    change(StreamName=stream, RetentionPeriodHours=24)

    summary = kinesis.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
    assert summary["RetentionPeriodHours"] == 24


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "Either NextToken or StreamName should be provided."),
        ({"NextToken": "x"}, "Invalid NextToken."),
        ({"NextToken": "x", "StreamName": "y"}, "NextToken and StreamName cannot be provided together."),
        ({"StreamName": "?", "ShardFilter": {"Type": "AFTER_SHARD_ID"}}, "ShardId must be provided"),
        ({"StreamName": "?", "ShardFilter": {"Type": "AT_TIMESTAMP"}}, "Timestamp must be provided"),
        ({"StreamName": "?", "ShardFilter": {"Type": "AT_TIMESTAMP", "Timestamp": TOMORROW}}, "in the future"),
        ({"StreamName": "?", "StreamCreationTimestamp": 5}, "is not that of stream"),
    ],
)  # fmt: skip
def test_invalid_list_shards_request_is_rejected(kinesis, stream, asked, words):
    if asked.get("StreamName") == "?":
        asked = {**asked, "StreamName": stream}

    told = refusal(kinesis.list_shards, **asked)

    assert told[:2] == (400, INVALID)
    assert words in told[2]


@pytest.mark.parametrize("moment", [1e300, -1, 2.0**40])
def test_invalid_timestamp_is_rejected(raw, stream, moment):
    request = {"StreamName": stream, "ShardFilter": {"Type": "AT_TIMESTAMP", "Timestamp": moment}}

    for kind in (JSON, CBOR):
        assert read(raw.post("ListShards", request, kind))["__type"] == INVALID


def test_name_and_arn_must_agree(kinesis, stream, single):
    told = refusal(
        kinesis.describe_stream_summary, StreamName=single, StreamARN=arn_of(kinesis, stream)
    )
    neither = refusal(kinesis.describe_stream_summary)

    assert told[:2] == neither[:2] == (400, INVALID)


def test_operation_of_other_mode_is_rejected(kinesis, stream, on_demand):
    split = {"ShardToSplit": "shardId-000000000000", "NewStartingHashKey": "5"}
    calls = [
        (kinesis.split_shard, {"StreamName": on_demand, **split}),
        (
            kinesis.update_shard_count,
            {
                "StreamName": on_demand,
                "TargetShardCount": 2,
                "ScalingType": "UNIFORM_SCALING",
            },
        ),
        (
            kinesis.update_stream_warm_throughput,
            {"StreamName": stream, "WarmThroughputMiBps": 1},
        ),
        (
            kinesis.update_stream_record_distribution_strategy,
            {"StreamARN": arn_of(kinesis, stream), "RecordDistributionStrategy": "AUTO"},
        ),
    ]
    for call, asked in calls:
        assert refusal(call, **asked)[:2] == (400, VALIDATION)
    account = account_of(kinesis, on_demand)
    words = f"Request is invalid. Stream {on_demand} under account {account} is in On-Demand mode."
    assert refusal(calls[0][0], **calls[0][1])[2] == words


@pytest.mark.parametrize("policy", ["", "{", "[]", "{}", '{"Statement": {}}', "\0"])
def test_invalid_policy_is_rejected(kinesis, stream, policy):
    arn = arn_of(kinesis, stream)

    told = refusal(kinesis.put_resource_policy, ResourceARN=arn, Policy=policy)

    assert told[:2] == (400, INVALID)
    words = f"No resource policy found for resource ARN {arn}."
    assert refusal(kinesis.delete_resource_policy, ResourceARN=arn) == (400, NOT_FOUND, words)


@pytest.mark.parametrize(
    "text", ["a;b", "a,b", "a\tb", "a\nb", "a\x7f", "a#b", "<", "%", "aws:x", "AWS:x"]
)
def test_invalid_tag_key_is_rejected(kinesis, stream, text):
    arn = arn_of(kinesis, stream)

    assert refusal(kinesis.add_tags_to_stream, StreamName=stream, Tags={text: "x"})[1] == INVALID
    assert refusal(kinesis.tag_resource, ResourceARN=arn, Tags={text: "x"})[1] == INVALID
    assert kinesis.list_tags_for_stream(StreamName=stream)["Tags"] == []


@pytest.mark.parametrize("text", ["a;b", "a,b", "a\tb", "a\x7f"])
def test_invalid_tag_value_is_rejected(kinesis, stream, text):
    assert refusal(kinesis.add_tags_to_stream, StreamName=stream, Tags={"x": text})[1] == INVALID


@pytest.mark.parametrize("text", ["Größe", "नमस्ते", "a_b.c:d/e=f+g-h@i j", "x aws:"])
def test_tag_of_any_script_is_accepted(kinesis, stream, text):
    kinesis.add_tags_to_stream(StreamName=stream, Tags={text: text})

    assert kinesis.list_tags_for_stream(StreamName=stream)["Tags"] == [{"Key": text, "Value": text}]


def test_tags_of_other_protocols_stay(kinesis, client, stream):
    client.patch(f"/v1/streams/{stream}", json={"tags": {"a;b": "c"}}).raise_for_status()

    kinesis.add_tags_to_stream(StreamName=stream, Tags={"d": "e"})

    assert len(kinesis.list_tags_for_stream(StreamName=stream)["Tags"]) == 2


def test_too_many_tags_are_rejected(kinesis, stream):
    kinesis.add_tags_to_stream(StreamName=stream, Tags={str(n): "" for n in range(50)})

    told = refusal(kinesis.add_tags_to_stream, StreamName=stream, Tags={"one": "more"})

    assert told[:2] == (400, INVALID)
    assert len(kinesis.list_tags_for_stream(StreamName=stream)["Tags"]) == 50


@pytest.mark.parametrize(
    "asked",
    [
        {"EncryptionType": "NONE", "KeyId": "k"},
        {"EncryptionType": "KMS", "KeyId": "k\0"},
    ],
)
def test_invalid_encryption_key_is_rejected(kinesis, stream, asked):
    told = refusal(kinesis.start_stream_encryption, StreamName=stream, **asked)

    assert told[:2] == (400, INVALID)
