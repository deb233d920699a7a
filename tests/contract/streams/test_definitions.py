"""The configuration of streams over HTTP."""

from tests.contract.streams.calls import append_to_shard


def test_put_without_body_creates_stream_with_defaults(client, name):
    answer = client.put(f"/v1/streams/{name}")

    assert answer.status_code == 201
    assert answer.headers["etag"] == '"v1"'
    shown = answer.json()
    assert [shown.pop(key) for key in ("created", "dry_run", "changes")] == [True, False, []]
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


def test_patch_changes_stream(client, stream):
    answer = client.patch(stream, json={"retention_bytes": 1000})

    assert answer.json()["retention_bytes"] == 1000
    assert client.patch(stream, json={"retention_bytes": None}).json()["retention_bytes"] is None


def test_shard_count_cannot_change_by_put(client, stream):
    put = client.put(stream, json={"shards": 3})
    patched = client.patch(stream, json={"shards": 3})

    assert put.json()["errors"][0]["pointer"] == "/shards"
    assert patched.json()["errors"][0]["pointer"] == "/shards"


def test_deleted_stream_is_gone(client, stream):
    assert client.delete(stream).status_code == 204
    assert client.get(stream).json()["code"] == "stream_not_found"
    assert client.get(f"{stream}/shards/0/records").json()["code"] == "stream_not_found"


def test_streams_are_listed(client, stream):
    names = [shown["name"] for shown in client.get("/v1/streams?limit=1000").json()["items"]]

    assert stream.rpartition("/")[2] in names


def test_shards_partition_hash_ring(client, stream):
    append_to_shard(client, stream, 1, {"data": "a"}, {"data": "b"})

    first, second = client.get(f"{stream}/shards").json()["items"]

    assert first["first_hash_key"] == "0"
    assert int(first["last_hash_key"]) + 1 == int(second["first_hash_key"])
    assert second["last_hash_key"] == str(2**128 - 1)
    assert (first["start"], first["next"]) == (0, 0)
    assert (second["start"], second["next"]) == (0, 2)


def test_retention_can_be_unlimited(client, stream):
    for_ever = client.patch(stream, json={"retention_seconds": None, "retention_records": 10})
    other = client.patch(stream, json={"retention_records": None, "event_times": "arrival"})

    assert (for_ever.json()["retention_seconds"], for_ever.json()["retention_records"]) == (
        None,
        10,
    )
    assert (other.json()["retention_seconds"], other.json()["retention_records"]) == (None, None)
    assert other.json()["event_times"] == "arrival"
