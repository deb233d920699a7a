"""Registered consumers and event streams: SubscribeToShard as botocore reads it."""

import json
import threading
import time
from contextlib import closing

import cbor2
import httpx
import pytest
from botocore.exceptions import EventStreamError

from api.aws.protocol.codecs.event_stream import KIND
from tests.contract.kinesis.conftest import CBOR, JSON, arn_of, client_of, read, refusal

NOT_FOUND, IN_USE = "ResourceNotFoundException", "ResourceInUseException"
SHARD = "shardId-000000000000"


@pytest.fixture
def consumer(kinesis, single):
    """The ARN of a consumer of the stream `single`."""
    arn = arn_of(kinesis, single)
    response = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="app")
    return response["Consumer"]["ConsumerARN"]


def subscribe(kinesis, consumer, kind="TRIM_HORIZON", shard=SHARD, **more):
    response = kinesis.subscribe_to_shard(
        ConsumerARN=consumer, ShardId=shard, StartingPosition={"Type": kind, **more}
    )
    return closing(response["EventStream"])


def events_of(stream):
    for event in stream:
        yield event["SubscribeToShardEvent"]


def test_consumer_is_registered_described_and_deregistered(kinesis, single, consumer):
    arn = arn_of(kinesis, single)
    by_arn = kinesis.describe_stream_consumer(ConsumerARN=consumer)["ConsumerDescription"]
    by_name = kinesis.describe_stream_consumer(StreamARN=arn, ConsumerName="app")
    summary = kinesis.describe_stream_summary(StreamName=single)["StreamDescriptionSummary"]
    twice = refusal(kinesis.register_stream_consumer, StreamARN=arn, ConsumerName="app")
    kinesis.deregister_stream_consumer(ConsumerARN=consumer)

    assert by_arn == by_name["ConsumerDescription"]
    assert (by_arn["ConsumerName"], by_arn["ConsumerStatus"]) == ("app", "ACTIVE")
    assert by_arn["StreamARN"] == arn
    created = int(by_arn["ConsumerCreationTimestamp"].timestamp())
    assert consumer == f"{arn}/consumer/app:{created}"
    assert summary["ConsumerCount"] == 1
    assert twice[:2] == (400, IN_USE)
    assert refusal(kinesis.describe_stream_consumer, ConsumerARN=consumer)[:2] == (400, NOT_FOUND)
    assert refusal(kinesis.deregister_stream_consumer, ConsumerARN=consumer)[1] == NOT_FOUND


def test_consumers_are_listed_in_pages(kinesis, single):
    arn = arn_of(kinesis, single)
    for word in "cab":
        kinesis.register_stream_consumer(StreamARN=arn, ConsumerName=word)

    pages = list(
        kinesis.get_paginator("list_stream_consumers").paginate(
            StreamARN=arn, PaginationConfig={"PageSize": 2}
        )
    )

    names = [
        [each_consumer["ConsumerName"] for each_consumer in page["Consumers"]] for page in pages
    ]
    assert names == [["a", "b"], ["c"]]


def test_consumers_have_their_own_tags_and_policies(kinesis, single):
    arn = arn_of(kinesis, single)
    response = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="app", Tags={"a": "1"})
    consumer = response["Consumer"]["ConsumerARN"]
    kinesis.tag_resource(ResourceARN=consumer, Tags={"b": "2"})
    kinesis.untag_resource(ResourceARN=consumer, TagKeys=["a"])
    kinesis.put_resource_policy(ResourceARN=consumer, Policy='{"Statement":[]}')

    tags = kinesis.list_tags_for_resource(ResourceARN=consumer)["Tags"]
    assert tags == [{"Key": "b", "Value": "2"}]
    assert kinesis.get_resource_policy(ResourceARN=consumer)["Policy"] == '{"Statement":[]}'
    assert kinesis.list_tags_for_resource(ResourceARN=arn)["Tags"] == []


def test_deleting_stream_with_consumers_requires_opt_in(kinesis, single, consumer):
    refused = refusal(kinesis.delete_stream, StreamName=single)
    kinesis.delete_stream(StreamName=single, EnforceConsumerDeletion=True)

    assert refused[:2] == (400, IN_USE)
    kinesis.create_stream(StreamName=single, ShardCount=1)
    assert refusal(kinesis.describe_stream_consumer, ConsumerARN=consumer)[:2] == (400, NOT_FOUND)


def test_records_are_pushed_as_they_arrive(kinesis, single, consumer):
    kinesis.put_record(StreamName=single, Data=b"before", PartitionKey="k")
    with subscribe(kinesis, consumer) as stream:
        events = events_of(stream)
        first = next(events)
        started = time.monotonic()
        put = kinesis.put_record(StreamName=single, Data=b"after \xff", PartitionKey="k")
        second = next(events)
        took_s = time.monotonic() - started

    assert [record["Data"] for record in first["Records"]] == [b"before"]
    assert [record["Data"] for record in second["Records"]] == [b"after \xff"]
    assert second["Records"][0]["SequenceNumber"] == put["SequenceNumber"]
    assert second["MillisBehindLatest"] == 0
    assert took_s < 2, "it was pushed, not found by the next look"


def test_event_with_continuation_is_sent_every_five_seconds(kinesis, single, consumer):
    with subscribe(kinesis, consumer) as stream:
        events = events_of(stream)
        first = next(events)
        started = time.monotonic()
        second = next(events)
        waited_s = time.monotonic() - started
    kinesis.put_record(StreamName=single, Data=b"first", PartitionKey="k")
    time.sleep(0.7)  # five seconds after the first call another one is allowed

    number = second["ContinuationSequenceNumber"]
    with subscribe(kinesis, consumer, "AFTER_SEQUENCE_NUMBER", SequenceNumber=number) as stream:
        third = next(events_of(stream))

    assert first["Records"] == second["Records"] == []
    assert 4 <= waited_s <= 5
    assert [record["Data"] for record in third["Records"]] == [b"first"]


def test_consumer_has_one_subscription_per_shard(kinesis, single, consumer):
    with subscribe(kinesis, consumer, "LATEST") as stream:
        events = events_of(stream)
        next(events)
        soon = refusal(
            kinesis.subscribe_to_shard,
            ConsumerARN=consumer,
            ShardId=SHARD,
            StartingPosition={"Type": "LATEST"},
        )
        time.sleep(5)
        with subscribe(kinesis, consumer, "LATEST") as other:
            next(events_of(other))
            with pytest.raises(EventStreamError) as ended:
                for _ in events:
                    pass

    assert soon[:2] == (400, IN_USE)
    assert ended.value.response["Error"]["Code"] == IN_USE


def assert_ends(events):
    """Assert that only the last event has the end of a shard as KCL, Flink and Beam know it."""
    *before, last = events
    assert all(event["ContinuationSequenceNumber"] for event in before)
    assert not any("ChildShards" in event for event in before)
    assert "ContinuationSequenceNumber" not in last
    assert last["Records"] == []
    assert [child["ShardId"][-1] for child in last["ChildShards"]] == ["1", "2"]


def test_subscription_ends_with_its_shard_and_names_children(kinesis, single, consumer):
    kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")
    with subscribe(kinesis, consumer) as stream:
        events = events_of(stream)
        first = next(events)
        kinesis.split_shard(StreamName=single, ShardToSplit=SHARD, NewStartingHashKey=str(2**127))
        rest = list(events)

    assert len(first["Records"]) == 1
    assert_ends([first, *rest])


@pytest.mark.parametrize(("start", "records"), [("TRIM_HORIZON", 2), ("LATEST", 0)])
def test_subscription_to_closed_shard_delivers_records_then_end(
    kinesis, single, consumer, start, records
):
    for _ in range(2):
        kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")
    kinesis.split_shard(StreamName=single, ShardToSplit=SHARD, NewStartingHashKey=str(2**127))

    with subscribe(kinesis, consumer, start) as stream:
        events = list(events_of(stream))

    assert sum(len(event["Records"]) for event in events) == records
    assert_ends(events)


def test_subscription_ends_with_its_consumer_or_stream(kinesis, single, consumer):
    other = kinesis.register_stream_consumer(
        StreamARN=arn_of(kinesis, single), ConsumerName="other"
    )["Consumer"]["ConsumerARN"]
    codes = []
    with subscribe(kinesis, consumer) as first, subscribe(kinesis, other) as second:
        streams = [events_of(first), events_of(second)]
        for events in streams:
            next(events)
        kinesis.deregister_stream_consumer(ConsumerARN=consumer)
        kinesis.delete_stream(StreamName=single, EnforceConsumerDeletion=True)
        for events in streams:
            with pytest.raises(EventStreamError) as ended:
                list(events)
            codes.append(ended.value.response["Error"]["Code"])

    assert codes == [IN_USE, NOT_FOUND]


def test_invalid_subscription_is_rejected(kinesis, single, consumer):
    def refused(**asked):
        fields = {
            "ConsumerARN": consumer,
            "ShardId": SHARD,
            "StartingPosition": {"Type": "LATEST"},
        }
        return refusal(kinesis.subscribe_to_shard, **{**fields, **asked})[1]

    assert refused(ConsumerARN=consumer + "9") == NOT_FOUND
    assert refused(ShardId="shardId-000000000009") == NOT_FOUND
    assert refused(StartingPosition={"Type": "AT_TIMESTAMP"}) == "InvalidArgumentException"
    assert refused(StartingPosition={"Type": "NEVER"}) == "ValidationException"
    assert refused(StartingPosition={}) == "ValidationException"
    assert refused(DryRun=True) == "DryRunOperationException"


@pytest.mark.parametrize("in_chunks", [False, True])
@pytest.mark.parametrize("kind", [JSON, CBOR])
def test_events_use_media_type_of_request(raw, kinesis, single, consumer, kind, in_chunks):
    """A chunked request takes the long path through the server, through ASGI."""
    kinesis.put_record(StreamName=single, Data=b"x", PartitionKey="k")
    position = {"Type": "TRIM_HORIZON"}
    new_request = {"ConsumerARN": consumer, "ShardId": SHARD, "StartingPosition": position}
    refused = raw.post("SubscribeToShard", {**new_request, "ShardId": "none"}, kind)
    body = b""
    request = raw.http.build_request(
        "POST",
        "/",
        content=iter([raw_body(new_request, kind)]) if in_chunks else raw_body(new_request, kind),
        headers={"x-amz-target": "Kinesis_20131202.SubscribeToShard", "content-type": kind},
    )
    answer = raw.http.send(request, stream=True)
    for piece in answer.iter_bytes():
        body += piece
        if body.count(b"SubscribeToShardEvent"):
            break
    answer.close()

    assert read(refused)["__type"] == NOT_FOUND
    assert answer.headers["content-type"] == KIND
    assert b"initial-response" in body
    assert (b'"Data":"eA=="' if kind == JSON else b"\x64Data\x41x") in body


def raw_body(asked, kind):
    return json.dumps(asked).encode() if kind == JSON else cbor2.dumps(asked)


def test_ten_subscribers_see_every_record_in_order(service_url, kinesis, name):
    """Ten subscribers each see every record, in order."""
    kinesis.create_stream(StreamName=name, ShardCount=1)
    arn = arn_of(kinesis, name)
    consumers = [
        kinesis.register_stream_consumer(StreamARN=arn, ConsumerName=f"app-{number}")["Consumer"]
        for number in range(10)
    ]
    seen: dict[str, list[bytes]] = {}

    def reading(consumer):
        own, found = client_of(service_url), seen.setdefault(consumer, [])
        with subscribe(own, consumer) as stream:
            for event in events_of(stream):
                found += [record["Data"] for record in event["Records"]]
                if len(found) >= 100:
                    break
        own.close()

    threads = [
        threading.Thread(target=reading, args=(each_consumer["ConsumerARN"],))
        for each_consumer in consumers
    ]
    for thread in threads:
        thread.start()
    wanted = [b"%d" % number for number in range(100)]
    for number in range(0, 100, 10):
        batch = [{"Data": data, "PartitionKey": "k"} for data in wanted[number : number + 10]]
        kinesis.put_records(StreamName=name, Records=batch)
    for thread in threads:
        thread.join(20)

    assert list(seen.values()) == [wanted] * 10


def test_request_on_slow_http_path_gets_same_answer(service_url):
    """The call takes the ASGI path instead of the fast path."""
    with httpx.Client(base_url=service_url) as client:
        headers = {"x-amz-target": "Kinesis_20131202.SubscribeToShard", "expect": "100-continue"}
        answer = client.post("/", content=b"{}", headers=headers)

    assert answer.status_code == 400
    assert answer.json()["__type"] == "ValidationException"
