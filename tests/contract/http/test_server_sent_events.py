"""Server-sent events and JSON Lines, as clients read them."""

import asyncio
import json
import socket
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from api.sse.event_id import format_event_id
from storage.domain.streams.stream import RING_SIZE
from tests.contract.conftest import running_service
from tests.server_sent_events import Event, events_of

LINES = {"accept": "application/jsonl"}
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "push.md"
KEYS = [f"key-{number}" for number in range(8)]


@contextmanager
def following(client: httpx.Client, path: str, **more: Any) -> Iterator[Iterator[Event]]:
    with client.stream("GET", path, **more) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        yield events_of(answer.iter_lines())


def all_events(client: httpx.Client, path: str, **params: Any) -> list[Event]:
    """Read all events of a stream up to its tip."""
    headers = params.pop("headers", {})
    answer = client.get(path, params={"follow": "false", **params}, headers=headers)
    assert answer.status_code == 200, answer.text
    return list(events_of(answer.text.split("\n")))


def lines(client: httpx.Client, path: str, **params: Any) -> list[Any]:
    answer = client.get(path, params=params, headers=LINES)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text.splitlines()]


def append(client: httpx.Client, stream: str, first: int, many: int) -> None:
    records = [
        {
            "data": str(number),
            "key": KEYS[number % len(KEYS)],
            "headers": {"even": str(number % 2 == 0)},
        }
        for number in range(first, first + many)
    ]
    body = client.post(f"{stream}/records", json={"records": records}).json()
    assert body["failed"] == 0


def data(events: Iterable[Event]) -> list[str]:
    return [event.data["data"] for event in events if event.kind == "message"]


# Order and positions


def test_records_arrive_as_events(client, stream):
    append(client, stream, 0, 1)
    with following(client, f"{stream}/events") as events:
        before = next(events)
        append(client, stream, 1, 1)
        after = next(events)

    read = client.get(f"{stream}/records").json()["records"]
    assert [before.data, after.data] == read
    assert before.kind == after.kind == "message"


def test_response_headers_suit_browsers_and_proxies(client, stream):
    with client.stream("GET", f"{stream}/events") as answer:
        first = next(answer.iter_lines())

    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-request-id"]
    assert first == "retry: 2000"


def test_head_returns_headers_only(client, stream):
    answer = client.head(f"{stream}/events")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert client.get(stream).status_code == 200


def test_every_event_id_is_resume_position(client, stream):
    """No loss and no duplicates, whichever event was the last."""
    append(client, stream, 0, 40)
    told = all_events(client, f"{stream}/events")
    records = [event for event in told if event.kind == "message"]
    assert sorted(data(records), key=int) == [str(number) for number in range(40)]

    for number, event in enumerate(records):
        rest = all_events(client, f"{stream}/events", headers={"last-event-id": event.id})
        seen = [(one.data["shard"], one.data["offset"]) for one in records[: number + 1]]
        more = [(one.data["shard"], one.data["offset"]) for one in rest if one.kind == "message"]
        assert len(set(seen) | set(more)) == len(seen) + len(more) == 40


def test_last_event_id_overrides_query(client, stream):
    append(client, stream, 0, 4)
    path = f"{stream}/shards/0/events"
    [first, *_] = all_events(client, path, offset=0)

    again = all_events(client, path, offset=0, headers={"last-event-id": first.id})

    assert next(event.data["offset"] for event in again if event.kind == "message") == 1


def test_cut_event_id_is_rejected(client, stream):
    append(client, stream, 0, 12)
    event = all_events(client, f"{stream}/shards/0/events")[-1]

    for word in (event.id[:-1], event.id.rpartition("~")[0]):
        answer = client.get(f"{stream}/shards/0/events", headers={"last-event-id": word})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


def test_event_id_is_also_cursor(client, stream):
    append(client, stream, 0, 10)
    [first, *rest] = all_events(client, f"{stream}/events")

    again = all_events(client, f"{stream}/events", cursor=first.id)

    assert sorted(data(again)) == sorted(data(rest))


def test_resuming_after_end_returns_204(client, stream):
    """204 tells a browser's EventSource not to reconnect."""
    append(client, stream, 0, 3)
    *_, end = all_events(client, f"{stream}/events")

    answer = client.get(f"{stream}/events", headers={"last-event-id": end.id})

    assert (end.kind, end.data["reason"]) == ("end", "tip")
    assert answer.status_code == 204
    assert not answer.content


def test_reader_is_told_of_shutdown_and_resumes_after_restart(
    service, postgres_server_url, client, stream
):
    _, settings = service
    environment = {"REDIS_URL": settings.redis_url, "DATABASE_URL": settings.database_url}
    append(client, stream, 0, 10)
    seen: list[Event] = []
    with httpx.Client(timeout=30) as other:
        running = running_service(environment)
        url, _ = running.__enter__()
        with (
            other.stream("GET", f"{url}{stream}/events") as answer,
            other.stream("GET", f"{url}{stream}/events?follow=true", headers=LINES) as lasting,
        ):
            events, last_lines = events_of(answer.iter_lines()), lasting.iter_lines()
            seen += [next(events) for _ in range(10)]
            first_lines = [json.loads(next(last_lines)) for _ in range(10)]
            running.__exit__(None, None, None)
            seen += list(events)
            *_, last = [json.loads(line) for line in last_lines]
        append(client, stream, 10, 10)
        with running_service(environment) as (url, _):
            headers = {"last-event-id": seen[-1].id}
            told = other.get(f"{url}{stream}/events?follow=false", headers=headers)
            rest = list(events_of(told.text.split("\n")))
            more = other.get(
                f"{url}{stream}/records", params={"cursor": last["next_cursor"]}
            ).json()

    assert (seen[-1].kind, seen[-1].data["reason"]) == ("end", "draining")
    assert (last["type"], last["reason"]) == ("end", "draining")
    expected = [str(number) for number in range(20)]
    assert sorted(data(seen) + data(rest), key=int) == expected
    assert sorted([one["data"] for one in [*first_lines, *more["records"]]], key=int) == expected


# JSON Lines


def test_lines_end_at_tip_with_reason(client, stream):
    append(client, stream, 0, 20)

    *records, end = lines(client, f"{stream}/events")
    append(client, stream, 20, 5)
    more = client.get(f"{stream}/records", params={"cursor": end["next_cursor"]}).json()["records"]

    assert sorted(int(one["data"]) for one in records) == list(range(20))
    assert (end["type"], end["reason"]) == ("end", "tip")
    assert sorted(int(one["data"]) for one in more) == list(range(20, 25))


def test_empty_stream_has_only_end_event(client, stream):
    [end] = lines(client, f"{stream}/events")

    assert end["type"] == "end"


def test_lines_follow_on_request(client, stream):
    with client.stream("GET", f"{stream}/events?follow=true", headers=LINES) as answer:
        told = answer.iter_lines()
        append(client, stream, 0, 1)
        first = json.loads(next(told))

    assert first["data"] == "0"


def test_media_type_matches_accept_header(client, stream):
    answer = client.get(f"{stream}/events", headers={"accept": "application/x-ndjson"})

    assert answer.headers["content-type"] == "application/x-ndjson"


def test_body_with_line_breaks_is_on_one_line(client, stream):
    client.post(
        f"{stream}/records",
        content=b'{\n  "a": "x\\ny"\n}',
        headers={"content-type": "application/json; charset=utf-8"},
    )
    client.post(f"{stream}/records", content="two\nlines\r\u2028\u2029\x85é".encode())
    raw = b'{"data": {"a":\n 1}, "key": "k"}'
    client.post(f"{stream}/records", content=raw, headers={"content-type": "application/json"})

    *records, end = lines(client, f"{stream}/events")

    assert "two\nlines\r\u2028\u2029\x85é" in [record.get("data") for record in records]
    assert end["type"] == "end"


# Filters and starts


def test_single_shard_starts_as_requested(client, stream):
    append(client, stream, 0, 40)
    path = f"{stream}/shards/0/events"
    every = [line["offset"] for line in lines(client, path) if "offset" in line]
    at = client.get(f"{stream}/shards/0/records").json()["records"][0]["arrival_time"]

    assert [line["offset"] for line in lines(client, path, offset=3)[:-1]] == every[3:]
    assert [line["offset"] for line in lines(client, path, tail=2)[:-1]] == every[-2:]
    assert [line["offset"] for line in lines(client, path, time=at)[:-1]] == every
    assert len(lines(client, path, **{"from": "latest"})) == 1
    [_, end] = lines(client, path, limit=1)
    assert (end["reason"], len(lines(client, path, cursor=end["next_cursor"]))) == (
        "limit",
        len(every),
    )


def test_all_shards_start_as_requested(client, stream):
    append(client, stream, 0, 20)
    between = client.get(f"{stream}/records").json()
    append(client, stream, 20, 20)
    late = [
        one for one in client.get(f"{stream}/records").json()["records"] if int(one["data"]) >= 20
    ]
    since = min(one["arrival_time"] for one in late)

    by_cursor = lines(client, f"{stream}/events", cursor=between["next_cursor"])[:-1]
    by_time = lines(client, f"{stream}/events", time=since)[:-1]

    assert sorted(int(one["data"]) for one in by_cursor) == list(range(20, 40))
    assert {int(one["data"]) for one in by_time} >= set(range(20, 40))
    assert all(one["arrival_time"] >= since for one in by_time)
    assert len(lines(client, f"{stream}/events", **{"from": "latest"})) == 1


def test_events_are_filtered_by_field_of_body(client, stream):
    records = [{"data": {"n": n, "user": {"id": n % 2}}} for n in range(4)]
    client.post(f"{stream}/records", json={"records": records}).raise_for_status()
    path = f"{stream}/events"

    odd = lines(client, path, body="/user/id=1")[:-1]
    last = lines(client, path, body=["/user/id=1", "/n=3"])[:-1]
    none = lines(client, path, body="/user/name")[:-1]

    assert [one["data"]["n"] for one in odd] == [1, 3]
    assert [one["data"]["n"] for one in last] == [3]
    assert none == []


def test_events_are_filtered_by_key_and_header(client, stream):
    append(client, stream, 0, 40)
    path = f"{stream}/events"

    by_key = lines(client, path, key=[KEYS[1], KEYS[2]])[:-1]
    by_both = lines(client, path, key=KEYS[2], header="even:True")[:-1]
    none = lines(client, path, key=KEYS[1], header="even:True")[:-1]
    limited = lines(client, path, key=[KEYS[1], KEYS[2]], limit=3)

    assert {one["key"] for one in by_key} == {KEYS[1], KEYS[2]}
    assert len(by_key) == 10
    assert {one["key"] for one in by_both} == {KEYS[2]}
    assert none == []
    assert limited[-1]["reason"] == "limit"
    assert limited[:-1] == by_key[:3]


def test_filtered_read_with_limit_can_be_continued(client, stream):
    append(client, stream, 0, 40)
    path, found = f"{stream}/events", list[Any]()
    cursor: dict[str, str] = {}
    while True:
        *records, end = lines(client, path, key=KEYS[:3], limit=2, **cursor)
        found += records
        cursor = {"cursor": end["next_cursor"]}
        if end["reason"] == "tip":
            break

    assert sorted(int(result["data"]) for result in found) == [
        number for number in range(40) if number % len(KEYS) < 3
    ]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("from=middle", 422, "validation_failed"),
        ("cursor=zz&from=earliest", 422, "validation_failed"),
        ("time=2026-01-01T00:00:00Z&from=earliest", 422, "validation_failed"),
        ("limit=0", 422, "validation_failed"),
        ("header=nothing", 422, "validation_failed"),
        ("header=a:b&header=a:c", 422, "validation_failed"),
        ("body=user", 422, "validation_failed"),
        ("limit=1&limit=2", 422, "validation_failed"),
        ("what=1", 422, "validation_failed"),
        ("follow=perhaps", 422, "validation_failed"),
        ("cursor=zz", 400, "invalid_cursor"),
        ("cursor=0000000000000000/0:1", 400, "invalid_cursor"),
        ("cursor=/", 400, "invalid_cursor"),
    ],
)
def test_invalid_request_returns_problem_before_streaming(client, stream, query, status, code):
    answer = client.get(f"{stream}/events?{query}")

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("shards/0/events?offset=9", 416, "offset_out_of_range"),
        ("shards/7/events", 404, "shard_not_found"),
        ("shards/x/events", 404, "shard_not_found"),
        ("shards/0/events?offset=0&tail=1", 422, "validation_failed"),
    ],
)
def test_unknown_shard_or_offset_returns_problem(client, stream, path, status, code):
    answer = client.get(f"{stream}/{path}")

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_cursor_of_other_shard_or_beyond_end_is_rejected(client, stream):
    append(client, stream, 0, 4)
    *_, end = lines(client, f"{stream}/shards/0/events")
    word = end["next_cursor"]

    other = client.get(f"{stream}/shards/1/events", params={"cursor": word})
    stream_id = word.partition("~")[0]
    beyond = client.get(f"{stream}/events", params={"cursor": format_event_id(stream_id, {0: 999})})
    unknown = client.get(f"{stream}/events", params={"cursor": format_event_id(stream_id, {77: 0})})

    assert (other.status_code, other.json()["code"]) == (400, "invalid_cursor")
    assert (beyond.status_code, beyond.json()["code"]) == (416, "offset_out_of_range")
    assert (unknown.status_code, unknown.json()["code"]) == (400, "invalid_cursor")


def test_unknown_stream_has_no_events(client, name):
    answer = client.get(f"/v1/streams/{name}/events")

    assert (answer.status_code, answer.json()["code"]) == (404, "stream_not_found")


# Changes of the stream


def test_reader_is_told_when_stream_is_deleted(client, name):
    path = f"/v1/streams/{name}"
    client.put(path, json={})
    with following(client, f"{path}/events") as events:
        append(client, path, 0, 1)
        first = next(events)
        client.delete(path)
        [error] = list(events)

    assert first.data["data"] == "0"
    assert error.kind == "error"
    assert error.data["problem"]["code"] == "stream_not_found"
    client.put(path, json={})
    again = client.get(f"{path}/events", headers={"last-event-id": first.id})
    assert (again.status_code, again.json()["code"]) == (400, "invalid_cursor")


def test_key_order_is_kept_across_reshard(client, name):
    path = f"/v1/streams/{name}"
    client.put(path, json={"shards": 1})
    seen: list[Event] = []
    with following(client, f"{path}/events") as events:
        append(client, path, 0, 16)
        seen += [next(events) for _ in range(16)]
        client.post(
            f"{path}/reshard", json={"split": {"shard": 0, "at_hash_key": str(RING_SIZE // 2)}}
        ).raise_for_status()
        append(client, path, 16, 16)
        seen += [next(events) for _ in range(17)]

    [ended] = [event for event in seen if event.kind == "shard_ended"]
    assert ended.data == {"shard": 0, "children": [1, 2]}
    assert seen[16] == ended, "the children come after it"
    order: dict[str, list[int]] = defaultdict(list)
    for event in seen:
        if event.kind == "message":
            order[event.data["key"]].append(int(event.data["data"]))
    assert all(numbers == sorted(numbers) for numbers in order.values())
    rest = all_events(client, f"{path}/events", headers={"last-event-id": ended.id})
    assert sorted(map(int, data(rest))) == list(range(16, 32))


def test_single_shard_ends_with_its_children_named(client, name):
    path = f"/v1/streams/{name}"
    client.put(path, json={"shards": 1})
    append(client, path, 0, 2)
    client.post(
        f"{path}/reshard", json={"split": {"shard": 0, "at_hash_key": str(RING_SIZE // 2)}}
    ).raise_for_status()

    *_, ended, end = all_events(client, f"{path}/shards/0/events", follow="true")

    assert (ended.kind, ended.data["children"]) == ("shard_ended", [1, 2])
    assert (end.kind, end.data["reason"]) == ("end", "shard_end")
    gone = client.get(f"{path}/shards/0/events", headers={"last-event-id": end.id})
    assert gone.status_code == 204


def test_truncated_records_are_reported_as_gap(client, stream):
    append(client, stream, 0, 40)
    client.post(f"{stream}/shards/0/truncate", json={"before": 3}).raise_for_status()
    path = f"{stream}/shards/0/events"

    gap, first, *_ = all_events(client, path, offset=1)
    again = all_events(client, path, headers={"last-event-id": gap.id})

    assert (gap.kind, gap.data) == (
        "gap",
        {"shard": 0, "first": 1, "next": 3, "reason": "expired"},
    )
    assert first.data["offset"] == 3
    assert again[0] == first
    [line, *_] = lines(client, path, offset=1)
    assert line == {"type": "gap", "shard": 0, "first": 1, "next": 3, "reason": "expired"}


# Many and slow readers


async def test_hundred_readers_get_every_record_once(service_url, client, stream):
    many, readers = 400, 100

    async def read(http: httpx.AsyncClient) -> list[tuple[int, int]]:
        results: list[tuple[int, int]] = []
        async with http.stream("GET", f"{service_url}{stream}/events?limit={many}") as answer:
            async for event in _events(answer.aiter_lines()):
                if event.kind == "end":
                    return results
                results.append((event.data["shard"], event.data["offset"]))
        raise AssertionError("it was cut")

    limits = httpx.Limits(max_connections=readers)
    async with httpx.AsyncClient(timeout=60, limits=limits) as http:
        reading = [asyncio.create_task(read(http)) for _ in range(readers)]
        for first in range(0, many, 40):
            await asyncio.to_thread(append, client, stream, first, 40)
        results = await asyncio.gather(*reading)

    assert all(len(set(result)) == len(result) == many for result in results)
    assert all(set(result) == set(results[0]) for result in results)
    for result in results:
        for shard in (0, 1):
            offsets = [offset for at, offset in result if at == shard]
            assert offsets == list(range(len(offsets)))


async def _events(told: AsyncIterator[str]) -> AsyncIterator[Event]:
    block: list[str] = []
    async for line in told:
        block.append(line)
        if not line:
            for event in events_of(block):
                yield event
            block = []


def test_slow_reader_delays_no_other_and_misses_nothing(client, service_url, name):
    path = f"/v1/streams/{name}"
    client.put(path, json={}).raise_for_status()
    where = urlsplit(service_url)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    slow.settimeout(20)
    slow.connect((where.hostname, where.port))
    slow.sendall(f"GET {path}/events HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    body = "x" * 100_000

    with following(client, f"{path}/events") as events:
        for number in range(80):
            record = {"data": f"{number} {body}", "key": "k"}
            client.post(f"{path}/records", json=record).raise_for_status()
            assert next(events).data["data"].startswith(f"{number} ")

    told = b""
    while told.count(b"\ndata: ") < 80 or not told.endswith(b"\n\r\n"):
        piece = slow.recv(1_000_000)
        assert piece, "it was cut"
        told += piece
    slow.close()
    assert [told.count(b'"data":"%d x' % number) for number in range(80)] == [1] * 80


def test_commands_of_reference_page_run(service_url, name):
    """Run each curl of docs/reference/push.md on events; following ones are cut short."""
    text = PAGE.read_text()
    page = text[text.index("## Server-sent events and JSON Lines") :]
    typed = [line for line in page.splitlines() if line.startswith("curl ")]
    assert len(typed) == 7

    for line in typed:
        own = line.replace("http://127.0.0.1:8080", service_url).replace(
            "streams/sensors", f"streams/{name}"
        )
        command = own.partition(" > ")[0].replace("curl ", "curl -sS -m 0.5 --fail ", 1)
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 28), (line, done.stderr)
        assert done.stdout, line
