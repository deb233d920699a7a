"""The configuration of queues over HTTP."""

from typing import Any

import pytest

DEFAULTS = {
    "type": "standard",
    "partitions": 1,
    "visibility_timeout_seconds": 30,
    "delay_seconds": 0,
    "retention_seconds": 345600,
    "dead_letter_retention_seconds": 1209600,
    "message_bytes_max": 1048576,
    "attempts_max": 10,
    "ttl_seconds": None,
    "receive_wait_seconds": 0,
    "in_flight_max": 10000000,
    "deduplicate_by_content": False,
    "dedup_scope": "queue",
    "dead_letters": None,
    "redrive_allow": {"permission": "allow_all", "sources": []},
    "backoff": None,
    "paused": False,
    "messages_max": None,
    "bytes_max": None,
    "overflow": "reject",
    "on_poison": "skip",
    "group_weights": [],
    "stream_view": False,
    "archive": False,
    "history": False,
    "expires_after_idle_seconds": None,
    "tags": {},
}


def config(shown: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if key in DEFAULTS}


def test_put_without_body_creates_queue_with_defaults(client, name):
    answer = client.put(f"/v1/queues/{name}")

    assert answer.status_code == 201
    assert answer.json()["name"] == name
    assert config(answer.json()) == DEFAULTS


def test_empty_object_is_valid_configuration(client, name):
    assert client.put(f"/v1/queues/{name}", json={}).status_code == 201


def test_put_replaces_whole_configuration(client, name):
    client.put(f"/v1/queues/{name}", json={"visibility_timeout_seconds": 5, "attempts_max": None})

    answer = client.put(f"/v1/queues/{name}", json={"retention_seconds": 61.5})

    assert answer.status_code == 200
    assert config(answer.json()) == {**DEFAULTS, "retention_seconds": 61.5}


def test_whole_seconds_are_integers(client, name):
    assert '"visibility_timeout_seconds":30,' in client.put(f"/v1/queues/{name}").text


def test_get_returns_what_was_put(client, name):
    path = f"/v1/queues/{name}"
    put = client.put(path, json={"tags": {"team": "shop"}, "attempts_max": None})

    got = client.get(path)

    assert got.json() == {key: put.json()[key] for key in got.json()}
    assert got.headers["etag"] == put.headers["etag"] == '"v1"'


def test_matching_etag_returns_304(client, queue):
    answer = client.get(queue, headers={"if-none-match": '"v7", W/"v1"'})

    assert answer.status_code == 304
    assert answer.content == b""
    assert answer.headers["etag"] == '"v1"'


def test_patch_changes_only_named_fields(client, name):
    path = f"/v1/queues/{name}"
    client.put(path, json={"delay_seconds": 5, "tags": {"a": "1", "b": "2"}})

    answer = client.patch(
        path,
        json={"visibility_timeout_seconds": 7, "tags": {"a": None, "c": "3"}},
        headers={"content-type": "application/merge-patch+json"},
    )

    assert answer.status_code == 200
    assert answer.headers["etag"] == '"v2"'
    assert config(answer.json()) == {
        **DEFAULTS,
        "visibility_timeout_seconds": 7,
        "delay_seconds": 5,
        "tags": {"b": "2", "c": "3"},
    }


def test_null_in_patch_resets_field_to_default(client, name):
    path = f"/v1/queues/{name}"
    client.put(path, json={"delay_seconds": 5})

    assert client.patch(path, json={"delay_seconds": None}).json()["delay_seconds"] == 0


def test_null_attempts_in_patch_mean_no_limit(client, queue):
    assert client.patch(queue, json={"attempts_max": None}).json()["attempts_max"] is None


def test_deleted_queue_is_gone(client, queue):
    deleted = client.delete(queue)

    assert deleted.status_code == 204
    assert deleted.content == b""
    assert client.get(queue).status_code == 404
    assert client.delete(queue).json()["code"] == "queue_not_found"
    assert client.post(f"{queue}/receive").json()["code"] == "queue_not_found"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_change_with_stale_version_is_rejected(client, queue, method):
    for tag in ('"v9"', 'W/"v1"', "nonsense"):
        answer = client.request(
            method, queue, headers={"if-match": tag}, json=None if method == "DELETE" else {}
        )

        assert answer.status_code == 412
        assert answer.json()["code"] == "precondition_failed"


def test_change_with_current_version_is_applied(client, queue):
    tag = client.get(queue).headers["etag"]

    assert client.patch(queue, json={}, headers={"if-match": tag}).status_code == 200


def test_put_can_be_create_only(client, queue, name):
    create_only = {"if-none-match": "*"}

    assert client.put(f"/v1/queues/{name}", headers=create_only).status_code == 201
    assert client.put(queue, headers=create_only).status_code == 412


def test_put_can_be_replace_only(client, queue, name):
    replace_only = {"if-match": "*"}

    assert client.put(queue, headers=replace_only).status_code == 200
    assert client.put(f"/v1/queues/{name}", headers=replace_only).status_code == 412


def test_queue_type_cannot_change(client, queue):
    answer = client.put(queue, json={"type": "fifo"})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/type"


def test_queues_are_listed_by_name_in_pages(client, name):
    names = [f"{name}-{letter}" for letter in "cab"]
    for each in names:
        client.put(f"/v1/queues/{each}")

    first = client.get("/v1/queues", params={"prefix": f"{name}-", "limit": 2}).json()
    rest = client.get(
        "/v1/queues", params={"prefix": f"{name}-", "cursor": first["next_cursor"]}
    ).json()

    assert [queue["name"] for queue in first["items"] + rest["items"]] == sorted(names)
    assert len(first["items"]) == 2
    assert rest["next_cursor"] is None


def test_cursor_of_another_list_is_rejected(client, name):
    for letter in "ab":
        client.put(f"/v1/queues/{name}-{letter}")
    page = client.get("/v1/queues", params={"prefix": name, "limit": 1}).json()

    answer = client.get("/v1/streams", params={"prefix": name, "cursor": page["next_cursor"]})

    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_cursor"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"visibility_timeout": 30}, "/visibility_timeout"),
        ({"visibility_timeout_seconds": "30"}, "/visibility_timeout_seconds"),
        ({"visibility_timeout_seconds": 43201}, "/visibility_timeout_seconds"),
        ({"visibility_timeout_seconds": -1}, "/visibility_timeout_seconds"),
        ({"delay_seconds": 315360001}, "/delay_seconds"),
        ({"retention_seconds": 59}, "/retention_seconds"),
        ({"message_bytes_max": 0}, "/message_bytes_max"),
        ({"message_bytes_max": 1.5}, "/message_bytes_max"),
        ({"attempts_max": 0}, "/attempts_max"),
        ({"attempts_max": True}, "/attempts_max"),
        ({"type": "lifo"}, "/type"),
        ({"ttl_seconds": -1}, "/ttl_seconds"),
        ({"receive_wait_seconds": 21}, "/receive_wait_seconds"),
        ({"in_flight_max": 0}, "/in_flight_max"),
        ({"dedup_scope": "group"}, "/dedup_scope"),
        ({"dead_letters": {"queue": "x"}}, "/dead_letters/receives_max"),
        ({"dead_letters": {"queue": "x", "receives_max": 3}}, "/dead_letters/queue"),
        ({"backoff": {"kind": "list"}}, "/backoff/delays_seconds"),
        ({"backoff": {"initial_seconds": 43201}}, "/backoff/initial_seconds"),
        ({"backoff": {"multiplier": 0.5}}, "/backoff/multiplier"),
        ({"backoff": {"kind": "random"}}, "/backoff/kind"),
        ({"paused": "yes"}, "/paused"),
        ({"redrive_allow": {"permission": "some"}}, "/redrive_allow/permission"),
        ({"tags": {"a": 1}}, "/tags/a"),
        ({"tags": {"": "1"}}, "/tags/"),
        ({"tags": {"a": "\0"}}, "/tags/a"),
        ({"tags": {f"t{n}": "" for n in range(51)}}, "/tags"),
        ([], ""),
    ],
)
def test_invalid_configuration_is_rejected_with_pointer(client, name, body, pointer):
    answer = client.put(f"/v1/queues/{name}", json=body)

    assert answer.status_code == 422
    assert answer.json()["code"] == "validation_failed"
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"messages_max": 2**63}, ["/messages_max"]),
        ({"in_flight_max": 0, "bytes_max": 2**63}, ["/in_flight_max", "/bytes_max"]),
        ({"group_weights": [{"match": "a*", "weight": 2}] * 101}, ["/group_weights"]),
    ],
)
def test_invalid_change_is_rejected_with_pointer(client, queue, body, pointers):
    """Errors that only the whole configuration shows were answered 500."""
    answer = client.patch(queue, json=body)

    assert answer.status_code == 422, answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == pointers


def test_every_error_of_configuration_is_listed(client, name):
    answer = client.put(f"/v1/queues/{name}", json={"delay_seconds": -1, "colour": "red"})

    faults = {fault["pointer"]: fault["code"] for fault in answer.json()["errors"]}
    assert faults.keys() == {"/delay_seconds", "/colour"}
    assert faults["/colour"] == "unknown_field"


def test_invalid_patch_is_rejected_with_pointer(client, queue):
    answer = client.patch(queue, json={"colour": "red"})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/colour"


@pytest.mark.parametrize("bad", ["a" * 81, "a b", "größe", "a:b"])
def test_invalid_name_is_rejected(client, bad):
    answer = client.put(f"/v1/queues/{bad}")

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("good", ["a" * 80, "A-z_0.9", "orders.fifo"])
def test_valid_name_is_accepted(client, good):
    assert client.put(f"/v1/queues/{good}").status_code in (200, 201)


def test_idle_expiry_is_set_changed_and_removed(client, name):
    path = f"/v1/queues/{name}"
    created = client.put(path, json={"expires_after_idle_seconds": 90.5})
    changed = client.patch(path, json={"expires_after_idle_seconds": 60})
    short = client.patch(path, json={"expires_after_idle_seconds": 59})
    removed = client.patch(path, json={"expires_after_idle_seconds": None})

    answers = [created, changed, removed]
    values = [answer.json()["expires_after_idle_seconds"] for answer in answers]
    assert values == [90.5, 60, None]
    assert short.json()["errors"][0]["pointer"] == "/expires_after_idle_seconds"
