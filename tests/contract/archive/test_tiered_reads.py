"""Reads of archived records through every protocol."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow as pa
import pytest
import redis
from botocore.exceptions import ClientError

from storage.bootstrap import open_storage
from storage.domain.names import StreamName
from storage.redis.keys import log_keys
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream
from tests.arrow import ARROW, OCTETS
from tests.contract.conftest import deployment
from tests.contract.kinesis.conftest import client_of

_numbers = count(1)


@pytest.fixture(scope="module")
def archiving(
    postgres_server_url: str, migrated_template: str
) -> Iterator[tuple[str, StorageSettings]]:
    with deployment(postgres_server_url, migrated_template, "tiers") as actual_deployment:
        yield actual_deployment


@pytest.fixture
def settings(archiving) -> StorageSettings:
    storage_settings: StorageSettings = archiving[1]
    return storage_settings


@pytest.fixture
def http(archiving) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=archiving[0], timeout=30) as client:
        yield client


@pytest.fixture
def kinesis(archiving) -> Iterator[Any]:
    client = client_of(archiving[0])
    yield client
    client.close()


@pytest.fixture
def name(http, settings) -> str:
    """A stream of one shard: offsets 0 to 19 are only archived, 20 to 24 only hot."""
    name = f"stream-{next(_numbers)}"
    http.put(f"/v1/streams/{name}", json={"hot_retention_seconds": 0}).raise_for_status()
    append(http, name, 0, 20)
    asyncio.run(to_archive(settings, StreamName(name)))
    append(http, name, 20, 5)
    return name


def append(http: httpx.Client, name: str, first: int, many: int) -> None:
    records = [{"data": str(nth), "key": "k"} for nth in range(first, first + many)]
    http.post(f"/v1/streams/{name}/records", json={"records": records}).raise_for_status()


async def to_archive(settings: StorageSettings, name: StreamName) -> None:
    async with open_storage(settings) as storage:
        await archive_stream(storage, settings, name)
        await asyncio.sleep(
            0.002
        )  # records that arrived this very millisecond are not older than that
        while await storage.streams.trim(name, 1_000):
            pass


def damage(settings: StorageSettings, http: httpx.Client, name: str) -> None:
    [file] = http.get(f"/v1/archives/{name}/files").json()["items"]
    path = Path((settings.archive_url or "").removeprefix("file://"), file["path"])
    content = bytearray(path.read_bytes())
    content[50] ^= 1
    path.write_bytes(content)


# REST


def test_shard_is_read_across_tiers(http, name):
    first = http.get(f"/v1/streams/{name}/shards/0/records?limit=15").json()
    second = http.get(f"/v1/streams/{name}/shards/0/records?offset=15").json()
    third = http.get(f"/v1/streams/{name}/shards/0/records?offset=20").json()

    data = [record["data"] for part in (first, second, third) for record in part["records"]]
    assert data == [str(nth) for nth in range(25)]
    assert [part["tier"] for part in (first, second, third)] == ["archive", "archive", "hot"]
    assert [part["start"] for part in (first, second, third)] == [0, 0, 0]
    assert (third["next_offset"], third["tip"], third["behind_seconds"]) == (25, 25, 0)
    assert not any("gap" in part for part in (first, second, third))


def test_stream_is_read_across_tiers_by_cursor(http, name):
    parts = [http.get(f"/v1/streams/{name}/records?limit=8").json()]
    while parts[-1]["records"]:
        parts.append(
            http.get(
                f"/v1/streams/{name}/records",
                params={"cursor": parts[-1]["next_cursor"], "limit": 8},
            ).json()
        )

    data = [record["data"] for part in parts for record in part["records"]]
    assert data == [str(nth) for nth in range(25)]
    assert [part["tier"] for part in parts[:4]] == ["archive", "archive", "archive", "hot"]


def test_msgpack_names_tier(http, name):
    answer = http.get(
        f"/v1/streams/{name}/shards/0/records?offset=3&limit=2",
        headers={"accept": "application/msgpack"},
    )

    text = msgspec.msgpack.decode(answer.content)
    assert text["tier"] == "archive"
    assert [record["data"] for record in text["records"]] == [b"3", b"4"]


def test_group_reads_across_tiers(http, name):
    http.put(f"/v1/groups/of-{name}", json={"stream": name}).raise_for_status()
    told, tiers = [], []

    for _ in range(4):
        part = http.get(f"/v1/groups/of-{name}/records?member=a&limit=10").json()
        told += [record["data"] for record in part["records"]]
        tiers.append(part["tier"])
        http.post(f"/v1/groups/of-{name}/commit", json={"token": part["token"]})

    assert told == [str(nth) for nth in range(25)]
    assert tiers == ["archive", "archive", "hot", "hot"]


def test_shards_start_at_start_of_archive(http, name):
    [shard] = http.get(f"/v1/streams/{name}/shards").json()["items"]

    assert (shard["start"], shard["next"]) == (0, 25)


def test_truncated_records_are_in_no_tier(http, name):
    cut = http.post(f"/v1/streams/{name}/shards/0/truncate", json={"before": 7}).json()

    refused = http.get(f"/v1/streams/{name}/shards/0/records?offset=6")
    oldest = http.get(f"/v1/streams/{name}/shards/0/records?limit=1").json()

    assert cut["start"] == 7
    assert (refused.status_code, refused.json()["code"]) == (410, "offset_expired")
    assert refused.json()["earliest_offset"] == 7
    assert [record["offset"] for record in oldest["records"]] == [7]


def test_damaged_file_is_distinct_problem(http, settings, name):
    damage(settings, http, name)

    answer = http.get(f"/v1/streams/{name}/shards/0/records?offset=0")

    assert answer.status_code == 500
    assert (answer.json()["code"], answer.json()["retryable"]) == ("archive_damaged", False)
    assert http.get(f"/v1/streams/{name}/shards/0/records?offset=20").status_code == 200


# Tables


def as_table(http: httpx.Client, name: str, query: str) -> tuple[httpx.Response, list[Any]]:
    answer = http.get(f"/v1/streams/{name}/shards/0/table?{query}").raise_for_status()
    with pa.ipc.open_stream(answer.content) as reader:
        return answer, reader.read_all().to_pylist()


def test_table_equals_json_records_across_tiers(http, name):
    headers = {"headers": {"colour": "red"}, "event_time": "2026-01-31T12:00:00.000Z"}
    http.post(f"/v1/streams/{name}/records", json={"records": [{"data": "x", **headers}]})
    told, read, at = [], [], 0

    while at < 26:
        answer, records = as_table(http, name, f"offset={at}&end=26")
        read += records
        at = int(answer.headers["millstream-next-offset"])
    for offset in (0, 20):
        told += http.get(f"/v1/streams/{name}/shards/0/records?offset={offset}").json()["records"]

    assert [(one["offset"], one["data"].decode(), one["key"]) for one in read] == [
        (one["offset"], one["data"], one.get("key")) for one in told
    ]
    assert [_milliseconds(one["ts"]) for one in read] == [one["arrival_time"] for one in told]
    assert read[25]["headers"] == [{"k": "colour", "t": "", "v": b"red"}]
    assert _milliseconds(read[25]["event_ts"]) == told[25]["event_time"] == headers["event_time"]


def _milliseconds(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_table_headers_describe_position(http, name):
    archived, _ = as_table(http, name, "offset=15")
    hot, _ = as_table(http, name, "offset=20&end=24")

    names = ("next-offset", "start", "tip", "records", "tier", "ended")
    assert [archived.headers[f"millstream-{answer}"] for answer in names] == [
        *("20", "0", "25", "5", "archive", "false")
    ]
    assert [hot.headers[f"millstream-{answer}"] for answer in names] == [
        *("24", "0", "25", "4", "hot", "false")
    ]
    assert archived.headers["content-type"] == ARROW
    assert "millstream-gap" not in archived.headers


def test_table_is_octet_stream_when_only_that_is_accepted(http, name):
    """Generators for some languages do not know the media type of Arrow."""
    path = f"/v1/streams/{name}/shards/0/table?offset=20"

    answers = [
        http.get(path, headers={"accept": accept})
        for accept in (OCTETS, f"{OCTETS}, {ARROW}", "*/*")
    ]

    kinds = [answer.headers["content-type"] for answer in answers]
    assert kinds == [OCTETS, ARROW, ARROW]
    assert len({answer.content for answer in answers}) == 1


def test_table_records_are_counted_as_delivered(http, name):
    before = delivered(http)

    as_table(http, name, "offset=15")
    as_table(http, name, "offset=20")

    assert delivered(http) == before + 10


def delivered(http: httpx.Client) -> float:
    counted = 'millstream_messages_delivered_total{ack="manual",kind="stream",mode="poll"} '
    lines = http.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(counted)) for line in lines if line.startswith(counted))


def test_table_gap_is_in_header(http, settings, name):
    append(http, name, 25, 1)
    asyncio.run(lose(settings, StreamName(name), offset=20))

    answer, records = as_table(http, name, "offset=22")

    assert answer.headers["millstream-gap"] == "22-25 hole"
    assert [record["offset"] for record in records] == [25]


async def lose(settings: StorageSettings, name: StreamName, offset: int) -> None:
    """Remove the entry that starts there from the hot store."""
    async with open_storage(settings) as storage:
        stream = await storage.catalog.stream(name)
    log = log_keys("default", stream.shards[0].log_id)[0]
    with redis.Redis.from_url(settings.redis_url) as client:
        [(entry, _)] = client.xrange(log, f"{offset}-0", count=1)
        client.xdel(log, entry)


def test_table_of_expired_records_returns_problem(http, name):
    http.post(f"/v1/streams/{name}/shards/0/truncate", json={"before": 7}).raise_for_status()

    refused = http.get(f"/v1/streams/{name}/shards/0/table?offset=6")

    assert (refused.status_code, refused.json()["code"]) == (410, "offset_expired")
    assert (refused.json()["earliest_offset"], refused.json()["next_offset"]) == (7, 25)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 422, "validation_failed"),
        ("offset=x", 422, "validation_failed"),
        ("offset=5&end=5", 422, "validation_failed"),
        ("offset=0&bytes_max=99999999", 422, "validation_failed"),
        ("offset=26", 416, "offset_out_of_range"),
    ],
)
def test_invalid_table_request_is_rejected(http, name, query, status, code):
    refused = http.get(f"/v1/streams/{name}/shards/0/table?{query}")

    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_table_of_damaged_file_is_distinct_problem(http, settings, name):
    damage(settings, http, name)

    answer = http.get(f"/v1/streams/{name}/shards/0/table?offset=0")

    assert (answer.status_code, answer.json()["code"]) == (500, "archive_damaged")
    assert as_table(http, name, "offset=20")[1][0]["offset"] == 20


# Kinesis


def iterator(kinesis: Any, name: str, kind: str, **where: Any) -> str:
    response = kinesis.get_shard_iterator(
        StreamName=name, ShardId="shardId-000000000000", ShardIteratorType=kind, **where
    )
    shard_iterator: str = response["ShardIterator"]
    return shard_iterator


def test_getrecords_reads_from_trim_horizon_across_tiers(kinesis, name):
    at = iterator(kinesis, name, "TRIM_HORIZON")
    records: list[Any] = []
    behind = []

    while len(records) < 25:
        part = kinesis.get_records(ShardIterator=at, Limit=8)
        records += part["Records"]
        behind.append(part["MillisBehindLatest"] > 0)
        at = part["NextShardIterator"]

    assert [record["Data"] for record in records] == [b"%d" % nth for nth in range(25)]
    numbers = [int(record["SequenceNumber"]) for record in records]
    assert numbers == sorted(numbers)
    assert behind == [True, True, True, False]


def test_archived_sequence_number_is_starting_position(kinesis, name):
    first = kinesis.get_records(ShardIterator=iterator(kinesis, name, "TRIM_HORIZON"), Limit=10)
    number = first["Records"][9]["SequenceNumber"]

    at = iterator(kinesis, name, "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=number)

    records = kinesis.get_records(ShardIterator=at, Limit=2)["Records"]
    assert [record["Data"] for record in records] == [b"10", b"11"]


def test_archived_time_is_starting_position(kinesis, name):
    first = kinesis.get_records(ShardIterator=iterator(kinesis, name, "TRIM_HORIZON"), Limit=1)
    since = first["Records"][0]["ApproximateArrivalTimestamp"]

    at = iterator(kinesis, name, "AT_TIMESTAMP", Timestamp=since)

    records = kinesis.get_records(ShardIterator=at, Limit=1)["Records"]
    assert [record["Data"] for record in records] == [b"0"]


def test_reader_of_truncated_records_moves_to_start_of_archive(kinesis, http, name):
    at = iterator(kinesis, name, "TRIM_HORIZON")
    http.post(f"/v1/streams/{name}/shards/0/truncate", json={"before": 7})

    records = kinesis.get_records(ShardIterator=at, Limit=1)["Records"]

    assert [record["Data"] for record in records] == [b"7"]


def test_damaged_file_is_internal_failure(kinesis, http, settings, name):
    damage(settings, http, name)

    with pytest.raises(ClientError) as refused:
        kinesis.get_records(ShardIterator=iterator(kinesis, name, "TRIM_HORIZON"))

    assert refused.value.response["Error"]["Code"] == "InternalFailureException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500


def test_events_and_lines_continue_from_archive_into_hot_store(http, name):
    path = f"/v1/streams/{name}"

    exported = http.get(f"{path}/events", headers={"accept": "application/jsonl"}).text
    *lines, end = [msgspec.json.decode(line) for line in exported.splitlines()]
    events = http.get(f"{path}/shards/0/events?offset=18&follow=false").text

    assert [each_line["data"] for each_line in lines] == [str(nth) for nth in range(25)]
    assert (end["type"], end["reason"]) == ("end", "tip")
    parts = [line for line in events.split("\n") if line.startswith("data: ")]
    assert [msgspec.json.decode(line[6:]).get("offset") for line in parts] == [*range(18, 25), None]
