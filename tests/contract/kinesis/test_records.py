"""Puts and gets of records with boto3."""

import base64
import datetime
import hashlib
from typing import Any

import pytest
from botocore.exceptions import ClientError

from api.aws.kinesis.records.sequence_numbers import read_number
from tests.contract.kinesis.conftest import arn_of, iterator_of, records_of, refusal, shards_of

RING = 2**128


def test_record_round_trips(kinesis, single):
    put = kinesis.put_record(StreamName=single, Data=b"\x00\xff hello", PartitionKey="k\u00e9y")

    [record] = records_of(kinesis, single)
    assert put["ShardId"] == "shardId-000000000000"
    assert record["SequenceNumber"] == put["SequenceNumber"]
    assert (record["Data"], record["PartitionKey"]) == (b"\x00\xff hello", "k\u00e9y")
    age = datetime.datetime.now(datetime.UTC) - record["ApproximateArrivalTimestamp"]
    assert datetime.timedelta(0) <= age < datetime.timedelta(minutes=1)


def test_batch_is_answered_record_by_record(kinesis, stream):
    records: list[Any] = [{"Data": b"%d" % nth, "PartitionKey": f"key-{nth}"} for nth in range(50)]

    response = kinesis.put_records(StreamName=stream, Records=records)

    assert response["FailedRecordCount"] == 0
    found = {
        record["SequenceNumber"]: (f"shardId-{shard:012d}", record["Data"], record["PartitionKey"])
        for shard in range(2)
        for record in records_of(kinesis, stream, shard)
    }
    for new_record, answer in zip(records, response["Records"], strict=True):
        assert found[answer["SequenceNumber"]] == (
            answer["ShardId"],
            new_record["Data"],
            new_record["PartitionKey"],
        )
        place = int.from_bytes(hashlib.md5(new_record["PartitionKey"].encode()).digest(), "big")
        assert answer["ShardId"][-1] == ("0" if place < RING // 2 else "1")


def test_quoted_iterator_is_accepted(kinesis, single):
    """Shells pass on the quotes that the command line printed."""
    kinesis.put_record(StreamName=single, PartitionKey="k", Data=b"x")

    response = kinesis.get_records(ShardIterator=f'"{iterator_of(kinesis, single)}"')

    assert [record["Data"] for record in response["Records"]] == [b"x"]


def test_explicit_hash_key_overrides_partition_key(kinesis, stream):
    records = [
        {"Data": b"x", "PartitionKey": "same", "ExplicitHashKey": str(place)}
        for place in (0, RING // 2 - 1, RING // 2, RING - 1)
    ]

    response = kinesis.put_records(StreamName=stream, Records=records)
    alone = kinesis.put_record(StreamName=stream, **records[-1])

    assert [record["ShardId"][-1] for record in response["Records"]] == ["0", "0", "1", "1"]
    assert alone["ShardId"][-1] == "1"
    assert {record["PartitionKey"] for record in records_of(kinesis, stream, 1)} == {"same"}


def test_sequence_numbers_increase_and_encode_shard(kinesis, single):
    numbers = [
        kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")["SequenceNumber"]
        for _ in range(5)
    ]
    more = kinesis.put_records(StreamName=single, Records=[{"Data": b"x", "PartitionKey": "k"}] * 5)
    numbers += [record["SequenceNumber"] for record in more["Records"]]

    assert numbers == sorted(numbers, key=int)
    places = [read_number(number) for number in numbers]
    assert [place.offset for place in places if place] == list(range(10))
    [shard] = shards_of(kinesis, single)
    assert int(shard["SequenceNumberRange"]["StartingSequenceNumber"]) <= int(numbers[0])


def test_sequence_number_for_ordering_yields_greater_one(kinesis, single):
    first = kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")
    second = kinesis.put_record(
        StreamName=single,
        Data=b"y",
        PartitionKey="k",
        SequenceNumberForOrdering=first["SequenceNumber"],
    )

    assert int(second["SequenceNumber"]) > int(first["SequenceNumber"])


@pytest.fixture
def numbers(kinesis, single):
    """The sequence numbers of five records, 0 to 4."""
    return [
        kinesis.put_record(StreamName=single, Data=b"%d" % nth, PartitionKey="k")["SequenceNumber"]
        for nth in range(5)
    ]


def data_from(kinesis, iterator):
    return [record["Data"] for record in kinesis.get_records(ShardIterator=iterator)["Records"]]


def test_positions_at_and_after_sequence_number(kinesis, single, numbers):
    at = iterator_of(kinesis, single, kind="AT_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[3])
    after = iterator_of(
        kinesis, single, kind="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[3]
    )
    behind = iterator_of(
        kinesis, single, kind="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[4]
    )
    start = shards_of(kinesis, single)[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    first = iterator_of(kinesis, single, kind="AT_SEQUENCE_NUMBER", StartingSequenceNumber=start)

    assert data_from(kinesis, at) == [b"3", b"4"]
    assert data_from(kinesis, after) == [b"4"]
    assert data_from(kinesis, behind) == []
    assert data_from(kinesis, first) == [b"0", b"1", b"2", b"3", b"4"]


def test_position_at_timestamp_is_first_record_since(kinesis, single, numbers):
    records = records_of(kinesis, single)
    arrival = records[2]["ApproximateArrivalTimestamp"]
    since = iterator_of(kinesis, single, kind="AT_TIMESTAMP", Timestamp=arrival)
    ever = iterator_of(kinesis, single, kind="AT_TIMESTAMP", Timestamp=datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC))  # fmt: skip
    same = [
        record["Data"] for record in records if record["ApproximateArrivalTimestamp"] >= arrival
    ]

    assert data_from(kinesis, since) == same
    assert data_from(kinesis, ever) == [b"0", b"1", b"2", b"3", b"4"]


def test_latest_position_is_next_record(kinesis, single, numbers):
    latest = iterator_of(kinesis, single, kind="LATEST")
    before = kinesis.get_records(ShardIterator=latest)
    kinesis.put_record(StreamName=single, Data=b"new", PartitionKey="k")
    after = kinesis.get_records(ShardIterator=before["NextShardIterator"])

    assert (before["Records"], before["MillisBehindLatest"]) == ([], 0)
    assert [record["Data"] for record in after["Records"]] == [b"new"]
    assert data_from(kinesis, latest) == [b"new"]  # the same call again, from the same position


def test_reader_continues_and_sees_millis_behind_latest(kinesis, single, numbers):
    first = kinesis.get_records(ShardIterator=iterator_of(kinesis, single), Limit=2)
    second = kinesis.get_records(ShardIterator=first["NextShardIterator"], Limit=10)
    third = kinesis.get_records(ShardIterator=second["NextShardIterator"])

    assert [record["Data"] for record in first["Records"]] == [b"0", b"1"]
    assert [record["Data"] for record in second["Records"]] == [b"2", b"3", b"4"]
    assert third["Records"] == []
    assert third["NextShardIterator"]
    assert first["MillisBehindLatest"] >= 0
    assert second["MillisBehindLatest"] == third["MillisBehindLatest"] == 0


def test_kinesis_and_rest_read_each_others_records(client, kinesis, single):
    path = f"/v1/streams/{single}"
    sent = client.post(f"{path}/records", json={"data": "native", "key": "k"}).json()
    raw = client.post(f"{path}/records", content=b"\xff", headers={"content-type": "image/png"})
    put = kinesis.put_record(StreamName=single, Data=b"wire \xff", PartitionKey="w")

    records = records_of(kinesis, single)
    native = client.get(f"{path}/shards/0/records").json()["records"]
    assert raw.status_code == 201
    assert [(record["Data"], record["PartitionKey"]) for record in records] == [
        (b"native", "k"),
        (b"\xff", ""),
        (b"wire \xff", "w"),
    ]
    assert [read_number(record["SequenceNumber"]).offset for record in records] == [0, 1, 2]  # type: ignore[union-attr]
    assert sent["offset"] == 0
    assert put["SequenceNumber"] == records[2]["SequenceNumber"]
    assert native[2]["key"] == "w"
    assert base64.b64decode(native[2]["data_base64"]) == b"wire \xff"


def test_response_is_limited_to_ten_megabytes(kinesis, single):
    megabyte = b"x" * (1024 * 1024 - 100)
    for _ in range(4):
        batch = [{"Data": megabyte, "PartitionKey": "k"} for _ in range(3)]
        kinesis.put_records(StreamName=single, Records=batch)

    sizes: list[int] = []
    iterator = iterator_of(kinesis, single)
    while sum(sizes) < 12:
        response = kinesis.get_records(ShardIterator=iterator)
        sizes.append(len(response["Records"]))
        iterator = response["NextShardIterator"]
        assert sum(len(record["Data"]) for record in response["Records"]) <= 10 * 1024 * 1024

    assert sum(sizes) == 12
    assert len(sizes) == 2


def test_call_is_limited_to_ten_megabytes(kinesis, stream):
    megabyte = b"x" * (1024 * 1024 - 100)
    records = [{"Data": megabyte, "PartitionKey": "k"}] * 11

    refused = refusal(kinesis.put_records, StreamName=stream, Records=records)

    assert refused == (400, "InvalidArgumentException", "Records size exceeds 10 MB limit")


def test_dry_run_succeeds_without_effect(kinesis, single):
    request = {"StreamName": single, "DryRun": True}
    calls: list[tuple[Any, dict[str, Any]]] = [
        (kinesis.put_record, {"Data": b"x", "PartitionKey": "k"}),
        (kinesis.put_records, {"Records": [{"Data": b"x", "PartitionKey": "k"}]}),
        (
            kinesis.get_shard_iterator,
            {"ShardId": "shardId-000000000000", "ShardIteratorType": "LATEST"},
        ),
    ]

    for call, more in calls:
        assert refusal(call, **request, **more)[1] == "DryRunOperationException"
    told = refusal(kinesis.get_records, ShardIterator=iterator_of(kinesis, single), DryRun=True)
    assert told[1] == "DryRunOperationException"
    assert records_of(kinesis, single) == []


def test_aggregated_records_are_deaggregated_when_enabled(kinesis, single):
    packed = b"\x0a\x01a\x0a\x01b\x1a\x05\x08\x00\x1a\x01x\x1a\x05\x08\x01\x1a\x01y"
    data = b"\xf3\x89\x9a\xc2" + packed + hashlib.md5(packed).digest()
    put = kinesis.put_record(StreamName=single, Data=data, PartitionKey="whole")
    before = records_of(kinesis, single)
    kinesis.add_tags_to_stream(StreamName=single, Tags={"millstream:deaggregate": "true"})
    after = records_of(kinesis, single)

    assert [record["Data"] for record in before] == [data]
    assert [(record["PartitionKey"], record["Data"]) for record in after] == [
        ("a", b"x"),
        ("b", b"y"),
    ]
    assert {record["SequenceNumber"] for record in after} == {put["SequenceNumber"]}


def test_record_is_put_and_read_by_arn(kinesis, single):
    arn = arn_of(kinesis, single)
    kinesis.put_record(StreamARN=arn, Data=b"x", PartitionKey="k")
    response = kinesis.get_shard_iterator(
        StreamARN=arn, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )

    returned_response = kinesis.get_records(ShardIterator=response["ShardIterator"], StreamARN=arn)

    assert [record["Data"] for record in returned_response["Records"]] == [b"x"]


def test_stream_view_is_readable_and_not_writable(client, kinesis, name):
    client.put(f"/v1/queues/{name}", json={"stream_view": True}).raise_for_status()
    client.post(f"/v1/queues/{name}/messages", json={"body": "hello"}).raise_for_status()

    summary = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]
    [record] = records_of(kinesis, name)
    refused = [
        refusal(kinesis.put_record, StreamName=name, Data=b"x", PartitionKey="k"),
        refusal(kinesis.create_stream, StreamName=name, ShardCount=1),
        refusal(kinesis.delete_stream, StreamName=name),
        refusal(kinesis.add_tags_to_stream, StreamName=name, Tags={"a": "b"}),
        refusal(kinesis.register_stream_consumer, StreamARN=summary["StreamARN"], ConsumerName="c"),
    ]

    assert record["Data"] == b"hello"
    assert [code for _, code, _ in refused] == [
        "AccessDeniedException",
        "ResourceInUseException",
        "ResourceNotFoundException",
        "ResourceNotFoundException",
        "InvalidArgumentException",
    ]


def test_stream_view_partition_key_is_group_or_message_id(client, kinesis, name):
    client.put(f"/v1/queues/{name}", json={"stream_view": True}).raise_for_status()
    batch = {"messages": [{"body": "one", "group": "a"}, {"body": "two"}]}
    _, second = client.post(f"/v1/queues/{name}/messages", json=batch).json()["messages"]

    [shard] = kinesis.list_shards(StreamName=name)["Shards"]
    request = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = kinesis.get_shard_iterator(StreamName=name, **request)["ShardIterator"]
    records = kinesis.get_records(ShardIterator=iterator)["Records"]
    with pytest.raises(ClientError) as refused:
        kinesis.put_record(StreamName=name, Data=b"x", PartitionKey="k")

    assert [record["Data"] for record in records] == [b"one", b"two"]
    assert [record["PartitionKey"] for record in records] == ["a", second["id"]]
    assert refused.value.response["Error"]["Code"] == "AccessDeniedException"
