"""Creation, description, configuration and deletion of streams with boto3."""

import datetime

import pytest

from tests.contract.kinesis.conftest import arn_of, refusal, shards_of

HOUR_S = 3_600


def summary_of(kinesis, stream):
    return kinesis.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]


def test_created_stream_is_active_immediately(kinesis, stream):
    stream_description = kinesis.describe_stream(StreamName=stream)["StreamDescription"]
    summary = summary_of(kinesis, stream)

    assert stream_description["StreamName"] == summary["StreamName"] == stream
    assert stream_description["StreamStatus"] == summary["StreamStatus"] == "ACTIVE"
    assert stream_description["StreamARN"].endswith(f":stream/{stream}")
    assert stream_description["RetentionPeriodHours"] == 24
    assert stream_description["EncryptionType"] == summary["EncryptionType"] == "NONE"
    assert stream_description["EnhancedMonitoring"] == [{"ShardLevelMetrics": []}]
    assert stream_description["StreamModeDetails"] == {"StreamMode": "PROVISIONED"}
    assert stream_description["HasMoreShards"] is False
    age = datetime.datetime.now(datetime.UTC) - stream_description["StreamCreationTimestamp"]
    assert datetime.timedelta(0) <= age < datetime.timedelta(minutes=5)
    assert (summary["OpenShardCount"], summary["ConsumerCount"]) == (2, 0)
    assert summary["MaxRecordSizeInKiB"] == 1024


def test_shards_cover_hash_ring(kinesis, stream):
    first, second = kinesis.describe_stream(StreamName=stream)["StreamDescription"]["Shards"]

    assert [first["ShardId"], second["ShardId"]] == [
        "shardId-000000000000",
        "shardId-000000000001",
    ]
    assert first["HashKeyRange"] == {"StartingHashKey": "0", "EndingHashKey": str(2**127 - 1)}
    assert second["HashKeyRange"] == {
        "StartingHashKey": str(2**127),
        "EndingHashKey": str(2**128 - 1),
    }
    assert list(first["SequenceNumberRange"]) == ["StartingSequenceNumber"]
    assert "ParentShardId" not in first


def test_boto3_waiters_complete(kinesis, stream):
    kinesis.get_waiter("stream_exists").wait(StreamName=stream)
    kinesis.delete_stream(StreamName=stream)
    kinesis.get_waiter("stream_not_exists").wait(StreamName=stream)


def test_name_of_deleted_stream_is_reusable(kinesis, stream):
    before = summary_of(kinesis, stream)
    kinesis.put_record(StreamName=stream, Data=b"old", PartitionKey="k")

    kinesis.delete_stream(StreamARN=before["StreamARN"])
    kinesis.create_stream(StreamName=stream, ShardCount=1)

    assert summary_of(kinesis, stream)["OpenShardCount"] == 1
    response = kinesis.get_shard_iterator(
        StreamName=stream, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )
    assert kinesis.get_records(ShardIterator=response["ShardIterator"])["Records"] == []


def test_streams_are_listed_in_pages(kinesis, name):
    names = [f"{name}-list-{number}" for number in range(5)]
    for one in names:
        kinesis.create_stream(StreamName=one, ShardCount=1)

    pages = list(kinesis.get_paginator("list_streams").paginate(PaginationConfig={"PageSize": 2}))
    first = kinesis.list_streams(ExclusiveStartStreamName=f"{name}-list-0", Limit=2)

    listed = [one for page in pages for one in page["StreamNames"]]
    assert [one for one in listed if one.startswith(f"{name}-list-")] == names
    assert all(len(page["StreamNames"]) <= 2 for page in pages)
    assert [page["HasMoreStreams"] for page in pages][-1] is False
    assert first["StreamNames"] == names[1:3]
    assert first["HasMoreStreams"] is True
    assert first["StreamSummaries"][0]["StreamName"] == names[1]
    assert first["StreamSummaries"][0]["StreamStatus"] == "ACTIVE"


def test_stream_is_identified_by_name_or_arn(kinesis, stream):
    arn = arn_of(kinesis, stream)

    both = kinesis.describe_stream_summary(StreamName=stream, StreamARN=arn)
    by_arn = kinesis.describe_stream_summary(StreamARN=arn)

    assert both["StreamDescriptionSummary"] == by_arn["StreamDescriptionSummary"]


def test_shards_are_described_in_pages(kinesis, name):
    kinesis.create_stream(StreamName=name, ShardCount=7)

    pages = list(
        kinesis.get_paginator("describe_stream").paginate(
            StreamName=name, PaginationConfig={"PageSize": 3}
        )
    )

    shard_ids = [
        shard["ShardId"] for page in pages for shard in page["StreamDescription"]["Shards"]
    ]
    assert shard_ids == [f"shardId-{number:012d}" for number in range(7)]
    assert [page["StreamDescription"]["HasMoreShards"] for page in pages] == [True, True, False]


def test_shards_are_listed_in_pages(kinesis, name):
    kinesis.create_stream(StreamName=name, ShardCount=7)

    first = kinesis.list_shards(StreamName=name, MaxResults=3)
    second = kinesis.list_shards(NextToken=first["NextToken"], MaxResults=10)
    behind = kinesis.list_shards(StreamName=name, ExclusiveStartShardId="shardId-000000000004")

    assert [shard["ShardId"][-1] for shard in first["Shards"]] == ["0", "1", "2"]
    assert [shard["ShardId"][-1] for shard in second["Shards"]] == ["3", "4", "5", "6"]
    assert "NextToken" not in second
    assert [shard["ShardId"][-1] for shard in behind["Shards"]] == ["5", "6"]


def test_natively_created_stream_is_described(client, kinesis, name):
    client.put(f"/v1/streams/{name}", json={"shards": 3, "retention_seconds": 5_400})

    summary = summary_of(kinesis, name)

    assert summary["OpenShardCount"] == 3
    assert summary["RetentionPeriodHours"] == 2  # rounded up
    assert summary["StreamModeDetails"] == {"StreamMode": "PROVISIONED"}


def test_retention_is_increased_and_decreased(client, kinesis, stream):
    kinesis.increase_stream_retention_period(StreamName=stream, RetentionPeriodHours=48)
    raised = client.get(f"/v1/streams/{stream}").json()["retention_seconds"]
    kinesis.decrease_stream_retention_period(StreamName=stream, RetentionPeriodHours=24)

    assert raised == 48 * HOUR_S
    assert summary_of(kinesis, stream)["RetentionPeriodHours"] == 24


def test_record_size_limit_is_configurable(kinesis, single):
    kinesis.update_max_record_size(StreamARN=arn_of(kinesis, single), MaxRecordSizeInKiB=2048)
    large = b"x" * (2 * 1024 * 1024 - 1)

    kinesis.put_record(StreamName=single, Data=large, PartitionKey="k")
    refused = refusal(kinesis.put_record, StreamName=single, Data=large + b"x", PartitionKey="k")

    assert summary_of(kinesis, single)["MaxRecordSizeInKiB"] == 2048
    assert refused[:2] == (400, "ValidationException")


def test_ten_megabyte_record_round_trips(kinesis, name):
    kinesis.create_stream(StreamName=name, ShardCount=1, MaxRecordSizeInKiB=10_240)
    data = b"x" * (10 * 1024 * 1024 - 1)
    kinesis.put_record(StreamName=name, Data=data, PartitionKey="k")
    kinesis.put_record(StreamName=name, Data=b"small", PartitionKey="k")
    response = kinesis.get_shard_iterator(
        StreamName=name, ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
    )

    first = kinesis.get_records(ShardIterator=response["ShardIterator"])
    second = kinesis.get_records(ShardIterator=first["NextShardIterator"])

    assert [record["Data"] for record in first["Records"]] == [data]
    assert [record["Data"] for record in second["Records"]] == [b"small"]


def test_on_demand_stream_starts_with_four_shards(kinesis, on_demand):
    summary = summary_of(kinesis, on_demand)

    assert summary["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}
    assert summary["OpenShardCount"] == 4
    assert summary["RecordDistributionStrategy"] == "USER_PARTITION_KEY"


def test_default_mode_is_on_demand(kinesis, name):
    kinesis.create_stream(StreamName=name)

    summary = summary_of(kinesis, name)
    assert summary["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}
    assert summary["OpenShardCount"] == 4


def test_mode_change_drops_settings_of_old_mode(kinesis, on_demand):
    arn = arn_of(kinesis, on_demand)
    response = kinesis.update_stream_warm_throughput(StreamARN=arn, WarmThroughputMiBps=100)
    warm = summary_of(kinesis, on_demand)["WarmThroughput"]
    kinesis.update_stream_mode(StreamARN=arn, StreamModeDetails={"StreamMode": "PROVISIONED"})
    summary = summary_of(kinesis, on_demand)

    assert response["WarmThroughput"] == {"TargetMiBps": 100, "CurrentMiBps": 0}
    assert warm == {"TargetMiBps": 100, "CurrentMiBps": 100}
    assert summary["StreamModeDetails"] == {"StreamMode": "PROVISIONED"}
    assert "WarmThroughput" not in summary


def test_auto_distribution_spreads_records_over_shards(kinesis, on_demand):
    kinesis.update_stream_record_distribution_strategy(
        StreamARN=arn_of(kinesis, on_demand), RecordDistributionStrategy="AUTO"
    )
    records = [{"Data": b"x"} for _ in range(200)]

    response = kinesis.put_records(StreamName=on_demand, Records=records)

    assert response["FailedRecordCount"] == 0
    assert len({record["ShardId"] for record in response["Records"]}) == 4
    assert summary_of(kinesis, on_demand)["RecordDistributionStrategy"] == "AUTO"


def test_enhanced_monitoring_is_stored_and_returned(kinesis, stream):
    first = kinesis.enable_enhanced_monitoring(
        StreamName=stream, ShardLevelMetrics=["OutgoingBytes", "IncomingBytes"]
    )
    second = kinesis.disable_enhanced_monitoring(
        StreamName=stream, ShardLevelMetrics=["OutgoingBytes"]
    )
    enhanced_monitoring = summary_of(kinesis, stream)["EnhancedMonitoring"]
    every = kinesis.enable_enhanced_monitoring(StreamName=stream, ShardLevelMetrics=["ALL"])
    none = kinesis.disable_enhanced_monitoring(StreamName=stream, ShardLevelMetrics=["ALL"])

    assert (first["CurrentShardLevelMetrics"], first["DesiredShardLevelMetrics"]) == (
        [],
        ["IncomingBytes", "OutgoingBytes"],
    )
    assert second["CurrentShardLevelMetrics"] == ["IncomingBytes", "OutgoingBytes"]
    assert enhanced_monitoring == [{"ShardLevelMetrics": ["IncomingBytes"]}]
    assert len(every["DesiredShardLevelMetrics"]) == 7
    assert none["DesiredShardLevelMetrics"] == []


def test_encryption_settings_are_returned_as_set(kinesis, single):
    key = {"EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"}
    kinesis.start_stream_encryption(StreamName=single, **key)
    summary = summary_of(kinesis, single)
    put = kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")
    kinesis.stop_stream_encryption(StreamName=single, **key)
    plain = kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")

    assert (summary["EncryptionType"], summary["KeyId"]) == ("KMS", "alias/aws/kinesis")
    assert put["EncryptionType"] == "KMS"
    assert "EncryptionType" not in plain
    assert summary_of(kinesis, single)["EncryptionType"] == "NONE"


def test_both_tag_apis_share_same_tags(client, kinesis, stream):
    arn = arn_of(kinesis, stream)
    kinesis.add_tags_to_stream(StreamName=stream, Tags={"team": "blüe", "a": "1", "b": ""})
    kinesis.tag_resource(ResourceARN=arn, Tags={"a": "2", "c": "3"})
    kinesis.remove_tags_from_stream(StreamName=stream, TagKeys=["b", "missing"])
    kinesis.untag_resource(ResourceARN=arn, TagKeys=["c"])

    listed = kinesis.list_tags_for_stream(StreamName=stream)
    wanted = [{"Key": "a", "Value": "2"}, {"Key": "team", "Value": "blüe"}]
    assert (listed["Tags"], listed["HasMoreTags"]) == (wanted, False)
    assert kinesis.list_tags_for_resource(ResourceARN=arn)["Tags"] == wanted
    assert client.get(f"/v1/streams/{stream}").json()["tags"] == {"a": "2", "team": "blüe"}


def test_tags_are_listed_in_pages(kinesis, stream):
    kinesis.add_tags_to_stream(StreamName=stream, Tags=dict.fromkeys("edcba", ""))

    first = kinesis.list_tags_for_stream(StreamName=stream, Limit=2)
    second = kinesis.list_tags_for_stream(StreamName=stream, ExclusiveStartTagKey="b", Limit=3)

    assert ([tag["Key"] for tag in first["Tags"]], first["HasMoreTags"]) == (["a", "b"], True)
    assert ([tag["Key"] for tag in second["Tags"]], second["HasMoreTags"]) == (
        ["c", "d", "e"],
        False,
    )


def test_stream_is_created_with_tags(kinesis, name):
    kinesis.create_stream(StreamName=name, ShardCount=1, Tags={"a": "b"})

    assert kinesis.list_tags_for_stream(StreamName=name)["Tags"] == [{"Key": "a", "Value": "b"}]


def test_policy_is_stored_verbatim(kinesis, stream):
    arn = arn_of(kinesis, stream)
    policy = '{"Version": "2012-10-17", "Statement": []}'
    kinesis.put_resource_policy(ResourceARN=arn, Policy=policy)
    returned_policy = kinesis.get_resource_policy(ResourceARN=arn)["Policy"]
    kinesis.delete_resource_policy(ResourceARN=arn)

    assert returned_policy == policy
    assert kinesis.get_resource_policy(ResourceARN=arn)["Policy"] == "{}"


def test_limits_include_current_counts(kinesis, stream, on_demand):
    response = kinesis.describe_limits()

    assert response["OpenShardCount"] >= 6
    assert response["OnDemandStreamCount"] >= 1
    assert (response["ShardLimit"], response["OnDemandStreamCountLimit"]) == (20_000, 50)


def test_account_settings_are_stored(kinesis):
    def commit(status):
        fields = {"Status": status}
        told = kinesis.update_account_settings(MinimumThroughputBillingCommitment=fields)
        return told["MinimumThroughputBillingCommitment"]

    enabled = commit("ENABLED")
    told = kinesis.describe_account_settings()["MinimumThroughputBillingCommitment"]
    disabled = commit("DISABLED")

    assert enabled == told
    assert (enabled["Status"], disabled["Status"]) == ("ENABLED", "DISABLED")
    assert disabled["StartedAt"] == enabled["StartedAt"] <= disabled["EndedAt"]


@pytest.mark.parametrize("name_length", [1, 80])
def test_shortest_and_longest_names_are_accepted(kinesis, name, name_length):
    word = (name * 80)[-name_length:] if name_length > 1 else f"{name}"[-1:]
    kinesis.create_stream(StreamName=word, ShardCount=1)

    assert len(shards_of(kinesis, word)) == 1


def test_tag_with_nul_is_rejected(kinesis, name):
    """SDKs retried the internal error that it was."""
    with pytest.raises(kinesis.exceptions.ClientError) as refused:
        kinesis.create_stream(StreamName=name, ShardCount=1, Tags={"a": "a\0b"})

    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
