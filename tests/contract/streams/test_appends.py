"""Appends over HTTP: single records, batches, columns, idempotence and fences."""

import base64

import msgspec
import pytest

from tests.contract.streams.calls import append, append_to_shard, read_shard

MSGPACK = {"content-type": "application/msgpack", "accept": "application/msgpack"}


def test_batch_is_answered_record_by_record(client, stream):
    results = append(client, stream, {"data": "a", "key": "k"}, {"data": "b", "key": "k"})

    assert [result["offset"] for result in results] == [0, 1]
    assert results[0]["shard"] == results[1]["shard"]
    assert not any(result["duplicate"] for result in results)


def test_single_record_gets_single_result(client, stream):
    answer = client.post(f"{stream}/records", json={"data": {"a": 1}, "key": "k"})

    assert answer.status_code == 201
    assert answer.json().keys() == {"shard", "offset", "duplicate"}


def test_raw_body_becomes_record(client, stream):
    answer = client.post(f"{stream}/records", content=b"hello", headers={"millstream-key": "k"})

    at = answer.json()
    [record] = read_shard(client, stream, at["shard"], offset=at["offset"])["records"]
    assert answer.status_code == 201
    assert (record["data"], record["key"]) == ("hello", "k")


def test_lines_form_batch_of_records(client, stream):
    answer = client.post(
        f"{stream}/records",
        content=b'{"data":"a"}\n{"data":"b"}\n',
        headers={"content-type": "application/x-ndjson"},
    )

    assert answer.json()["failed"] == 0
    assert len(answer.json()["records"]) == 2


def test_record_round_trips(client, stream):
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
    response = client.get(f"{stream}/shards/0/records", headers={"accept": "application/msgpack"})

    assert msgspec.msgpack.decode(sent.content)["failed"] == 0
    records = msgspec.msgpack.decode(response.content)["records"]
    assert [record["data"] for record in records] == [b"\xff", b"text", b"[1]"]
    assert records[0]["key"] == "k"


def test_batch_of_1000_records_is_accepted(client, stream):
    packed = msgspec.msgpack.encode({"records": [{"data": b"x" * 256}] * 1000})

    answer = client.post(f"{stream}/records", content=packed, headers=MSGPACK)

    assert len(msgspec.msgpack.decode(answer.content)["records"]) == 1000


def test_repeat_with_same_idempotency_key_adds_nothing(client, stream):
    headers = {"idempotency-key": "k1"}
    body = {"records": [{"data": "a", "key": "x"}]}
    client.post(f"{stream}/records", json=body, headers=headers)

    [again] = client.post(f"{stream}/records", json=body, headers=headers).json()["records"]

    assert again["duplicate"] is True


def test_repeated_batch_of_producer_adds_nothing(client, stream):
    producer = {"id": "p", "epoch": 0, "sequence": 0}
    first = append_to_shard(client, stream, 0, {"data": "a"}, producer=producer).json()

    again = append_to_shard(client, stream, 0, {"data": "a"}, producer=producer).json()

    assert again["records"] == [{**first["records"][0], "duplicate": True}]


def test_sequence_gap_of_producer_is_rejected(client, stream):
    producer = {"id": "p", "epoch": 0, "sequence": 5}

    answer = append_to_shard(client, stream, 0, {"data": "a"}, producer=producer)

    assert answer.status_code == 409
    assert answer.json()["code"] == "sequence_out_of_order"


def test_append_at_unexpected_offset_is_rejected(client, stream):
    assert append_to_shard(client, stream, 0, {"data": "a"}, expected_offset=0).status_code == 200

    answer = append_to_shard(client, stream, 0, {"data": "b"}, expected_offset=0)

    assert answer.status_code == 412
    assert answer.json()["code"] == "offset_mismatch"
    assert len(read_shard(client, stream, 0)["records"]) == 1


@pytest.mark.parametrize("shard", ["2", "x", "-1", "99999999999999999999"])
def test_unknown_shard_is_reported(client, stream, shard):
    answers = [
        client.get(f"{stream}/shards/{shard}/records"),
        client.post(f"{stream}/shards/{shard}/records", json={"data": "a"}),
    ]

    assert [answer.json()["code"] for answer in answers] == ["shard_not_found"] * 2


def test_record_over_size_limit_of_stream_is_rejected(client, name):
    client.put(f"/v1/streams/{name}", json={"record_bytes_max": 10})

    answer = client.post(f"/v1/streams/{name}/records", json={"data": "x" * 11})

    assert answer.status_code == 413
    assert answer.json()["code"] == "message_too_large"


def test_fence_reserves_shard_for_one_writer(client, stream):
    fence = f"{stream}/shards/0/fence"
    set_ = client.put(fence, json={"token": "mine", "expected": ""})
    response = client.put(fence, json={"token": "other", "expected": ""})
    mine = append_to_shard(client, stream, 0, {"data": "a"}, fence="mine")
    other = append_to_shard(client, stream, 0, {"data": "a"}, fence="other")
    nobodys = append_to_shard(client, stream, 0, {"data": "a"})

    assert set_.json() == {"shard": 0, "fenced": True}
    assert mine.status_code == 200
    assert [answer.status_code for answer in (response, other, nobodys)] == [412] * 3
    assert other.json()["code"] == "fence_mismatch"
    assert client.put(fence, json={"token": ""}).json() == {"shard": 0, "fenced": False}


def test_record_can_specify_hash_key(client, stream):
    low, high = append(
        client, stream, {"data": "a", "hash_key": "0"}, {"data": "b", "hash_key": str(2**128 - 1)}
    )
    off = client.post(f"{stream}/records", json={"data": "a", "hash_key": str(2**128)})
    odd = client.post(f"{stream}/records", json={"data": "a", "hash_key": "x"})
    on_shard = append_to_shard(client, stream, 0, {"data": "a", "hash_key": "0"})

    assert (low["shard"], high["shard"]) == (0, 1)
    assert [answer.status_code for answer in (off, odd, on_shard)] == [422] * 3


def test_event_time_beyond_allowed_skew_is_rejected(client, stream):
    client.patch(stream, json={"event_time_skew_seconds_max": 60}).raise_for_status()

    answer = client.post(
        f"{stream}/records", json={"data": "a", "event_time": "2020-01-01T00:00:00Z"}
    )

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/records/0/event_time"


def test_columns_are_appended_as_json_and_messagepack(client, name):
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
def test_invalid_columns_are_rejected_with_pointer(client, name, body, pointer):
    stream = f"/v1/streams/{name}"
    client.put(stream)

    answer = client.post(f"{stream}/columns", json=body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
