"""The configuration of streams, and their records, over HTTP."""

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest

MSGPACK = {"content-type": "application/msgpack", "accept": "application/msgpack"}


def append(client: httpx.Client, stream: str, *records: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{stream}/records", json={"records": list(records)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["records"]
    return results


def append_to_shard(
    client: httpx.Client, stream: str, shard: int, *records: Any, **conditions: Any
) -> httpx.Response:
    return client.post(
        f"{stream}/shards/{shard}/records", json={"records": list(records), **conditions}
    )


def read_shard(client: httpx.Client, stream: str, shard: int, **asked: Any) -> dict[str, Any]:
    answer = client.get(f"{stream}/shards/{shard}/records", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_put_without_a_body_makes_a_stream_of_defaults(client, name):
    answer = client.put(f"/v1/streams/{name}")

    assert answer.status_code == 201
    assert answer.headers["etag"] == '"v1"'
    shown = answer.json()
    assert shown.pop("created_at") == shown.pop("changed_at")
    assert shown == {
        "name": name,
        "shards": 1,
        "open_shards": 1,
        "mode": "provisioned",
        "retention_seconds": 604800,
        "retention_bytes": None,
        "retention_records": None,
        "drop_when_read": False,
        "record_bytes_max": 1048576,
        "event_times": "client_prefer",
        "event_time_skew_seconds_max": None,
        "key_index": False,
        "archive": True,
        "archive_lag_seconds": 300,
        "hot_retention_seconds": 86400,
        "hot_bytes_max": 1073741824,
        "tags": {},
        "version": 1,
    }


def test_a_patch_changes_a_stream(client, stream):
    answer = client.patch(stream, json={"retention_bytes": 1000})

    assert answer.json()["retention_bytes"] == 1000
    assert client.patch(stream, json={"retention_bytes": None}).json()["retention_bytes"] is None


def test_the_shards_of_a_stream_cannot_change_here(client, stream):
    put = client.put(stream, json={"shards": 3})
    patched = client.patch(stream, json={"shards": 3})

    assert put.json()["errors"][0]["pointer"] == "/shards"
    assert patched.json()["errors"][0]["pointer"] == "/shards"


def test_a_deleted_stream_is_gone(client, stream):
    assert client.delete(stream).status_code == 204
    assert client.get(stream).json()["code"] == "stream_not_found"
    assert client.get(f"{stream}/shards/0/records").json()["code"] == "stream_not_found"


def test_streams_are_listed(client, stream):
    names = [shown["name"] for shown in client.get("/v1/streams?limit=1000").json()["items"]]

    assert stream.rpartition("/")[2] in names


def test_the_shards_share_the_ring(client, stream):
    append_to_shard(client, stream, 1, {"data": "a"}, {"data": "b"})

    first, second = client.get(f"{stream}/shards").json()["items"]

    assert first["first_hash_key"] == "0"
    assert int(first["last_hash_key"]) + 1 == int(second["first_hash_key"])
    assert second["last_hash_key"] == str(2**128 - 1)
    assert (first["start"], first["next"]) == (0, 0)
    assert (second["start"], second["next"]) == (0, 2)


def test_each_record_of_a_batch_is_answered(client, stream):
    results = append(client, stream, {"data": "a", "key": "k"}, {"data": "b", "key": "k"})

    assert [result["offset"] for result in results] == [0, 1]
    assert results[0]["shard"] == results[1]["shard"]
    assert not any(result["duplicate"] for result in results)


def test_a_record_sent_alone_is_answered_alone(client, stream):
    answer = client.post(f"{stream}/records", json={"data": {"a": 1}, "key": "k"})

    assert answer.status_code == 201
    assert answer.json().keys() == {"shard", "offset", "duplicate"}


def test_a_raw_body_is_a_record(client, stream):
    answer = client.post(f"{stream}/records", content=b"hello", headers={"millstream-key": "k"})

    at = answer.json()
    [record] = read_shard(client, stream, at["shard"], offset=at["offset"])["records"]
    assert answer.status_code == 201
    assert (record["data"], record["key"]) == ("hello", "k")


def test_lines_are_a_batch_of_records(client, stream):
    answer = client.post(
        f"{stream}/records",
        content=b'{"data":"a"}\n{"data":"b"}\n',
        headers={"content-type": "application/x-ndjson"},
    )

    assert answer.json()["failed"] == 0
    assert len(answer.json()["records"]) == 2


def test_a_record_comes_back_as_it_was_sent(client, stream):
    sent = [
        {
            "data": {"page": "/"},
            "key": "user-1",
            "headers": {"source": "web"},
            "event_time": "2026-01-31T13:00:00.5+01:00",
        },
        {"data": "text"},
        {"data_base64": base64.b64encode(b"\xff").decode()},
        {"data": "<a/>", "content_type": "text/xml"},
    ]
    append_to_shard(client, stream, 0, *sent).raise_for_status()

    first, second, third, fourth = read_shard(client, stream, 0)["records"]

    assert first.pop("arrival_time").endswith("Z")
    assert first == {
        "offset": 0,
        "data": {"page": "/"},
        "content_type": "application/json",
        "key": "user-1",
        "headers": {"source": "web"},
        "event_time": "2026-01-31T12:00:00.500Z",
    }
    assert second.keys() == {"offset", "data", "arrival_time"}
    assert third["data_base64"] == "/w=="
    assert (fourth["data"], fourth["content_type"]) == ("<a/>", "text/xml")


def test_messagepack_carries_bytes_both_ways(client, stream):
    packed = msgspec.msgpack.encode(
        {"records": [{"data": b"\xff", "key": "k"}, {"data": "text"}, {"data": [1]}]}
    )
    sent = client.post(f"{stream}/shards/0/records", content=packed, headers=MSGPACK)
    found = client.get(f"{stream}/shards/0/records", headers={"accept": "application/msgpack"})

    assert msgspec.msgpack.decode(sent.content)["failed"] == 0
    records = msgspec.msgpack.decode(found.content)["records"]
    assert [record["data"] for record in records] == [b"\xff", b"text", b"[1]"]
    assert records[0]["key"] == "k"


def test_a_batch_of_a_thousand_records_is_taken(client, stream):
    packed = msgspec.msgpack.encode({"records": [{"data": b"x" * 256}] * 1000})

    answer = client.post(f"{stream}/records", content=packed, headers=MSGPACK)

    assert len(msgspec.msgpack.decode(answer.content)["records"]) == 1000


def test_a_repeated_append_with_the_same_key_adds_nothing(client, stream):
    headers = {"idempotency-key": "k1"}
    body = {"records": [{"data": "a", "key": "x"}]}
    client.post(f"{stream}/records", json=body, headers=headers)

    [again] = client.post(f"{stream}/records", json=body, headers=headers).json()["records"]

    assert again["duplicate"] is True


def test_a_producers_repeated_batch_adds_nothing(client, stream):
    producer = {"id": "p", "epoch": 0, "sequence": 0}
    first = append_to_shard(client, stream, 0, {"data": "a"}, producer=producer).json()

    again = append_to_shard(client, stream, 0, {"data": "a"}, producer=producer).json()

    assert again["records"] == [{**first["records"][0], "duplicate": True}]


def test_a_producers_gap_is_refused(client, stream):
    producer = {"id": "p", "epoch": 0, "sequence": 5}

    answer = append_to_shard(client, stream, 0, {"data": "a"}, producer=producer)

    assert answer.status_code == 409
    assert answer.json()["code"] == "sequence_out_of_order"


def test_an_append_at_another_offset_than_expected_is_refused(client, stream):
    assert append_to_shard(client, stream, 0, {"data": "a"}, expected_offset=0).status_code == 200

    answer = append_to_shard(client, stream, 0, {"data": "b"}, expected_offset=0)

    assert answer.status_code == 412
    assert answer.json()["code"] == "offset_mismatch"
    assert len(read_shard(client, stream, 0)["records"]) == 1


@pytest.mark.parametrize("shard", ["2", "x", "-1", "99999999999999999999"])
def test_a_shard_that_is_not_there_is_told(client, stream, shard):
    answers = [
        client.get(f"{stream}/shards/{shard}/records"),
        client.post(f"{stream}/shards/{shard}/records", json={"data": "a"}),
    ]

    assert [answer.json()["code"] for answer in answers] == ["shard_not_found"] * 2


def test_a_shard_is_read_page_by_page(client, stream):
    append_to_shard(client, stream, 0, *[{"data": str(n)} for n in range(5)])

    first = read_shard(client, stream, 0, limit=3)
    rest = read_shard(client, stream, 0, offset=first["next_offset"])

    assert [record["offset"] for record in first["records"] + rest["records"]] == [0, 1, 2, 3, 4]
    assert (rest["next_offset"], rest["start"], rest["tip"]) == (5, 0, 5)
    assert rest["behind_seconds"] == 0
    assert "gap" not in rest


def test_a_shard_is_read_by_its_tail(client, stream):
    append_to_shard(client, stream, 0, *[{"data": str(n)} for n in range(5)])

    found = read_shard(client, stream, 0, tail=2)

    assert [record["data"] for record in found["records"]] == ["3", "4"]


def test_a_shard_is_read_from_a_time(client, stream):
    append_to_shard(client, stream, 0, {"data": "before"})
    time.sleep(0.01)
    append_to_shard(client, stream, 0, {"data": "after"})
    after = read_shard(client, stream, 0)["records"][1]["arrival_time"]

    found = read_shard(client, stream, 0, time=after)

    assert [record["data"] for record in found["records"]] == ["after"]


def test_a_read_past_the_end_is_refused(client, stream):
    answer = client.get(f"{stream}/shards/0/records", params={"offset": 7})

    assert answer.status_code == 416
    assert answer.json()["code"] == "offset_out_of_range"


def test_a_read_of_two_starts_is_refused(client, stream):
    answer = client.get(f"{stream}/shards/0/records", params={"offset": 0, "tail": 1})

    assert answer.status_code == 422


def test_a_reader_may_wait_for_the_next_record(client, stream):
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(read_shard, client, stream, 0, wait_seconds=20)
        time.sleep(0.2)
        started = time.monotonic()
        append_to_shard(client, stream, 0, {"data": "a"})
        found = waiting.result()

    assert [record["data"] for record in found["records"]] == ["a"]
    assert time.monotonic() - started < 5


def test_a_json_value_that_was_stored_on_several_lines_is_one_of_them(client, stream):
    """Its line breaks were passed on, and made four lines of the first record."""
    for body in (b'{\n  "a": 1,\n  "b": "x\\ny"\n}', b'"plain"'):
        value = {"data_base64": base64.b64encode(body).decode(), "content_type": "application/json"}
        client.post(f"{stream}/shards/0/records", json=value).raise_for_status()

    answer = client.get(f"{stream}/shards/0/records", headers={"accept": "application/x-ndjson"})
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]

    assert [line.get("data") for line in lines] == [{"a": 1, "b": "x\ny"}, "plain", None]


def test_a_read_can_be_answered_in_lines(client, stream):
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


def test_a_read_from_the_latest_sees_only_what_comes_next(client, stream):
    append_to_shard(client, stream, 0, {"data": "before"})

    first = client.get(f"{stream}/records", params={"from": "latest"}).json()
    append_to_shard(client, stream, 0, {"data": "after"})
    rest = client.get(f"{stream}/records", params={"cursor": first["next_cursor"]}).json()

    assert first["records"] == []
    assert [record["data"] for record in rest["records"]] == ["after"]


def test_a_read_from_a_time_goes_through_a_reshard(client, stream):
    """A shard that was closed before holds nothing of that time; the children of one that was open then hold some."""
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


def test_a_read_has_one_start(client, stream):
    cursor = client.get(f"{stream}/records").json()["next_cursor"]

    both = client.get(
        f"{stream}/records", params={"cursor": cursor, "time": "2026-01-31T12:00:00Z"}
    )

    assert (both.status_code, both.json()["errors"][0]["pointer"]) == (422, "/time")


def test_a_cursor_of_another_stream_is_refused(client, stream, name):
    client.put(f"/v1/streams/{name}")
    cursor = client.get(f"/v1/streams/{name}/records").json()["next_cursor"]

    for bad in (cursor, "nonsense", "%%%", "AAAA"):
        answer = client.get(f"{stream}/records", params={"cursor": bad})

        assert answer.status_code == 400
        assert answer.json()["code"] == "invalid_cursor"


def test_a_record_too_large_for_its_stream_is_refused(client, name):
    client.put(f"/v1/streams/{name}", json={"record_bytes_max": 10})

    answer = client.post(f"/v1/streams/{name}/records", json={"data": "x" * 11})

    assert answer.status_code == 413
    assert answer.json()["code"] == "message_too_large"


# ── Reshard, fence, truncate ──


def reshard(client: httpx.Client, stream: str, **change: Any) -> httpx.Response:
    return client.post(f"{stream}/reshard", json=change)


def shards_of(answer: httpx.Response) -> dict[int, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return {shard["index"]: shard for shard in answer.json()["items"]}


def test_a_shard_is_split_in_its_middle(client, stream):
    found = shards_of(reshard(client, stream, split={"shard": 0}))

    assert (found[0]["open"], found[1]["open"]) == (False, True)
    assert found[0]["closed_at"] is not None
    assert [found[index]["parents"] for index in (2, 3)] == [[0], [0]]
    assert int(found[2]["last_hash_key"]) + 1 == int(found[3]["first_hash_key"]) == 2**126
    shown = client.get(stream).json()
    assert (shown["shards"], shown["open_shards"], shown["version"]) == (2, 3, 2)


def test_a_shard_is_split_at_a_key_and_merged_again(client, stream):
    reshard(client, stream, split={"shard": 0, "at_hash_key": "1000"}).raise_for_status()

    found = shards_of(reshard(client, stream, merge=[3, 2]))

    assert found[2]["last_hash_key"] == "999"
    assert found[4]["parents"] == [3, 2]
    assert (found[4]["first_hash_key"], found[4]["last_hash_key"]) == (
        found[0]["first_hash_key"],
        found[0]["last_hash_key"],
    )


def test_a_stream_takes_any_number_of_shards(client, stream):
    found = shards_of(reshard(client, stream, shards=5))

    assert sum(shard["open"] for shard in found.values()) == 5


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({}, "/shards"),
        ({"shards": 2, "merge": [0, 1]}, "/shards"),
        ({"shards": 0}, "/shards"),
        ({"shards": 1025}, "/shards"),
        ({"split": {"shard": 0, "at_hash_key": "1"}}, "/at_hash_key"),
        ({"split": {"shard": 0, "at_hash_key": "01"}}, "/split/at_hash_key"),
        ({"split": {"shard": 0, "at_hash_key": 5}}, "/split/at_hash_key"),
        ({"merge": [0, 0]}, "/second"),
        ({"merge": [0]}, "/merge/1"),
        ({"double": True}, "/double"),
    ],
)
def test_a_reshard_that_makes_no_sense_is_refused(client, stream, change, pointer):
    answer = reshard(client, stream, **change)

    assert answer.status_code == 422, answer.text
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]


def test_what_is_not_there_cannot_be_resharded(client, stream, name):
    missing = [
        reshard(client, stream, split={"shard": 9}),
        reshard(client, stream, merge=[0, 9]),
        client.put(f"{stream}/shards/9/fence", json={"token": "x"}),
        client.post(f"{stream}/shards/9/truncate", json={"before": 0}),
    ]

    assert [answer.json()["code"] for answer in missing] == ["shard_not_found"] * 4
    answer = reshard(client, f"/v1/streams/no-{name}", shards=2)
    assert answer.json()["code"] == "stream_not_found"


def test_a_closed_shard_tells_its_end_and_the_way(client, stream):
    append_to_shard(client, stream, 0, {"data": "a"}, {"data": "b"})
    reshard(client, stream, split={"shard": 0}).raise_for_status()

    first = read_shard(client, stream, 0, limit=1)
    last = read_shard(client, stream, 0, offset=1, wait_seconds=20)
    refused = append_to_shard(client, stream, 0, {"data": "c"})

    assert (first["ended"], "children" in first) == (False, False)
    assert last["ended"]
    assert [(child["shard"], child["parents"]) for child in last["children"]] == [
        (2, [0]),
        (3, [0]),
    ]
    assert refused.status_code == 409
    assert refused.json()["code"] == "shard_closed"
    assert [child["shard"] for child in refused.json()["children"]] == [2, 3]


def test_a_cursor_leads_through_splits_and_merges_in_order(client, stream):
    keys = [f"key {number}" for number in range(8)]
    changes: list[dict[str, Any]] = [{"split": {"shard": 0}}, {"shards": 1}, {"shards": 4}]
    for round_, change in enumerate(changes):
        append(client, stream, *[{"data": f"{round_}", "key": key} for key in keys])
        reshard(client, stream, **change).raise_for_status()
    append(client, stream, *[{"data": "3", "key": key} for key in keys])

    found: dict[str, list[str]] = {key: [] for key in keys}
    cursor = ""
    while True:
        page = client.get(f"{stream}/records", params={"cursor": cursor, "limit": 5}).json()
        for record in page["records"]:
            found[record["key"]].append(record["data"])
        if page["next_cursor"] == cursor:
            break
        cursor = page["next_cursor"]

    assert all(order == ["0", "1", "2", "3"] for order in found.values())


def test_latest_starts_in_the_open_shards(client, stream):
    append(client, stream, {"data": "old"})
    reshard(client, stream, shards=3).raise_for_status()

    start = client.get(f"{stream}/records", params={"from": "latest"}).json()
    append(client, stream, {"data": "new"})
    then = client.get(f"{stream}/records", params={"cursor": start["next_cursor"]}).json()

    assert start["records"] == []
    assert [record["data"] for record in then["records"]] == ["new"]


def test_a_retry_after_a_split_adds_nothing(client, stream):
    headers = {"idempotency-key": "k1"}
    body = {"records": [{"data": str(n), "key": f"key {n}"} for n in range(6)]}
    first = client.post(f"{stream}/records", json=body, headers=headers).json()["records"]
    reshard(client, stream, shards=3).raise_for_status()

    again = client.post(f"{stream}/records", json=body, headers=headers).json()["records"]

    assert again == [{**one, "duplicate": True} for one in first]


def test_a_fence_gives_a_shard_to_one_writer(client, stream):
    fence = f"{stream}/shards/0/fence"
    set_ = client.put(fence, json={"token": "mine", "expected": ""})
    taken = client.put(fence, json={"token": "other", "expected": ""})
    mine = append_to_shard(client, stream, 0, {"data": "a"}, fence="mine")
    other = append_to_shard(client, stream, 0, {"data": "a"}, fence="other")
    nobodys = append_to_shard(client, stream, 0, {"data": "a"})

    assert set_.json() == {"shard": 0, "fenced": True}
    assert mine.status_code == 200
    assert [answer.status_code for answer in (taken, other, nobodys)] == [412] * 3
    assert other.json()["code"] == "fence_mismatch"
    assert client.put(fence, json={"token": ""}).json() == {"shard": 0, "fenced": False}


def test_a_record_may_name_its_hash_key(client, stream):
    low, high = append(
        client, stream, {"data": "a", "hash_key": "0"}, {"data": "b", "hash_key": str(2**128 - 1)}
    )
    off = client.post(f"{stream}/records", json={"data": "a", "hash_key": str(2**128)})
    odd = client.post(f"{stream}/records", json={"data": "a", "hash_key": "x"})
    on_shard = append_to_shard(client, stream, 0, {"data": "a", "hash_key": "0"})

    assert (low["shard"], high["shard"]) == (0, 1)
    assert [answer.status_code for answer in (off, odd, on_shard)] == [422] * 3


def test_a_shard_is_truncated(client, stream):
    append_to_shard(client, stream, 0, *[{"data": str(n)} for n in range(5)])

    answer = client.post(f"{stream}/shards/0/truncate", json={"before": 3})
    beyond = client.post(f"{stream}/shards/0/truncate", json={"before": 6})

    assert answer.json() == {"shard": 0, "start": 3}
    assert beyond.status_code == 416
    assert [record["offset"] for record in read_shard(client, stream, 0)["records"]] == [3, 4]
    assert client.get(f"{stream}/shards/0/records", params={"offset": 2}).status_code == 410


def test_retention_may_be_for_ever(client, stream):
    for_ever = client.patch(stream, json={"retention_seconds": None, "retention_records": 10})
    other = client.patch(stream, json={"retention_records": None, "event_times": "arrival"})

    assert (for_ever.json()["retention_seconds"], for_ever.json()["retention_records"]) == (
        None,
        10,
    )
    assert (other.json()["retention_seconds"], other.json()["retention_records"]) == (None, None)
    assert other.json()["event_times"] == "arrival"


def test_an_event_time_that_is_too_far_off_is_refused(client, stream):
    client.patch(stream, json={"event_time_skew_seconds_max": 60}).raise_for_status()

    answer = client.post(
        f"{stream}/records", json={"data": "a", "event_time": "2020-01-01T00:00:00Z"}
    )

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/records/0/event_time"


def test_columns_are_appended_as_json_and_as_messagepack(client, name):
    stream = f"/v1/streams/{name}"
    client.put(stream)

    as_json = client.post(f"{stream}/columns", json={"data": ["b25l"], "keys": ["a"]})
    packed = msgspec.msgpack.encode({"data": [b"two", b"three"]})
    headers = {"content-type": "application/msgpack"}
    as_msgpack = client.post(f"{stream}/columns", content=packed, headers=headers)
    read = client.get(f"{stream}/shards/0/records").json()

    assert as_json.json() == {"ranges": [{"shard": 0, "offset": 0}], "failed": 0}
    assert as_msgpack.json() == {"ranges": [{"shard": 0, "offset": 1}], "failed": 0}
    assert [record["data"] for record in read["records"]] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"data": []}, "/data"),
        ({"data": ["b25l"], "keys": ["a", "b"]}, "/keys"),
        ({"data": ["b25l"], "keys": ["k" * 257]}, "/keys/0"),
        ({"data": ["not base64!"]}, "/data/0"),
        ({"data": [7]}, "/data/0"),
        ({}, "/data"),
    ],
)
def test_columns_that_make_no_sense_are_refused_where_they_are_wrong(client, name, body, pointer):
    stream = f"/v1/streams/{name}"
    client.put(stream)

    answer = client.post(f"{stream}/columns", json=body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_the_newest_record_of_a_key_is_shown(client, stream):
    off = client.get(f"{stream}/keys/a")
    client.patch(stream, json={"key_index": True}).raise_for_status()
    append(client, stream, {"data": "1", "key": "a/b c"}, {"data": "2", "key": "a/b c"})
    reshard(client, stream, shards=3).raise_for_status()

    found = client.get(f"{stream}/keys/a%2Fb%20c")
    missing = client.get(f"{stream}/keys/a")

    assert off.status_code == 422
    assert (found.json()["data"], found.json()["key"], found.json()["offset"]) == ("2", "a/b c", 1)
    assert found.json()["shard"] in (0, 1)
    assert missing.json()["code"] == "record_not_found"
