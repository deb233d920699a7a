"""A client's position in a deleted stream, used after another stream took its name."""

from collections.abc import Callable

import httpx
import pytest

from millstream_client import BadRequest, Gone, Millstream

RECORDS = 5
Answers = set[tuple[int, str]]
Position = Callable[[httpx.Client, str], Callable[[], httpx.Response]]


def append(client: httpx.Client, stream: str, count: int) -> None:
    body = {"records": [{"data": str(number)} for number in range(count)]}
    client.post(f"{stream}/shards/0/records", json=body).raise_for_status()


def stream_cursor(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    cursor = client.get(f"{stream}/records").json()["next_cursor"]
    return lambda: client.get(f"{stream}/records", params={"cursor": cursor})


def shard_offset(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    page = client.get(f"{stream}/shards/0/records").json()
    query = {"offset": page["next_offset"], "stream_id": page["stream_id"]}
    return lambda: client.get(f"{stream}/shards/0/records", params=query)


def table_offset(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    shards = client.get(f"{stream}/shards").json()
    query = {"offset": shards["items"][0]["next"], "stream_id": shards["stream_id"]}
    return lambda: client.get(f"{stream}/shards/0/table", params=query)


def _last_id(client: httpx.Client, path: str) -> str:
    text = client.get(f"{path}?follow=false&limit=2", headers={"accept": "text/event-stream"}).text
    return [line for line in text.splitlines() if line.startswith("id:")][1][3:].strip()


def event_id(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    headers = {"accept": "text/event-stream", "last-event-id": _last_id(client, f"{stream}/events")}
    return lambda: client.get(f"{stream}/events?follow=false", headers=headers)


def shard_event_id(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    cursor = _last_id(client, f"{stream}/shards/0/events")
    return lambda: client.get(
        f"{stream}/shards/0/events", params={"cursor": cursor, "follow": False}
    )


def group_token(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    group = stream.replace("/streams/", "/groups/")
    client.put(group, json={"stream": stream.rpartition("/")[2]}).raise_for_status()
    token = client.get(f"{group}/records?member=a").json()["token"]
    return lambda: client.post(f"{group}/commit", json={"token": token})


def token_of_recreated_group(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    commit = group_token(client, stream)
    group = stream.replace("/streams/", "/groups/")

    def act() -> httpx.Response:
        client.put(group, json={"stream": stream.rpartition("/")[2]}).raise_for_status()
        client.get(f"{group}/records?member=a").raise_for_status()
        return commit()

    return act


def replay_id(client: httpx.Client, stream: str) -> Callable[[], httpx.Response]:
    name = stream.rpartition("/")[2]
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    body = {"id": name, "stream": name, "target": {"queue": name}}
    client.post("/v1/replays", json=body).raise_for_status()
    return lambda: client.post("/v1/replays", json=body)


POSITIONS: list[tuple[Position, Answers]] = [
    (stream_cursor, {(400, "invalid_cursor")}),
    (shard_offset, {(410, "stream_recreated")}),
    (table_offset, {(410, "stream_recreated")}),
    (event_id, {(400, "invalid_cursor")}),
    (shard_event_id, {(400, "invalid_cursor")}),
    (group_token, {(404, "group_not_found")}),
    (token_of_recreated_group, {(409, "stale_generation"), (416, "offset_out_of_range")}),
    (replay_id, {(409, "job_refused")}),
]


@pytest.mark.parametrize("records", [RECORDS + 3, RECORDS - 3], ids=["more", "fewer"])
@pytest.mark.parametrize(
    ("position", "expected"), POSITIONS, ids=lambda one: getattr(one, "__name__", "")
)
def test_position_of_deleted_stream_is_rejected(client, name, position, expected, records):
    """The client read on in the new stream, whose first records never came."""
    stream = f"/v1/streams/{name}"
    client.put(stream, json={}).raise_for_status()
    append(client, stream, RECORDS)
    act = position(client, stream)
    client.delete(stream).raise_for_status()
    client.put(stream, json={}).raise_for_status()
    append(client, stream, records)

    answer = act()

    assert (answer.status_code, answer.json()["code"]) in expected


@pytest.mark.parametrize("records", [RECORDS + 3, RECORDS - 3], ids=["more", "fewer"])
@pytest.mark.parametrize("shard", [None, 0], ids=["all shards", "one shard"])
def test_sdk_reader_does_not_continue_in_recreated_stream(
    client, service_url, name, shard, records
):
    stream = f"/v1/streams/{name}"
    client.put(stream, json={}).raise_for_status()
    append(client, stream, RECORDS)
    with Millstream(service_url) as millstream:
        pages = millstream.stream(name).pages("earliest", shard=shard, limit=2)
        next(pages)
        client.delete(stream).raise_for_status()
        client.put(stream, json={}).raise_for_status()
        append(client, stream, records)

        with pytest.raises((Gone, BadRequest)) as error:
            next(pages)

    assert error.value.code in ("stream_recreated", "invalid_cursor")
