"""Reads over HTTP: by shard and cursor, from an offset, a time, the tip or a key."""

import base64
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tests.contract.streams.calls import append, append_to_shard, read_shard, reshard


def test_shard_is_read_in_pages(client, stream):
    append_to_shard(client, stream, 0, *[{"data": str(n)} for n in range(5)])

    first = read_shard(client, stream, 0, limit=3)
    rest = read_shard(client, stream, 0, offset=first["next_offset"])

    assert [record["offset"] for record in first["records"] + rest["records"]] == [0, 1, 2, 3, 4]
    assert (rest["next_offset"], rest["start"], rest["tip"]) == (5, 0, 5)
    assert rest["behind_seconds"] == 0
    assert "gap" not in rest


def test_shard_is_read_by_its_tail(client, stream):
    append_to_shard(client, stream, 0, *[{"data": str(n)} for n in range(5)])

    shard = read_shard(client, stream, 0, tail=2)

    assert [record["data"] for record in shard["records"]] == ["3", "4"]


def test_shard_is_read_from_timestamp(client, stream):
    append_to_shard(client, stream, 0, {"data": "before"})
    time.sleep(0.01)
    append_to_shard(client, stream, 0, {"data": "after"})
    after = read_shard(client, stream, 0)["records"][1]["arrival_time"]

    shard = read_shard(client, stream, 0, time=after)

    assert [record["data"] for record in shard["records"]] == ["after"]


def test_read_past_end_is_rejected(client, stream):
    answer = client.get(f"{stream}/shards/0/records", params={"offset": 7})

    assert answer.status_code == 416
    assert answer.json()["code"] == "offset_out_of_range"


def test_shard_read_with_two_starts_is_rejected(client, stream):
    answer = client.get(f"{stream}/shards/0/records", params={"offset": 0, "tail": 1})

    assert answer.status_code == 422


def test_reader_can_wait_for_next_record(client, stream):
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(read_shard, client, stream, 0, wait_seconds=20)
        time.sleep(0.2)
        started = time.monotonic()
        append_to_shard(client, stream, 0, {"data": "a"})
        found = waiting.result()

    assert [record["data"] for record in found["records"]] == ["a"]
    assert time.monotonic() - started < 5


def test_multiline_json_value_is_one_line(client, stream):
    """Its line breaks were passed on, and made four lines of the first record."""
    for body in (b'{\n  "a": 1,\n  "b": "x\\ny"\n}', b'"plain"'):
        value = {"data_base64": base64.b64encode(body).decode(), "content_type": "application/json"}
        client.post(f"{stream}/shards/0/records", json=value).raise_for_status()

    answer = client.get(f"{stream}/shards/0/records", headers={"accept": "application/x-ndjson"})
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]

    assert [line.get("data") for line in lines] == [{"a": 1, "b": "x\ny"}, "plain", None]


def test_read_can_return_lines(client, stream):
    append_to_shard(client, stream, 0, {"data": "a"}, {"data": "b"})

    answer = client.get(f"{stream}/shards/0/records", headers={"accept": "application/x-ndjson"})

    first, second, end = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert (first["data"], second["data"]) == ("a", "b")
    assert (end["type"], end["next_offset"]) == ("end", 2)


def test_one_cursor_reads_all_shards(client, stream):
    for shard in (0, 1):
        append_to_shard(client, stream, shard, {"data": f"{shard}a"}, {"data": f"{shard}b"})

    first = client.get(f"{stream}/records").json()
    append_to_shard(client, stream, 1, {"data": "1c"})
    rest = client.get(f"{stream}/records", params={"cursor": first["next_cursor"]}).json()

    assert {record["data"] for record in first["records"]} == {"0a", "0b", "1a", "1b"}
    assert {record["shard"] for record in first["records"]} == {0, 1}
    assert [record["data"] for record in rest["records"]] == ["1c"]
    assert first["gaps"] == []


def test_read_from_latest_sees_only_later_records(client, stream):
    append_to_shard(client, stream, 0, {"data": "before"})

    first = client.get(f"{stream}/records", params={"from": "latest"}).json()
    append_to_shard(client, stream, 0, {"data": "after"})
    rest = client.get(f"{stream}/records", params={"cursor": first["next_cursor"]}).json()

    assert first["records"] == []
    assert [record["data"] for record in rest["records"]] == ["after"]


def test_read_from_time_continues_through_reshard(client, stream):
    """A shard closed before that time is skipped; one open then is read, and its children."""
    append(client, stream, *[{"data": "old", "key": str(number)} for number in range(8)])
    reshard(client, stream, split={"shard": 0}).raise_for_status()
    append(client, stream, *[{"data": "new", "key": str(number)} for number in range(8)])
    records = client.get(f"{stream}/records").json()["records"]
    since = min(record["arrival_time"] for record in records if record["data"] == "new")
    reshard(client, stream, merge=[2, 3]).raise_for_status()
    append(client, stream, *[{"data": "newest", "key": str(number)} for number in range(8)])

    found, page = [], client.get(f"{stream}/records", params={"time": since}).json()
    while page["records"]:
        found += [record["data"] for record in page["records"]]
        page = client.get(f"{stream}/records", params={"cursor": page["next_cursor"]}).json()

    assert sorted(found) == ["new"] * 8 + ["newest"] * 8


def test_stream_read_with_two_starts_is_rejected(client, stream):
    cursor = client.get(f"{stream}/records").json()["next_cursor"]

    both = client.get(
        f"{stream}/records", params={"cursor": cursor, "time": "2026-01-31T12:00:00Z"}
    )

    assert (both.status_code, both.json()["errors"][0]["pointer"]) == (422, "/time")


def test_cursor_of_another_stream_is_rejected(client, stream, name):
    client.put(f"/v1/streams/{name}")
    cursor = client.get(f"/v1/streams/{name}/records").json()["next_cursor"]

    for bad in (cursor, "nonsense", "%%%", "AAAA"):
        answer = client.get(f"{stream}/records", params={"cursor": bad})

        assert answer.status_code == 400
        assert answer.json()["code"] == "invalid_cursor"


def test_latest_record_of_key_is_returned(client, stream):
    off = client.get(f"{stream}/keys/a")
    client.patch(stream, json={"key_index": True}).raise_for_status()
    append(client, stream, {"data": "1", "key": "a/b c"}, {"data": "2", "key": "a/b c"})
    reshard(client, stream, shards=3).raise_for_status()

    response = client.get(f"{stream}/keys/a%2Fb%20c")
    missing = client.get(f"{stream}/keys/a")

    assert off.status_code == 422
    assert (response.json()["data"], response.json()["key"], response.json()["offset"]) == (
        "2",
        "a/b c",
        1,
    )
    assert response.json()["shard"] in (0, 1)
    assert missing.json()["code"] == "record_not_found"
