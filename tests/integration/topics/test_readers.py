"""Readers with a match: each protocol and a replay select what a route would take."""

import json
import random
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from storage.bootstrap import Storage
from storage.domain.groups.group import GroupSpec
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName
from storage.domain.streams.record_filter import Filter, selects
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.topic import PUBLISHED_HEADERS, NewPublication
from tests.integration.topics.routing import ORDERS
from tests.replay_steps import SOURCE, TARGET, everything, replay, replay_request
from tests.server_sent_events import events_of
from tests.websocket_client import Server, running_server

pytestmark = pytest.mark.one_store

EARLIEST = {"from": "earliest"}
CREDIT = {"messages": 10_000, "bytes": 2**24}
WORDS = ["order", "refund", "eu", "us"]


@pytest.fixture
async def server(storage) -> AsyncGenerator[Server]:
    async with running_server(storage, Limits(push_tick_ms=50)) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{server.url}/v1", timeout=30) as client:
        yield client


# ── One selection ──


def random_record(chance: random.Random, number: int) -> Record:
    subject = ".".join(chance.choices(WORDS, k=chance.randint(0, 3)))
    headers = chance.sample(
        [("tenant", "", b"t%d" % (number % 3)), ("retries", "Number", b"%d" % (number % 5))],
        chance.randint(0, 2),
    )
    body = chance.choice([b"-", b"text", b'{"n": %d}' % number, b'{"n": %d, "vip": true}' % number])
    message = NewPublication(body, subject, chance.choice(["", "a", "b"]), tuple(headers))
    return message.record([])


def random_match(chance: random.Random) -> dict[str, Any]:
    parts: dict[str, list[Any]] = {
        "subject": ["order.#", ["*", "refund.>"], "#.eu", "order", [""]],
        "filter": [
            {"headers": {"tenant": ["t1", {"prefix": "t2"}]}},
            {"body": {"n": [{"numeric": [">=", chance.randrange(100)]}]}},
            {"$or": [{"key": ["a"]}, {"body": {"vip": [True]}}]},
            {"headers": {"retries": [{"exists": False}]}},
        ],
        "where": ["headers.retries < 3 OR body.vip", "body.n % 2 = 0", "key IN ('a', 'b')"],
    }
    names = chance.sample(list(parts), chance.randint(1, 2))
    return {name: chance.choice(parts[name]) for name in names}


async def fill(storage: Storage, chance: random.Random) -> None:
    await storage.catalog.put_stream(SOURCE, StreamSpec(shards=2))
    await storage.catalog.put_stream(TARGET, StreamSpec())
    for first in range(0, 120, 30):
        numbers = range(first, first + 30)
        records = [random_record(chance, number) for number in numbers]
        await storage.streams.append_idempotent(
            SOURCE, "copies", numbers, records, own=PUBLISHED_HEADERS
        )


async def expected_places(storage: Storage, match: Any) -> list[tuple[int, int]]:
    is_selected = selects(Filter(match=match), SOURCE)
    assert is_selected is not None
    read = await storage.record_reader.read(SOURCE, {})
    return sorted(
        (shard.shard, record.offset)
        for shard in read.shards
        for record in shard.records
        if is_selected(shard.shard, record)
    )


def places_of(records: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((record["shard"], record["offset"]) for record in records)


async def places_of_events(client: httpx.AsyncClient, match: Any) -> list[tuple[int, int]]:
    query = {"follow": "false", "match": json.dumps(match)}
    answer = (await client.get("/streams/source/events", params=query)).raise_for_status()
    events = events_of(answer.text.split("\n"))
    return places_of([event.data for event in events if event.kind == "message"])


async def places_of_member(client: httpx.AsyncClient, match: Any) -> list[tuple[int, int]]:
    records: list[dict[str, Any]] = []
    query = {"member": "a", "limit": "7", "match": json.dumps(match)}
    while True:
        read = (await client.get("/groups/readers/records", params=query)).raise_for_status().json()
        if not read["records"]:
            return places_of(records)
        records += read["records"]
        query["after"] = read["token"]


async def places_of_subscription(server: Server, match: Any, count: int) -> list[tuple[int, int]]:
    records: list[dict[str, Any]] = []
    async with server.socket() as socket:
        await socket.subscribe(
            "a", "stream:source", start=EARLIEST, filter={"match": match}, credit=CREDIT
        )
        while len(records) < count:
            frame = await socket.receive_frame("records")
            records += [record | {"shard": frame["shard"]} for record in frame["records"]]
        await socket.expect_nothing("records", seconds=0.05)
    return places_of(records)


async def places_of_replay(storage: Storage, match: Any) -> list[tuple[int, int]]:
    await replay(storage, replay_request(filter=Filter(match=match)), "r")
    headers = [
        {name: value for name, _, value in one.record.headers} for one in await everything(storage)
    ]
    return sorted((int(one[":source_shard"]), int(one[":source_offset"])) for one in headers)


@pytest.mark.parametrize("seed", range(6))
async def test_readers_select_the_same_records(storage, server, client, seed, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.GROUP_FILTER_RECORDS", 11)
    chance = random.Random(seed)
    await fill(storage, chance)
    await storage.groups.put(GroupName("readers"), GroupSpec(stream="source"))
    match = [random_match(chance) for _ in range(chance.randint(1, 2))]

    expected = await expected_places(storage, match)

    assert await places_of_events(client, match) == expected
    assert await places_of_subscription(server, match, len(expected)) == expected
    assert await places_of_member(client, match) == expected
    assert await places_of_replay(storage, match) == expected


# ── Streams of topics ──


async def publish_orders(storage: Storage) -> None:
    await storage.topics.put(ORDERS, StreamSpec())
    subjects = ["order.created", "order.paid", "refund.created"]
    messages = [NewPublication(b"%d" % nth, subject) for nth, subject in enumerate(subjects)]
    await storage.topics.publish(ORDERS, [*messages, NewPublication(b"3")])


async def test_stream_of_topic_is_read_by_name(storage, server, client):
    await publish_orders(storage)
    for group in ("readers", "sockets"):
        await client.put(f"/groups/{group}", json={"stream": "topic:orders"})
    subjects = ["order.created", "order.paid", "refund.created", None]

    records = (await client.get("/streams/topic:orders/records")).json()["records"]
    events = await client.get("/streams/topic:orders/events", params={"follow": "false"})
    fetched = (await client.get("/groups/readers/records", params={"member": "a"})).json()
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:topic:orders", start=EARLIEST)
        pushed = await socket.records(4)
    async with server.socket(packed=True) as socket:
        await socket.subscribe("a", "stream:topic:orders", mode="group", group="sockets")
        packed = await socket.records(4)

    streamed = [one.data for one in events_of(events.text.split("\n")) if one.kind == "message"]
    for read in (records, streamed, fetched["records"], pushed, packed):
        assert [record.get("subject") for record in read] == subjects
        assert not any(record.get("headers") for record in read)


@pytest.mark.parametrize(
    ("query", "bodies"),
    [
        ({"subject": "order.*"}, ["0", "1"]),
        ({"subject": ["order.paid", "refund.#"]}, ["1", "2"]),
        ({"subject": "*.created", "match": '{"where": "body = 0"}'}, ["0"]),
        ({"match": '{"where": "meta.topic = \'orders\'"}'}, ["0", "1", "2", "3"]),
    ],
)
async def test_events_of_topic_have_requested_subjects(storage, client, query, bodies):
    await publish_orders(storage)

    answer = await client.get("/streams/topic:orders/events", params={"follow": "false"} | query)

    events = [one for one in events_of(answer.text.split("\n")) if one.kind == "message"]
    assert [event.data["data"] for event in events] == bodies


# ── Faults ──


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"subject": "a..b"}, "/subject/0"),
        ({"match": "order.*"}, "/match"),
        ({"match": '{"filter": {"body": {"total": 5}}}'}, "/match/filter/body/total"),
        ({"match": '[{}, {"where": "total >"}]'}, "/match/1/where"),
        ({"subject": "a", "match": '{"subject": "b"}'}, "/subject"),
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "/streams/topic:orders/events",
        "/streams/topic:orders/shards/0/events",
        "/groups/readers/records",
    ],
)
async def test_invalid_match_of_read_is_refused(storage, client, path, query, pointer):
    await publish_orders(storage)
    await client.put("/groups/readers", json={"stream": "topic:orders"})

    answer = await client.get(path, params={"member": "a"} | query if "groups" in path else query)

    assert (answer.status_code, answer.json()["code"]) == (422, "match_invalid")
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_invalid_match_of_replay_and_subscription_is_refused(storage, server, client):
    await publish_orders(storage)
    invalid = {"match": {"subject": "a..b"}}
    body = {"stream": "topic:orders", "target": {"stream": "copies"}, "filter": invalid}

    refused = await client.post("/replays", json=body)
    async with server.socket() as socket:
        reply = await socket.request(
            "subscribe", sub="a", source="stream:topic:orders", filter=invalid
        )

    assert refused.status_code == 422
    for problem in (refused.json(), reply["problem"]):
        assert problem["code"] == "match_invalid"
        assert problem["errors"][0]["pointer"] == "/filter/match/subject"
