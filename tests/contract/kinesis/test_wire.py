"""Both encodings on the wire, and the parts of every response."""

import uuid

import cbor2
import pytest

from tests.contract.kinesis.conftest import CBOR, JSON, read


def test_response_has_request_ids_and_media_type(raw, single):
    for kind in (JSON, CBOR):
        answer = raw.post("DescribeStreamSummary", {"StreamName": single}, kind)

        assert answer.status_code == 200
        assert answer.headers["content-type"] == kind
        uuid.UUID(answer.headers["x-amzn-requestid"])
        assert answer.headers["x-amz-id-2"]
        assert "x-amzn-query-error" not in answer.headers


def test_operation_without_result_returns_empty_body(raw, name):
    for kind in (JSON, CBOR):
        answer = raw.post("CreateStream", {"StreamName": name + kind[-8:-5], "ShardCount": 1}, kind)
        assert (answer.status_code, answer.content) == (200, b"")


def test_json_uses_base64_and_seconds(raw, single):
    raw.call("PutRecord", {"StreamName": single, "Data": "AP8=", "PartitionKey": "k"})
    request = {"StreamName": single, "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"}  # fmt: skip
    response = raw.call(
        "GetRecords", {"ShardIterator": raw.call("GetShardIterator", request)["ShardIterator"]}
    )

    [record] = response["Records"]
    assert record["Data"] == "AP8="
    assert 1_600_000_000 < record["ApproximateArrivalTimestamp"] < 4_000_000_000
    assert response["MillisBehindLatest"] == 0


def test_cbor_uses_bytes_and_milliseconds(raw, single):
    put = raw.call(
        "PutRecords",
        {"StreamName": single, "Records": [{"Data": b"\x00\xff", "PartitionKey": "k"}]},
        CBOR,
    )
    request = {"StreamName": single, "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"}  # fmt: skip
    shard_iterator = raw.call("GetShardIterator", request, CBOR)["ShardIterator"]
    response = raw.call("GetRecords", {"ShardIterator": shard_iterator, "Limit": 10}, CBOR)

    [record] = response["Records"]
    assert record["Data"] == b"\x00\xff"
    arrival = record["ApproximateArrivalTimestamp"]
    assert arrival.tag == 1
    assert isinstance(arrival.value, int)
    assert 1_600_000_000_000 < arrival.value < 4_000_000_000_000
    assert put["FailedRecordCount"] == 0
    assert put["Records"][0]["SequenceNumber"] == record["SequenceNumber"]


@pytest.mark.parametrize("in_milliseconds", [True, False])
def test_cbor_time_is_milliseconds_or_float_seconds(raw, single, in_milliseconds):
    raw.call("PutRecord", {"StreamName": single, "Data": b"x", "PartitionKey": "k"}, CBOR)
    moment = 1_700_000_000_000 if in_milliseconds else 1_700_000_000.5
    request = {
        "StreamName": single,
        "ShardId": "shardId-000000000000",
        "ShardIteratorType": "AT_TIMESTAMP",
        "Timestamp": cbor2.CBORTag(1, moment),
    }

    shard_iterator = raw.call("GetShardIterator", request, CBOR)["ShardIterator"]

    assert len(raw.call("GetRecords", {"ShardIterator": shard_iterator}, CBOR)["Records"]) == 1


def test_indefinite_length_cbor_of_java_is_read(raw, single):
    entry = b"\xbf\x64Data\x5f\x41x\x41y\xff\x6cPartitionKey\x61k\xff"
    content = b"\xbf\x6aStreamName" + cbor2.dumps(single) + b"\x67Records\x9f" + entry + b"\xff\xff"

    answer = raw.post("PutRecords", None, CBOR, content)

    assert answer.status_code == 200
    assert read(answer)["FailedRecordCount"] == 0


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b"\xff\xfe"),
        (JSON, b'{"StreamName":"\\ud800"}'),
        (JSON, b'{"StreamName":' + b"[" * 10_000),
        (CBOR, b"{}"),
        (CBOR, b"\xa1"),
        (CBOR, b"\x80"),
        (CBOR, b"\x9f" * 10_000),
    ],
)
@pytest.mark.parametrize("operation", ["DescribeStream", "PutRecords", "Unheard"])
def test_undecodable_body_is_reported_first(raw, kind, content, operation):
    answer = raw.post(operation, None, kind, content)

    is_readable = content in (b"[]", b"\x80")
    told = "UnknownOperation" if operation == "Unheard" and is_readable else "Serialization"
    assert answer.status_code == 400
    assert read(answer)["__type"] == f"{told}Exception"


def test_unknown_operation_is_rejected(raw):
    for kind in (JSON, CBOR):
        for operation in ("Unheard", "CreateChannel", "ReceiveQueueRecords", ""):
            answer = raw.post(operation, {}, kind)
            assert answer.status_code == 400
            assert read(answer)["__type"] == "UnknownOperationException"


def test_same_address_serves_queues_and_streams(client, raw):
    queues = client.post("/", content=b"{}", headers={"x-amz-target": "AmazonSQS.ListQueues"})
    neither = client.post("/", content=b"{}", headers={"x-amz-target": "DynamoDB_20120810.Scan"})

    assert queues.status_code == 200
    assert queues.headers["content-type"] == "application/x-amz-json-1.0"
    assert neither.status_code == 400
    assert "UnknownOperationException" in neither.json()["__type"]
    assert raw.call("ListStreams", {"Limit": 1})["HasMoreStreams"] in (True, False)


def test_oversized_body_is_rejected(raw):
    answer = raw.post("PutRecords", None, JSON, b" " * (17 * 2**20))

    assert answer.status_code == 400
    assert read(answer)["__type"] == "RequestEntityTooLargeException"


def test_body_may_be_whole_or_chunked(client, single):
    headers = {"x-amz-target": "Kinesis_20131202.DescribeStreamSummary", "content-type": JSON}
    content = (piece for piece in (b'{"StreamName":', f'"{single}"}}'.encode()))

    answer = client.post("/", content=content, headers=headers)

    assert answer.json()["StreamDescriptionSummary"]["StreamName"] == single
