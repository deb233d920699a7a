"""Consumer groups over HTTP: members, records, commits, resets, bookmarks and lag."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest

from tests.conditions import PATIENCE_S

GroupOf = dict[str, Any]


@pytest.fixture
def stream(client: httpx.Client, name: str) -> str:
    """The path of a new stream of four shards, with two records in each."""
    path = f"/v1/streams/{name}"
    client.put(path, json={"shards": 4}).raise_for_status()
    for shard in range(4):
        records = [{"data": f"{shard}.{number}"} for number in range(2)]
        answer = client.post(f"{path}/shards/{shard}/records", json={"records": records})
        answer.raise_for_status()
    return path


@pytest.fixture
def group(client: httpx.Client, stream: str, name: str) -> Iterator[str]:
    """The path of a new group that reads it."""
    path = f"/v1/groups/{name}"
    client.put(path, json={"stream": name}).raise_for_status()
    yield path
    client.delete(path)


def fetch(client: httpx.Client, group: str, member: str = "alice", **asked: Any) -> GroupOf:
    answer = client.get(f"{group}/records", params={"member": member, **asked}, timeout=30)
    assert answer.status_code == 200, answer.text
    found: GroupOf = answer.json()
    return found


def commit(client: httpx.Client, group: str, **said: Any) -> httpx.Response:
    return client.post(f"{group}/commit", json=said)


def data(found: GroupOf) -> list[str]:
    return [record["data"] for record in found["records"]]


def test_group_is_created_shown_listed_and_deleted(client, stream, name):
    path = f"/v1/groups/{name}"

    made = client.put(path, json={"stream": name, "session_timeout_seconds": 10})
    shown = client.get(path).json()
    listed = client.get("/v1/groups", params={"prefix": name}).json()["items"]

    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert made.json()["kind"] == "ordered"
    assert shown["session_timeout_seconds"] == 10
    assert (shown["members"], len(shown["shards"])) == ([], 4)
    assert listed[0].pop("measurement") is None
    assert listed == [{key: made.json()[key] for key in listed[0]}]
    assert client.delete(path).status_code == 204
    assert client.get(path).json()["code"] == "group_not_found"


def test_put_changes_timeouts_only(client, group, name):
    changed = client.put(group, json={"stream": name, "session_timeout_seconds": 5})
    refused = client.put(group, json={"stream": name, "kind": "simple"})
    secured_service = client.put(group, json={"stream": name}, headers={"if-match": '"v1"'})

    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert refused.json()["errors"][0]["pointer"] == "/kind"
    assert secured_service.json()["code"] == "precondition_failed"


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({}, "/stream"),
        ({"stream": "a/b"}, "/stream"),
        ({"stream": "x", "kind": "share"}, "/kind"),
        ({"stream": "x", "session_timeout_seconds": 0.5}, "/session_timeout_seconds"),
        ({"stream": "x", "start": "time"}, "/start_time"),
        ({"stream": "x", "start_time": "2026-01-31T12:00:00Z"}, "/start_time"),
        ({"stream": "x", "sesion": 1}, "/sesion"),
    ],
)
def test_invalid_configuration_is_rejected(client, name, config, pointer):
    answer = client.put(f"/v1/groups/{name}", json=config)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_group_of_unknown_stream_is_rejected(client, name):
    answer = client.put(f"/v1/groups/{name}", json={"stream": name})

    assert (answer.status_code, answer.json()["code"]) == (404, "stream_not_found")


def test_group_can_start_at_timestamp(client, stream, group, name):
    [first] = client.get(f"{stream}/shards/0/records?tail=1").json()["records"]
    spec = {"stream": name, "start": "time", "start_time": first["arrival_time"]}
    client.put(f"{group}-late", json=spec).raise_for_status()

    fetched_records = fetch(client, f"{group}-late")

    assert {"0.0", "0.1"} <= set(data(fetched_records))
    client.delete(f"{group}-late")


def test_records_are_returned_until_committed(client, group):
    first = fetch(client, group)
    again = fetch(client, group, token=first["token"])
    done = commit(client, group, token=first["token"])
    repeated = commit(client, group, token=again["token"])
    after = fetch(client, group)

    assert first == again
    assert sorted(data(first)) == [f"{shard}.{number}" for shard in range(4) for number in range(2)]
    assert first["shards"] == [0, 1, 2, 3]
    assert done.json() == {"offsets": [{"shard": n, "offset": 2} for n in range(4)], "failed": 0}
    assert repeated.json() == done.json()
    assert after["records"] == []
    assert commit(client, group, token=after["token"]).json() == {"offsets": [], "failed": 0}


def test_read_without_token_fences_earlier_instance(client, group):
    """Two processes of one member name shared a generation, and the earlier one's token committed."""
    earlier = fetch(client, group)
    later = fetch(client, group)

    stale_commit = commit(client, group, token=earlier["token"])
    stale_reads = [
        client.get(f"{group}/records", params={"member": "alice", name: earlier["token"]})
        for name in ("token", "after")
    ]
    params = {"generation": earlier["generation"]}
    stale_leave = client.delete(f"{group}/members/alice", params=params)
    done = commit(client, group, token=later["token"])

    refusals = [stale_commit, *stale_reads, stale_leave]
    assert [one.json()["code"] for one in refusals] == ["stale_generation"] * 4
    assert later["generation"] > earlier["generation"]
    assert sorted(data(later)) == sorted(data(earlier))
    assert done.json()["failed"] == 0


def test_read_with_token_continues_after_session_expired(client, group, name):
    client.put(group, json={"stream": name, "session_timeout_seconds": 1}).raise_for_status()
    first = fetch(client, group)
    client.delete(f"{group}/members/alice").raise_for_status()

    again = fetch(client, group, token=first["token"])

    assert again["shards"] == first["shards"]
    assert commit(client, group, token=first["token"]).json()["code"] == "stale_generation"


def test_new_instance_of_static_member_stays_static(client, group):
    client.post(f"{group}/members", json={"instance_id": "alice"}).raise_for_status()

    fetch(client, group)

    assert [one["static"] for one in client.get(group).json()["members"]] == [True]


def test_token_of_another_member_is_rejected(client, group):
    token = fetch(client, group, "alice")["token"]

    for params in ({"token": token}, {"after": token}, {"token": token, "after": token}):
        answer = client.get(f"{group}/records", params={"member": "bob", **params})

        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "conflict")


def test_reading_ahead_of_commit_is_possible(client, group):
    first = fetch(client, group, limit=4)
    second = fetch(client, group, limit=4, after=first["token"])

    answer = commit(client, group, token=second["token"])

    assert sorted(data(first) + data(second)) == sorted(data(fetch_anew(client, group)))
    assert [offset["offset"] for offset in answer.json()["offsets"]] == [2, 2, 2, 2]


def fetch_anew(client: httpx.Client, group: str) -> GroupOf:
    """Fetch all records again, after a reset."""
    client.post(f"{group}/reset", json={"to": "earliest"}).raise_for_status()
    return fetch(client, group)


def test_records_are_available_as_messagepack_and_lines(client, group):
    packed = client.get(
        f"{group}/records?member=a", headers={"accept": "application/msgpack"}
    ).content
    lines = client.get(
        f"{group}/records?member=a", headers={"accept": "application/x-ndjson"}
    ).text.splitlines()

    assert msgspec.msgpack.decode(packed)["records"][0]["data"] == b"0.0"
    assert len(lines) == 9
    assert msgspec.json.decode(lines[-1])["token"]


def test_waiting_member_is_woken_by_record(client, stream, group):
    commit(client, group, token=fetch(client, group)["token"])

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(fetch, client, group, wait_seconds=20)
        time.sleep(0.3)
        client.post(f"{stream}/records", json={"data": "new"}).raise_for_status()

        assert data(waiting.result(10)) == ["new"]


def test_two_members_share_shards(client, group):
    fetch(client, group, "alice")
    fetch(client, group, "bob")
    alice, bob = fetch(client, group, "alice"), fetch(client, group, "bob")

    assert (alice["shards"], bob["shards"]) == ([0, 1], [2, 3])
    assert len(data(alice)) == len(data(bob)) == 4
    members = client.get(group).json()["members"]
    assert [(member["member"], member["assigned"]) for member in members] == [
        ("alice", [0, 1]),
        ("bob", [2, 3]),
    ]


def test_stale_commit_returns_conflict_and_commits_nothing(client, group):
    old = fetch(client, group, "alice")
    client.post(f"{group}/reset", json={"to": "latest"}).raise_for_status()

    stale = commit(client, group, token=old["token"])

    assert (stale.status_code, stale.json()["code"]) == (409, "stale_generation")
    assert {shard["committed"] for shard in client.get(group).json()["shards"]} == {2}


def test_members_join_heartbeat_hand_over_and_leave(client, group):
    alice = client.post(f"{group}/members", json={"member": "alice"}).json()
    bob = client.post(f"{group}/members").json()
    body = client.post(f"{group}/members/alice/heartbeat", json={}).json()
    client.post(f"{group}/members/alice/heartbeat", json={"owned": [0, 1]}).raise_for_status()
    got = client.post(f"{group}/members/{bob['member']}/heartbeat").json()
    request = {"member": bob["member"], "generation": got["generation"]}
    done = commit(client, group, offsets=[{"shard": 2, "offset": 1}], **request)
    left = client.delete(f"{group}/members/{bob['member']}")
    gone = client.post(f"{group}/members/{bob['member']}/heartbeat", json={})

    assert len(alice["assigned"]) == 4
    assert bob["assigned"] == []
    assert [one["shard"] for one in body["revoked"]] == [2, 3]
    assert [one["shard"] for one in got["assigned"]] == [2, 3]
    assert done.json() == {"offsets": [{"shard": 2, "offset": 1}], "failed": 0}
    assert left.status_code == 204
    assert (gone.status_code, gone.json()["code"]) == (404, "member_unknown")


def test_static_member_can_leave_temporarily(client, group):
    client.post(f"{group}/members", json={"instance_id": "worker-1"}).raise_for_status()

    client.delete(f"{group}/members/worker-1?for_a_while=true").raise_for_status()
    [away] = client.get(group).json()["members"]
    back = client.post(f"{group}/members", json={"instance_id": "worker-1"}).json()

    assert (away["static"], away["disconnected"], away["assigned"]) == (True, True, [0, 1, 2, 3])
    assert len(back["assigned"]) == 4


def test_commit_is_answered_per_shard(client, group):
    generation = fetch(client, group)["generation"]
    offsets = [{"shard": 0, "offset": 1}, {"shard": 1, "offset": 9}, {"shard": 7, "offset": 0}]

    answer = commit(client, group, member="alice", generation=generation, offsets=offsets)

    assert answer.status_code == 200
    assert answer.json()["failed"] == 2
    done, past_the_end, nowhere = answer.json()["offsets"]
    assert done == {"shard": 0, "offset": 1}
    assert past_the_end["error"]["code"] == "offset_out_of_range"
    assert nowhere["error"]["code"] == "shard_not_found"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "validation_failed"),
        ({"token": "nonsense!"}, 400, "invalid_cursor"),
        ({"token": "kpKmcXVldWVz"}, 400, "invalid_cursor"),
        ({"token": "x", "member": "a"}, 422, "validation_failed"),
        ({"offsets": [{"shard": -1, "offset": 0}]}, 422, "validation_failed"),
        ({"offsets": [{"shard": 0, "offset": 0}]}, 422, "validation_failed"),
        ({"offsets": [{"shard": 0, "offset": 0}] * 2}, 422, "validation_failed"),
        (
            {"offsets": [{"shard": 0, "offset": 0}], "member": "x", "generation": 1},
            404,
            "member_unknown",
        ),
        (
            {"offsets": [{"shard": 0, "offset": 9}], "member": "x", "generation": 1},
            416,
            "offset_out_of_range",
        ),
    ],
)
def test_invalid_commit_is_rejected(client, group, body, status, code):
    answer = client.post(f"{group}/commit", json=body)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_token_of_another_group_is_rejected(client, stream, group, name):
    client.put(f"{group}-other", json={"stream": name}).raise_for_status()
    token = fetch(client, group)["token"]

    answer = commit(client, f"{group}-other", token=token)

    assert answer.json()["code"] == "invalid_cursor"
    client.delete(f"{group}-other")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 422),
        ("member=a%00b", 422),
        ("member=a b", 422),
        ("member=a&wait_seconds=21", 422),
        ("member=a&limit=0", 422),
        ("member=a&after=xyz", 400),
        ("member=a&member=b", 422),
        ("member=a&unknown=1", 422),
    ],
)
def test_invalid_read_is_rejected(client, group, query, status):
    assert client.get(f"{group}/records?{query}").status_code == status


def test_calls_on_unknown_group_are_not_found(client, name):
    path = f"/v1/groups/{name}"
    calls = [
        client.get(f"{path}/records?member=a"),
        client.post(f"{path}/commit", json={"offsets": [{"shard": 0, "offset": 0}]}),
        client.post(f"{path}/members", json={}),
        client.post(f"{path}/members/a/heartbeat", json={}),
        client.delete(f"{path}/members/a"),
        client.post(f"{path}/reset", json={"to": "earliest"}),
        client.get(f"{path}/lag"),
        client.get(f"{path}/bookmarks"),
        client.put(f"{path}/bookmarks/b", json={}),
        client.delete(path),
    ]

    assert {(call.status_code, call.json()["code"]) for call in calls} == {(404, "group_not_found")}
    assert client.post("/v1/groups/a%20b/members", json={}).status_code == 422


def test_dry_run_of_reset_changes_nothing(client, group):
    commit(client, group, token=fetch(client, group)["token"])

    shown = client.post(f"{group}/reset", json={"to": "earliest", "dry_run": True}).json()

    assert shown == {
        "dry_run": True,
        "shards": [{"shard": n, "before": 2, "after": 0, "expired": 0} for n in range(4)],
    }
    assert fetch(client, group)["records"] == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/to"),
        ({"to": "somewhere"}, "/to"),
        ({"to": "time"}, "/time"),
        ({"to": "time", "time": "yesterday"}, "/time"),
        ({"to": "earliest", "offsets": {"0": 1}}, "/offsets"),
        ({"to": "offsets", "offsets": {"zero": 1}}, "/offsets/zero"),
        ({"to": "offsets", "offsets": {"0": -1}}, "/offsets/0"),
        ({"to": "offsets", "offsets": {"0": 1}, "shards": [1]}, "/shards"),
        ({"to": "bookmark"}, "/bookmark"),
    ],
)
def test_invalid_reset_is_rejected(client, group, body, pointer):
    answer = client.post(f"{group}/reset", json=body)

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_bookmarks_are_created_listed_used_and_deleted(client, group):
    commit(client, group, token=fetch(client, group, limit=4)["token"])
    body = client.put(f"{group}/bookmarks/here").json()
    commit(client, group, token=fetch(client, group)["token"])

    listed = client.get(f"{group}/bookmarks").json()["items"]
    client.post(f"{group}/reset", json={"to": "bookmark", "bookmark": "here"}).raise_for_status()

    assert listed == [body]
    assert body["positions"] == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert len(fetch(client, group)["records"]) == 4
    assert client.delete(f"{group}/bookmarks/here").status_code == 204
    missing = client.post(f"{group}/reset", json={"to": "bookmark", "bookmark": "here"})
    assert missing.json()["code"] == "bookmark_not_found"


def test_lag_is_in_records_and_in_time(client, group):
    behind = client.get(f"{group}/lag").json()
    commit(client, group, token=fetch(client, group)["token"])
    level = client.get(f"{group}/lag").json()

    assert behind["records"] == 8
    assert 0 < behind["loss_in_seconds"] <= 604_800
    assert (level["records"], level["lag_seconds"], level["loss_in_seconds"]) == (0, 0, None)


def test_simple_group_commits_without_members(client, stream, name):
    path = f"/v1/groups/{name}"
    client.put(path, json={"stream": name, "kind": "simple"}).raise_for_status()

    body = client.get(f"{path}/records").json()
    first = commit(client, path, offsets=[{"shard": 0, "offset": 2}])
    rest = commit(client, path, token=body["token"])
    joined = client.post(f"{path}/members", json={})

    assert len(body["records"]) == 8
    assert first.json()["failed"] == rest.json()["failed"] == 0
    assert client.get(f"{path}/records").json()["records"] == []
    assert joined.json()["errors"][0]["code"] == "not_supported"


def test_shards_of_silent_member_move_to_another(client, group, name):
    client.put(group, json={"stream": name, "session_timeout_seconds": 1}).raise_for_status()
    fetch(client, group, "alice")
    fetch(client, group, "bob")
    fetch(client, group, "alice")  # its last heartbeat

    give_up_at = time.monotonic() + PATIENCE_S
    while len(fetch(client, group, "bob", wait_seconds=0.2)["shards"]) < 4:
        assert time.monotonic() < give_up_at

    assert len(fetch(client, group, "bob")["records"]) == 8
