"""Splits, merges and shard counts, and readers that follow them."""

import datetime
import time
from itertools import pairwise

import pytest

from tests.contract.kinesis.conftest import arn_of, iterator_of, refusal, shards_of

INVALID = "InvalidArgumentException"
MIDDLE = str(2**127)


def put(kinesis, stream, count, start=0):
    records = [
        {"Data": b"%d" % number, "PartitionKey": f"key-{number % 7}"}
        for number in range(start, start + count)
    ]
    response = kinesis.put_records(StreamName=stream, Records=records)
    assert response["FailedRecordCount"] == 0
    return [record["SequenceNumber"] for record in response["Records"]]


def read_all(kinesis, stream):
    """Read every record as a reader does that starts at the first shard and follows children."""
    found, seen, waiting = [], set(), [shard["ShardId"] for shard in shards_of(kinesis, stream) if "ParentShardId" not in shard]  # fmt: skip
    while waiting:
        shard = waiting.pop(0)
        seen.add(shard)
        iterator = iterator_of(kinesis, stream, int(shard[-12:]))
        while iterator:
            response = kinesis.get_records(ShardIterator=iterator, Limit=3)
            found += [(record["PartitionKey"], record["Data"]) for record in response["Records"]]
            for child in response.get("ChildShards", []):
                parents_done = set(child["ParentShards"]) <= seen
                if parents_done and child["ShardId"] not in waiting:
                    waiting.append(child["ShardId"])
            if not response["Records"] and response["MillisBehindLatest"] == 0 and "NextShardIterator" in response:  # fmt: skip
                break
            iterator = response.get("NextShardIterator")
    return found


def test_split_closes_one_shard_and_opens_two(kinesis, single):
    before = put(kinesis, single, 10)
    kinesis.split_shard(
        StreamName=single, ShardToSplit="shardId-000000000000", NewStartingHashKey=MIDDLE
    )
    after = put(kinesis, single, 10)

    parent, first, second = shards_of(kinesis, single)
    ending = int(parent["SequenceNumberRange"]["EndingSequenceNumber"])
    assert first["ParentShardId"] == second["ParentShardId"] == parent["ShardId"]
    assert "AdjacentParentShardId" not in first
    assert second["HashKeyRange"]["StartingHashKey"] == MIDDLE
    assert max(map(int, before)) < ending < min(map(int, after))
    for shard in (first, second):
        assert ending < int(shard["SequenceNumberRange"]["StartingSequenceNumber"])
    summary = kinesis.describe_stream_summary(StreamName=single)["StreamDescriptionSummary"]
    assert (summary["OpenShardCount"], summary["StreamStatus"]) == (2, "ACTIVE")


def test_reader_finds_end_of_shard_and_children(kinesis, single):
    put(kinesis, single, 3)
    open_end = kinesis.get_records(ShardIterator=iterator_of(kinesis, single))
    kinesis.split_shard(
        StreamName=single, ShardToSplit="shardId-000000000000", NewStartingHashKey=MIDDLE
    )
    response = kinesis.get_records(ShardIterator=iterator_of(kinesis, single), Limit=2)
    rest = kinesis.get_records(ShardIterator=response["NextShardIterator"])
    again = kinesis.get_records(ShardIterator=open_end["NextShardIterator"])

    assert len(response["Records"]) == 2
    assert "ChildShards" not in response
    assert len(rest["Records"]) == 1
    assert "NextShardIterator" not in rest
    assert again["Records"] == []
    assert "NextShardIterator" not in again
    children = [
        (child["ShardId"][-1], child["ParentShards"], child["HashKeyRange"]["StartingHashKey"])
        for child in again["ChildShards"]
    ]
    assert children == [
        ("1", ["shardId-000000000000"], "0"),
        ("2", ["shardId-000000000000"], MIDDLE),
    ]
    assert rest["ChildShards"] == again["ChildShards"]


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_reader_from_start_of_child_misses_no_record(kinesis, single, kind):
    """lifion-kinesis stores a child's start as its checkpoint, and lost the first record of each child."""
    kinesis.split_shard(
        StreamName=single, ShardToSplit="shardId-000000000000", NewStartingHashKey=MIDDLE
    )
    put(kinesis, single, 20)
    read = []
    for shard in shards_of(kinesis, single)[1:]:
        start = shard["SequenceNumberRange"]["StartingSequenceNumber"]
        iterator = iterator_of(
            kinesis, single, int(shard["ShardId"][-1]), kind=kind, StartingSequenceNumber=start
        )
        read += kinesis.get_records(ShardIterator=iterator)["Records"]

    assert len(read) == 20


def test_positions_at_end_of_closed_shard_return_its_end(kinesis, single):
    put(kinesis, single, 3)
    kinesis.split_shard(
        StreamName=single, ShardToSplit="shardId-000000000000", NewStartingHashKey=MIDDLE
    )
    ending = shards_of(kinesis, single)[0]["SequenceNumberRange"]["EndingSequenceNumber"]

    at_the_end = [
        iterator_of(kinesis, single, kind="LATEST"),
        iterator_of(kinesis, single, kind="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=ending),
        iterator_of(kinesis, single, kind="AT_SEQUENCE_NUMBER", StartingSequenceNumber=ending),
    ]

    for iterator in at_the_end:
        response = kinesis.get_records(ShardIterator=iterator)
        assert response["Records"] == []
        assert "NextShardIterator" not in response


def test_merge_closes_two_shards_and_opens_one(kinesis, stream):
    put(kinesis, stream, 20)
    kinesis.merge_shards(
        StreamName=stream,
        ShardToMerge="shardId-000000000001",
        AdjacentShardToMerge="shardId-000000000000",
    )
    put(kinesis, stream, 5, 20)

    first, second, child = shards_of(kinesis, stream)
    assert child["ParentShardId"] == second["ShardId"]
    assert child["AdjacentParentShardId"] == first["ShardId"]
    assert child["HashKeyRange"] == {"StartingHashKey": "0", "EndingHashKey": str(2**128 - 1)}
    assert "EndingSequenceNumber" in first["SequenceNumberRange"]
    assert sorted(int(data) for _, data in read_all(kinesis, stream)) == list(range(25))


def test_update_shard_count_yields_equal_parts_and_keeps_order(kinesis, single):
    put(kinesis, single, 10)
    response = kinesis.update_shard_count(
        StreamName=single, TargetShardCount=3, ScalingType="UNIFORM_SCALING"
    )
    put(kinesis, single, 10, 10)
    kinesis.update_shard_count(
        StreamARN=arn_of(kinesis, single), TargetShardCount=2, ScalingType="UNIFORM_SCALING"
    )
    put(kinesis, single, 10, 20)

    assert (response["CurrentShardCount"], response["TargetShardCount"]) == (1, 3)
    opened = [
        shard["HashKeyRange"]
        for shard in kinesis.list_shards(StreamName=single, ShardFilter={"Type": "AT_LATEST"})["Shards"]
    ]  # fmt: skip
    assert sorted(int(one["StartingHashKey"]) for one in opened) == [0, 2**127]
    by_key: dict[str, list[int]] = {}
    for key, data in read_all(kinesis, single):
        by_key.setdefault(key, []).append(int(data))
    assert sorted(number for numbers in by_key.values() for number in numbers) == list(range(30))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


def test_shards_are_filtered_by_open_time(kinesis, single):
    def listed(**chosen):
        response = kinesis.list_shards(StreamName=single, ShardFilter=chosen)
        return [int(shard["ShardId"][-12:]) for shard in response["Shards"]]

    kinesis.split_shard(
        StreamName=single, ShardToSplit="shardId-000000000000", NewStartingHashKey=MIDDLE
    )
    time.sleep(1.1)  # a child may open up to a second ahead
    now = datetime.datetime.now(datetime.UTC)

    assert listed(Type="AT_LATEST") == [1, 2]
    assert listed(Type="AT_TRIM_HORIZON") == [0]
    assert listed(Type="FROM_TRIM_HORIZON") == [0, 1, 2]
    assert listed(Type="AFTER_SHARD_ID", ShardId="shardId-000000000001") == [2]
    assert listed(Type="AT_TIMESTAMP", Timestamp=now) == [1, 2]
    assert listed(Type="FROM_TIMESTAMP", Timestamp=now) == [1, 2]
    assert listed(Type="FROM_TIMESTAMP", Timestamp=now - datetime.timedelta(days=9)) == [0, 1, 2]


def test_open_shards_cover_hash_ring_during_multi_step_reshard(kinesis, single):
    """Each generation opens in a later second, so a reshard in steps opens shards ahead."""
    for count in (2, 4, 3):
        kinesis.update_shard_count(
            StreamName=single, TargetShardCount=count, ScalingType="UNIFORM_SCALING"
        )
    put(kinesis, single, 20)

    for ahead_s in (0, 1.0, 1.0, 1.0):
        time.sleep(ahead_s)
        chosen = {"Type": "AT_TIMESTAMP", "Timestamp": datetime.datetime.now(datetime.UTC)}
        shards = kinesis.list_shards(StreamName=single, ShardFilter=chosen)["Shards"]
        ranges = sorted(
            (int(one["HashKeyRange"]["StartingHashKey"]), int(one["HashKeyRange"]["EndingHashKey"]))
            for one in shards
        )
        assert [ranges[0][0], ranges[-1][1]] == [0, 2**128 - 1]
        assert all(before[1] + 1 == after[0] for before, after in pairwise(ranges))
    for shard in shards_of(kinesis, single):
        iterator = iterator_of(kinesis, single, int(shard["ShardId"][-12:]))
        numbers = [
            int(one["SequenceNumber"])
            for one in kinesis.get_records(ShardIterator=iterator)["Records"]
        ]
        start = int(shard["SequenceNumberRange"]["StartingSequenceNumber"])
        assert all(start <= number for number in numbers)


def test_filter_of_shards_applies_to_next_page(kinesis, single):
    kinesis.update_shard_count(StreamName=single, TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    first = kinesis.list_shards(StreamName=single, ShardFilter={"Type": "AT_LATEST"}, MaxResults=3)
    second = kinesis.list_shards(NextToken=first["NextToken"])

    assert (len(first["Shards"]), len(second["Shards"])) == (3, 1)
    assert "NextToken" not in second


@pytest.mark.parametrize("key", ["0", "1", str(2**128 - 1)])
def test_split_at_edge_of_range_is_rejected(kinesis, single, key):
    told = refusal(
        kinesis.split_shard,
        StreamName=single,
        ShardToSplit="shardId-000000000000",
        NewStartingHashKey=key,
    )

    assert told[:2] == (400, INVALID)
    assert len(shards_of(kinesis, single)) == 1


def test_closed_and_nonadjacent_shards_are_rejected(kinesis, name):
    kinesis.create_stream(StreamName=name, ShardCount=3)
    first, second, third = (f"shardId-{number:012d}" for number in range(3))
    apart = refusal(
        kinesis.merge_shards, StreamName=name, ShardToMerge=first, AdjacentShardToMerge=third
    )
    itself = refusal(
        kinesis.merge_shards, StreamName=name, ShardToMerge=first, AdjacentShardToMerge=first
    )
    kinesis.merge_shards(StreamName=name, ShardToMerge=first, AdjacentShardToMerge=second)
    closed = refusal(
        kinesis.merge_shards, StreamName=name, ShardToMerge=first, AdjacentShardToMerge=second
    )
    split = refusal(
        kinesis.split_shard, StreamName=name, ShardToSplit=first, NewStartingHashKey="50"
    )
    too_many = refusal(
        kinesis.update_shard_count,
        StreamName=name,
        TargetShardCount=10**6,
        ScalingType="UNIFORM_SCALING",
    )

    assert apart[:2] == itself[:2] == closed[:2] == split[:2] == (400, INVALID)
    assert too_many[:2] == (400, "LimitExceededException")


def test_records_put_during_split_all_arrive(kinesis, single):
    number = 0
    for _ in range(3):
        put(kinesis, single, 20, number)
        number += 20
        opened = kinesis.list_shards(StreamName=single, ShardFilter={"Type": "AT_LATEST"})["Shards"]
        widest = opened[0]
        low, high = (int(widest["HashKeyRange"][word]) for word in ("StartingHashKey", "EndingHashKey"))  # fmt: skip
        kinesis.split_shard(
            StreamName=single,
            ShardToSplit=widest["ShardId"],
            NewStartingHashKey=str((low + high) // 2),
        )

    put(kinesis, single, 20, number)

    assert sorted(int(data) for _, data in read_all(kinesis, single)) == list(range(80))
