"""Reasons of gaps through every protocol."""

import json
from collections.abc import Callable

import httpx
import psycopg
import pytest
import redis

from millstream_client import Gap, Millstream
from storage.domain.names import LogId
from storage.redis.keys import log_keys
from tests.contract.streams.calls import append_to_shard, read_shard
from tests.server_sent_events import events_of


@pytest.fixture
def stream_with_gap(service, client, name) -> Callable[[str], str]:
    """Make a stream of one shard that lacks the record 1, with a reason."""

    def make(reason: str) -> str:
        path = f"/v1/streams/{name}"
        client.put(path, json={"shards": 1}).raise_for_status()
        for number in range(3):
            append_to_shard(client, path, 0, {"data": str(number)})
        with psycopg.connect(service[1].database_url) as connection:
            row = connection.execute(
                "select log_id from shards join streams using (stream_id) where name = %s", [name]
            ).fetchone()
            assert row is not None
            log_id = row[0]
            connection.execute("insert into log_holes values (%s, 1, 2, %s)", [log_id, reason])
        with redis.Redis.from_url(service[1].redis_url) as store:
            log = log_keys("default", LogId(log_id))[0]
            store.xdel(log, store.xrange(log)[1][0])
        return path

    return make


@pytest.mark.parametrize("reason", ["failover", "hole"])
def test_every_protocol_tells_the_reason(service_url, client, stream_with_gap, reason):
    path = stream_with_gap(reason)
    name = path.rpartition("/")[2]

    told = {
        "shard": read_shard(client, path, 0, offset=1)["gap"]["reason"],
        "stream": _of_pages(client, path),
        "arrow": _of_table(client, path),
        "events": _of_events(client, path),
        "lines": _of_lines(client, path),
        "group": _of_group(client, path),
        "websocket": _of_subscription(service_url, name),
    }

    assert told == dict.fromkeys(told, reason)


def _of_pages(client: httpx.Client, path: str) -> str:
    page = client.get(f"{path}/records", params={"from": "earliest"}).json()
    page = client.get(f"{path}/records", params={"cursor": page["next_cursor"]}).json()
    [gap] = page["gaps"]
    assert (gap["first"], gap["next"]) == (1, 2)
    return str(gap["reason"])


def _of_table(client: httpx.Client, path: str) -> str:
    answer = client.get(f"{path}/shards/0/table", params={"offset": 1})
    return answer.headers["millstream-gap"].removeprefix("1-2 ")


def _of_events(client: httpx.Client, path: str) -> str:
    answer = client.get(f"{path}/events", params={"follow": "false", "from": "earliest"})
    [gap] = [event for event in events_of(answer.text.split("\n")) if event.kind == "gap"]
    return str(gap.data["reason"])


def _of_lines(client: httpx.Client, path: str) -> str:
    answer = client.get(
        f"{path}/events",
        params={"follow": "false", "from": "earliest"},
        headers={"accept": "application/jsonl"},
    )
    [gap] = [
        line for line in map(json.loads, answer.text.splitlines()) if line.get("type") == "gap"
    ]
    return str(gap["reason"])


def _of_group(client: httpx.Client, path: str) -> str:
    group = f"/v1/groups/{path.rpartition('/')[2]}"
    client.put(
        group, json={"stream": path.rpartition("/")[2], "start": "earliest"}
    ).raise_for_status()
    read = client.get(f"{group}/records", params={"member": "a"}).json()
    client.post(
        f"{group}/commit",
        json={
            "member": "a",
            "generation": read["generation"],
            "offsets": [{"shard": 0, "offset": 1}],
        },
    ).raise_for_status()
    [gap] = client.get(f"{group}/records", params={"member": "a"}).json()["gaps"]
    return str(gap["reason"])


def _of_subscription(url: str, name: str) -> str:
    gaps: list[Gap] = []
    with Millstream(url) as millstream:
        subscription = millstream.stream(name).subscribe("earliest", on_gap=gaps.append)
        with subscription:
            offsets = [next(iter(subscription)).offset for _ in range(2)]
    assert offsets == [0, 2]
    return gaps[0].reason
