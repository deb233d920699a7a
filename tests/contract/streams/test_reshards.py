"""Shards are split, merged and truncated over HTTP."""

from typing import Any

import httpx
import pytest

from tests.contract.streams.calls import append, append_to_shard, read_shard, reshard


def shards_of(answer: httpx.Response) -> dict[int, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return {shard["index"]: shard for shard in answer.json()["items"]}


def test_shard_is_split_in_middle(client, stream):
    shards = shards_of(reshard(client, stream, split={"shard": 0}))

    assert (shards[0]["open"], shards[1]["open"]) == (False, True)
    assert shards[0]["closed_at"] is not None
    assert [shards[index]["parents"] for index in (2, 3)] == [[0], [0]]
    assert int(shards[2]["last_hash_key"]) + 1 == int(shards[3]["first_hash_key"]) == 2**126
    shown = client.get(stream).json()
    assert (shown["shards"], shown["open_shards"], shown["version"]) == (2, 3, 2)


def test_shard_is_split_at_hash_key_and_merged_again(client, stream):
    reshard(client, stream, split={"shard": 0, "at_hash_key": "1000"}).raise_for_status()

    shards = shards_of(reshard(client, stream, merge=[3, 2]))

    assert shards[2]["last_hash_key"] == "999"
    assert shards[4]["parents"] == [3, 2]
    assert (shards[4]["first_hash_key"], shards[4]["last_hash_key"]) == (
        shards[0]["first_hash_key"],
        shards[0]["last_hash_key"],
    )


def test_stream_can_be_resharded_to_any_count(client, stream):
    shards = shards_of(reshard(client, stream, shards=5))

    assert sum(shard["open"] for shard in shards.values()) == 5


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
def test_invalid_reshard_is_rejected(client, stream, change, pointer):
    answer = reshard(client, stream, **change)

    assert answer.status_code == 422, answer.text
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]


def test_reshard_of_unknown_shard_is_not_found(client, stream, name):
    missing = [
        reshard(client, stream, split={"shard": 9}),
        reshard(client, stream, merge=[0, 9]),
        client.put(f"{stream}/shards/9/fence", json={"token": "x"}),
        client.put(f"{stream}/shards/-9/fence", json={"token": "x"}),
        client.post(f"{stream}/shards/-9/truncate", json={"before": 0}),
        client.post(f"{stream}/shards/9/truncate", json={"before": 0}),
    ]

    assert [answer.json()["code"] for answer in missing] == ["shard_not_found"] * 6
    answer = reshard(client, f"/v1/streams/no-{name}", shards=2)
    assert answer.json()["code"] == "stream_not_found"


def test_closed_shard_reports_its_end_and_children(client, stream):
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


def test_cursor_follows_splits_and_merges_in_order(client, stream):
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


def test_latest_starts_in_open_shards(client, stream):
    append(client, stream, {"data": "old"})
    reshard(client, stream, shards=3).raise_for_status()

    start = client.get(f"{stream}/records", params={"from": "latest"}).json()
    append(client, stream, {"data": "new"})
    then = client.get(f"{stream}/records", params={"cursor": start["next_cursor"]}).json()

    assert start["records"] == []
    assert [record["data"] for record in then["records"]] == ["new"]


def test_retry_after_split_adds_nothing(client, stream):
    headers = {"idempotency-key": "k1"}
    body = {"records": [{"data": str(n), "key": f"key {n}"} for n in range(6)]}
    first = client.post(f"{stream}/records", json=body, headers=headers).json()["records"]
    reshard(client, stream, shards=3).raise_for_status()

    again = client.post(f"{stream}/records", json=body, headers=headers).json()["records"]

    assert again == [{**one, "duplicate": True} for one in first]


def test_shard_is_truncated(client, stream):
    append_to_shard(client, stream, 0, *[{"data": str(n)} for n in range(5)])

    answer = client.post(f"{stream}/shards/0/truncate", json={"before": 3})
    beyond = client.post(f"{stream}/shards/0/truncate", json={"before": 6})

    assert answer.json() == {"shard": 0, "start": 3}
    assert beyond.status_code == 416
    assert [record["offset"] for record in read_shard(client, stream, 0)["records"]] == [3, 4]
    assert client.get(f"{stream}/shards/0/records", params={"offset": 2}).status_code == 410
