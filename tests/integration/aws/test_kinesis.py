"""The Kinesis API over time, several processes, and failing stores, on a manual clock."""

import asyncio
import base64
from typing import Any, Literal

import httpx
import pytest

from api.app import create_app
from api.aws.kinesis.default_throughput import CONSUMERS_MAX_AT_AMAZON
from api.config.settings import Settings
from storage.bootstrap import open_storage
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import (
    MillstreamError,
    OutcomeUnknown,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
)
from storage.domain.names import StreamName
from storage.domain.streams.stream import Appended, AppendedRange
from storage.settings import StorageSettings
from storage.streams.engine import Streams

pytestmark = pytest.mark.one_store

MINUTE_MS = limits.MINUTE_MS
SHARD = "shardId-000000000000"


class Client:
    """Calls the Kinesis API of one process."""

    def __init__(self, app: Any) -> None:
        transport = httpx.ASGITransport(app=app)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def post(self, operation: str, **asked: Any) -> httpx.Response:
        """Return the whole response."""
        headers = {"x-amz-target": f"Kinesis_20131202.{operation}"}
        return await self._http.post("/", json=asked, headers=headers)

    async def __call__(self, operation: str, **asked: Any) -> Any:
        answer = await self.post(operation, **asked)
        return answer.json() if answer.content else None

    async def code(self, operation: str, **asked: Any) -> str | None:
        """Return the error's code; None without an error."""
        told = await self(operation, **asked)
        return None if told is None else told.get("__type")


def client_of(storage: Any, profile: Literal["native", "aws"] = "native") -> Client:
    return Client(create_app(Settings(limits=profile), storage))


@pytest.fixture
async def kinesis(engines):
    return client_of(engines)


@pytest.fixture
async def limited(engines):
    """The Kinesis API of a process that enforces the limits of AWS."""
    return client_of(engines, "aws")


@pytest.fixture
async def stream(kinesis):
    await kinesis("CreateStream", StreamName="orders", ShardCount=1)
    return "orders"


async def put(kinesis, count=1, size=1):
    data = base64.b64encode(b"x" * size).decode()
    records = [{"Data": data, "PartitionKey": "k"}] * count
    return await kinesis("PutRecords", StreamName="orders", Records=records)


async def iterator_of(kinesis, kind="TRIM_HORIZON", **more):
    request = {"StreamName": "orders", "ShardId": SHARD, "ShardIteratorType": kind, **more}
    return (await kinesis("GetShardIterator", **request))["ShardIterator"]


async def test_shard_iterator_expires_after_five_minutes(kinesis, stream, clock):
    iterator = await iterator_of(kinesis)
    clock.advance(ms=300_000)
    in_time = await kinesis("GetRecords", ShardIterator=iterator)
    clock.advance(ms=1)
    late = await kinesis("GetRecords", ShardIterator=iterator)

    assert in_time["Records"] == []
    assert late == {
        "__type": "ExpiredIteratorException",
        "message": "Iterator expired. The iterator was created at time Tue Nov 14 22:13:20 UTC 2023 while right "
        "now it is Tue Nov 14 22:18:20 UTC 2023 which is further in the future than the tolerated delay of "
        "300000 milliseconds.",
    }


async def test_next_token_expires_after_five_minutes(kinesis, clock):
    for name in "abc":
        await kinesis("CreateStream", StreamName=name, ShardCount=3)
    shards = await kinesis("ListShards", StreamName="a", MaxResults=1)
    streams = await kinesis("ListStreams", Limit=1)
    clock.advance(ms=300_001)

    for operation, token in (("ListShards", shards), ("ListStreams", streams)):
        code = await kinesis.code(operation, NextToken=token["NextToken"])
        assert code == "ExpiredNextTokenException"


async def test_millis_behind_latest_is_reported(kinesis, stream, clock):
    await put(kinesis)
    clock.advance(ms=2 * MINUTE_MS)
    await put(kinesis)
    clock.advance(ms=MINUTE_MS)

    first = await kinesis("GetRecords", ShardIterator=await iterator_of(kinesis), Limit=1)
    second = await kinesis("GetRecords", ShardIterator=first["NextShardIterator"])

    assert first["MillisBehindLatest"] == 3 * MINUTE_MS
    assert second["MillisBehindLatest"] == 0


async def test_reader_of_trimmed_records_moves_to_oldest(kinesis, stream, clock, engines):
    first = (await put(kinesis))["Records"][0]["SequenceNumber"]
    clock.advance(ms=25 * limits.HOUR_MS)
    sequence_number = (await put(kinesis))["Records"][0]["SequenceNumber"]
    await engines.streams.trim(StreamName("orders"), 1_000)

    at = await iterator_of(kinesis, "AT_SEQUENCE_NUMBER", StartingSequenceNumber=first)
    for iterator in (at, await iterator_of(kinesis)):
        told = await kinesis("GetRecords", ShardIterator=iterator)
        assert [record["SequenceNumber"] for record in told["Records"]] == [sequence_number]


async def test_shard_iterator_is_valid_in_every_process(
    kinesis, stream, clock, redis_url, database_url
):
    await put(kinesis)
    iterator = await iterator_of(kinesis)
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as storage:
        told = await client_of(storage)("GetRecords", ShardIterator=iterator)

    assert len(told["Records"]) == 1


async def test_concurrent_registration_of_one_consumer_has_one_winner(kinesis, stream):
    summary = await kinesis("DescribeStreamSummary", StreamName="orders")
    arn = summary["StreamDescriptionSummary"]["StreamARN"]
    request = {"StreamARN": arn, "ConsumerName": "app"}

    codes = await asyncio.gather(
        *(kinesis.code("RegisterStreamConsumer", **request) for _ in range(8))
    )

    assert sorted(str(code) for code in codes) == ["None"] + ["ResourceInUseException"] * 7


async def test_concurrent_creation_of_one_stream_has_one_winner(kinesis):
    codes = await asyncio.gather(
        *(kinesis.code("CreateStream", StreamName="one", ShardCount=1) for _ in range(8))
    )

    assert sorted(str(code) for code in codes) == ["None"] + ["ResourceInUseException"] * 7


# Limits of AWS


async def test_shard_accepts_thousand_records_per_second(limited, stream, clock):
    told = [await put(limited, 500) for _ in range(3)]
    clock.advance(ms=1_000)
    later = await put(limited, 500)

    assert [answer["FailedRecordCount"] for answer in told] == [0, 0, 500]
    refused = told[2]["Records"][0]
    assert refused == {
        "ErrorCode": "ProvisionedThroughputExceededException",
        "ErrorMessage": f"Rate exceeded for shard {SHARD} in stream orders.",
    }
    assert later["FailedRecordCount"] == 0


async def test_shard_accepts_one_megabyte_per_second(limited, stream):
    told = await put(limited, 5, 300_000)

    codes = [record.get("ErrorCode") for record in told["Records"]]
    assert codes[:3] == [None] * 3
    assert codes[3:] == ["ProvisionedThroughputExceededException"] * 2
    code = await limited.code(
        "PutRecord", StreamName="orders", PartitionKey="k", Data="x" * 4 * 100_000
    )
    assert code == "ProvisionedThroughputExceededException"


async def test_shard_read_rate_is_limited(kinesis, limited, stream, clock):
    await put(kinesis, 5, 1_000_000)
    iterator = await iterator_of(kinesis)
    first = await limited.code("GetRecords", ShardIterator=iterator)
    too_much = await limited.code("GetRecords", ShardIterator=iterator)
    clock.advance(ms=3_000)
    codes = [
        await limited.code("GetRecords", ShardIterator=await iterator_of(kinesis, "LATEST"))
        for _ in range(6)
    ]

    assert (first, too_much) == (None, "ProvisionedThroughputExceededException")
    assert codes == [None] * 5 + ["ProvisionedThroughputExceededException"]


async def test_control_call_rate_is_limited(limited, stream, clock):
    codes = [await limited.code("DescribeLimits") for _ in range(2)]
    clock.advance(ms=1_000)

    assert codes == [None, "LimitExceededException"]
    assert await limited.code("DescribeLimits") is None


async def test_shard_count_can_at_most_double_or_halve(limited, kinesis):
    await kinesis("CreateStream", StreamName="wide", ShardCount=4)

    def scaled(client, target):
        request = {"TargetShardCount": target, "ScalingType": "UNIFORM_SCALING"}
        return client.code("UpdateShardCount", StreamName="wide", **request)

    assert await scaled(limited, 9) == "LimitExceededException"
    assert await scaled(limited, 1) == "LimitExceededException"
    assert (
        await limited(
            "UpdateShardCount", StreamName="wide", TargetShardCount=2, ScalingType="UNIFORM_SCALING"
        )
    )["TargetShardCount"] == 2
    summary = await kinesis("DescribeStreamSummary", StreamName="wide")
    assert summary["StreamDescriptionSummary"]["OpenShardCount"] == 2


async def test_stream_has_at_most_twenty_consumers(limited, kinesis, stream, clock):
    summary = await kinesis("DescribeStreamSummary", StreamName="orders")
    arn = summary["StreamDescriptionSummary"]["StreamARN"]
    codes = []
    for number in range(CONSUMERS_MAX_AT_AMAZON + 1):
        clock.advance(ms=1_000)
        codes.append(
            await limited.code("RegisterStreamConsumer", StreamARN=arn, ConsumerName=f"c{number}")
        )

    assert codes == [None] * CONSUMERS_MAX_AT_AMAZON + ["LimitExceededException"]


# Failing stores


def answering(monkeypatch, *results):
    """Make every append return these results."""

    async def append(self, name, records, **_):
        if isinstance(results[0], Exception) and len(results) == 1:
            raise results[0]
        return list(results)

    async def append_columns(self, name, columns, **_):
        return [
            AppendedRange([nth], error=result)
            if isinstance(result, MillstreamError)
            else AppendedRange([nth], result.shard, result.offset, arrival_ms=result.arrival_ms)
            for nth, result in enumerate(results)
        ]

    monkeypatch.setattr(Streams, "append", append)
    monkeypatch.setattr(Streams, "append_columns", append_columns)


async def test_failing_record_of_batch_fails_alone(kinesis, stream, clock, monkeypatch):
    placed = Appended(0, 7, arrival_ms=clock.now_ms())
    answering(monkeypatch, StorageBusy(), placed, OutcomeUnknown(), StorageUnavailable())

    told = await put(kinesis, 4)

    assert told["FailedRecordCount"] == 3
    assert [record.get("ErrorCode") for record in told["Records"]] == [
        "ProvisionedThroughputExceededException",
        None,
        "InternalFailure",
        "InternalFailure",
    ]
    assert told["Records"][1]["ShardId"] == SHARD
    assert all(
        record.get("ErrorMessage") or record.get("SequenceNumber") for record in told["Records"]
    )


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StorageUnavailable(), 503, "ServiceUnavailableException"),
        (StorageFull(), 503, "ServiceUnavailableException"),
        (OutcomeUnknown(), 500, "InternalFailureException"),
        (StorageBusy(), 400, "ProvisionedThroughputExceededException"),
        (RuntimeError("a bug"), 500, "InternalFailureException"),
    ],
)
async def test_failing_put_record_fails_call(kinesis, stream, monkeypatch, error, status, code):
    answering(monkeypatch, error)

    answer = await kinesis.post("PutRecord", StreamName="orders", Data="eA==", PartitionKey="k")

    assert (answer.status_code, answer.json()["__type"]) == (status, code)
    assert ("retry-after" in answer.headers) is (status == 503)
    assert "a bug" not in answer.json()["message"]


async def test_records_redirected_to_new_shards_name_them(
    kinesis, stream, engines, clock, monkeypatch
):
    """The cached definition may be older than the shards that an append was redirected to."""
    old = await engines.catalog.stream(StreamName("orders"))
    clock.advance(ms=5_000)
    await kinesis(
        "SplitShard", StreamName="orders", ShardToSplit=SHARD, NewStartingHashKey=str(2**127)
    )
    stale = [old]

    async def cached(self, name, stream_id=None):
        return stale.pop() if stale else await Catalog.fresh_stream(self, name, stream_id)

    monkeypatch.setattr(Catalog, "stream", cached)
    told = await put(kinesis, 3)

    assert told["FailedRecordCount"] == 0
    assert {record["ShardId"][-1] for record in told["Records"]} <= {"1", "2"}
