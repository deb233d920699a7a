"""Policies of a queue over HTTP: dead-letter queues, moves, limits, backoff, pause."""

import time
from typing import Any

import httpx
import pytest


@pytest.fixture
def dying(client, name) -> tuple[str, str]:
    """A queue whose messages may be received once, and its dead-letter queue."""
    dead, work = f"/v1/queues/{name}-dead", f"/v1/queues/{name}-work"
    assert client.put(dead).status_code == 201
    target = {"queue": f"{name}-dead", "receives_max": 1}
    made = client.put(work, json={"attempts_max": None, "dead_letters": target})
    assert (made.status_code, made.json()["dead_letters"]) == (201, {**target, "topic": None})
    return work, dead


def receive(client: httpx.Client, queue: str, **asked: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{queue}/receive", json={"messages_max": 10, **asked})
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


def dies(client: httpx.Client, work: str, *bodies: str) -> None:
    client.post(f"{work}/messages", json={"messages": [{"body": body} for body in bodies]})
    messages = receive(client, work)
    verdicts = [
        {"receipt_handle": message["receipt_handle"], "action": "release"} for message in messages
    ]
    client.post(f"{work}/settle", json={"settlements": verdicts})
    assert receive(client, work) == []


def moved(client: httpx.Client, location: str) -> dict[str, Any]:
    for _ in range(200):
        move: dict[str, Any] = client.get(location).json()
        if move["state"] not in ("running", "cancelling"):
            return move
        time.sleep(0.02)
    raise AssertionError(f"the move does not end: {move}")


def test_dead_lettered_message_records_its_source(client, name, dying):
    work, dead = dying
    dies(client, work, "poison")

    [message] = receive(client, dead)

    assert message["body"] == "poison"
    assert message["dead_letter_source"] == f"{name}-work"
    assert message["receive_count"] == 2


@pytest.mark.parametrize("action", ["nack", "release"])
def test_dead_letter_shows_why_it_was_dead_lettered(client, name, dying, action):
    work, dead = dying
    client.post(f"{work}/messages", json={"body": "poison", "headers": {"k": "v"}})
    [message] = receive(client, work)
    reason = {"reason": "card stolen"} if action == "nack" else {}
    verdict = {"receipt_handle": message["receipt_handle"], "action": action, **reason}
    client.post(f"{work}/settle", json={"settlements": [verdict]})
    receive(client, work)

    [browsed] = client.get(f"{dead}/messages").json()["items"]
    shown = client.get(f"{dead}/messages/{browsed['offset']}").json()
    [received] = receive(client, dead)

    origin = received["dead_letter"]
    died_at = origin.pop("died_at")
    assert origin.pop("last_failure_reason", "") == reason.get("reason", "")
    assert origin == {
        "source": f"queue:{name}-work",
        "reason": reason.get("reason", "received 1 times"),
        "failures": 1 if reason else 0,
        "crash_count": 0,
    }
    assert browsed["dead_letter"]["died_at"] == shown["dead_letter"]["died_at"] == died_at
    assert shown["dead_letter_source"] == received["dead_letter_source"] == f"{name}-work"
    assert received["headers"] == {"k": "v"}  # can be sent again as they are


def test_move_returns_dead_letters(client, dying):
    work, dead = dying
    dies(client, work, "a", "b")

    started = client.post(f"{dead}/moves")
    ended = moved(client, started.headers["location"])
    listed = client.get(f"{dead}/moves").json()["items"]

    assert (started.status_code, started.json()["state"]) == (202, "running")
    assert (ended["state"], ended["moved"]) == ("completed", 2)
    assert listed == [ended]
    assert [message["body"] for message in receive(client, work)] == ["a", "b"]


def test_move_is_cancelled_by_changing_its_state(client, dying):
    work, dead = dying
    dies(client, work, "a", "b", "c")
    location = client.post(f"{dead}/moves", json={"per_second": 1}).headers["location"]

    refused = client.patch(location, json={"state": "completed"})
    cancelled = client.patch(location, json={"state": "cancelled"})
    ended = moved(client, location)

    assert refused.status_code == 422
    assert cancelled.json()["state"] == "cancelling"
    assert (ended["state"], ended["moved"] < 3) == ("cancelled", True)


def test_move_requires_dead_letter_queue(client, dying):
    work, dead = dying

    not_dead = client.post(f"{work}/moves")
    unknown = client.get(f"{dead}/moves/nothing")
    of_another = client.get(client.post(f"{dead}/moves").headers["location"].replace(dead, work))

    assert (not_dead.status_code, not_dead.json()["code"]) == (409, "move_refused")
    assert not_dead.json()["reason"] == "not_a_dead_letter_queue"
    assert (unknown.status_code, unknown.json()["code"]) == (404, "move_not_found")
    assert of_another.status_code == 404


def test_repeated_attempt_id_returns_same_deliveries(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"type": "fifo"})
    client.post(f"{queue}/messages", json={"body": "one", "group": "a"})

    first = receive(client, queue, attempt_id="try-1")
    again = receive(client, queue, attempt_id="try-1")

    assert [one["receipt_handle"] for one in again] == [one["receipt_handle"] for one in first]


def test_receive_waits_for_default_wait_of_queue(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"receive_wait_seconds": 0.2})

    started = time.monotonic()
    empty = receive(client, queue)
    waited = time.monotonic() - started
    at_once = receive(client, queue, wait_seconds=0)

    assert (empty, at_once) == ([], [])
    assert waited >= 0.2


def test_in_flight_limit_is_reported(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"in_flight_max": 1})
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})
    assert len(receive(client, queue)) == 1

    refused = client.post(f"{queue}/receive")

    assert (refused.status_code, refused.json()["code"]) == (429, "in_flight_limit_reached")
    assert refused.json()["retryable"] is True


def test_ttl_is_accepted_in_every_form(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"ttl_seconds": 3600})
    client.post(f"{queue}/messages", json={"body": "short", "ttl_seconds": 0.001})
    client.post(f"{queue}/messages", content=b"raw", headers={"millstream-ttl-seconds": "0.001"})
    client.post(f"{queue}/messages", content=b"queue's")
    time.sleep(0.05)

    left = receive(client, queue)

    assert len(left) == 1
    assert client.get(f"{queue}/stats").json()["expired"] == 2


def test_dead_letter_sources_can_be_restricted(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"dead_letters": None})

    changed = client.patch(queue, json={"redrive_allow": {"permission": "deny_all"}})
    back = client.patch(queue, json={"redrive_allow": None})

    assert changed.json()["redrive_allow"] == {"permission": "deny_all", "sources": []}
    assert back.json()["redrive_allow"] == {"permission": "allow_all", "sources": []}


def test_failure_is_delayed_by_backoff(client, name):
    queue = f"/v1/queues/{name}"
    policy = {"kind": "fixed", "initial_seconds": 60, "jitter": "none"}
    made = client.put(queue, json={"backoff": policy})
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})
    a, b = receive(client, queue)

    verdicts = [
        {"receipt_handle": a["receipt_handle"], "action": "nack"},
        {"receipt_handle": b["receipt_handle"], "action": "nack", "delay_seconds": 0},
    ]
    settled = client.post(f"{queue}/settle", json={"settlements": verdicts}).json()["results"]

    assert made.json()["backoff"]["initial_seconds"] == 60
    assert settled[0]["visible_at"] > settled[1]["visible_at"]
    assert [message["body"] for message in receive(client, queue)] == ["b"]


def test_paused_queue_delivers_nothing_until_resumed(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"paused": True})
    client.post(f"{queue}/messages", json={"body": "a"})
    paused = receive(client, queue)

    client.patch(queue, json={"paused": False})

    assert paused == []
    assert [message["body"] for message in receive(client, queue)] == ["a"]


def test_messages_are_browsed_by_state(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    bodies = [{"body": "a"}, {"body": "b"}, {"body": "c", "delay_seconds": 60}]
    client.post(f"{queue}/messages", json={"messages": bodies})
    receive(client, queue, messages_max=1)

    shown = {
        state: [
            one["body"] for one in client.get(f"{queue}/messages?state={state}").json()["items"]
        ]
        for state in ("ready", "delayed", "in_flight")
    }
    first = client.get(f"{queue}/messages?limit=2").json()
    rest = client.get(f"{queue}/messages?limit=2&cursor={first['next_cursor']}").json()
    other = client.get(f"{queue}/messages?state=ready&cursor={first['next_cursor']}")

    assert shown == {"ready": ["b"], "delayed": ["c"], "in_flight": ["a"]}
    assert [one["body"] for one in [*first["items"], *rest["items"]]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None
    assert (other.status_code, other.json()["code"]) == (400, "invalid_cursor")
    assert client.get(f"{queue}/messages?state=gone").status_code == 422


FILTERED = [
    ({"header": "source:web"}, ["ann", "bob"]),
    ({"header": ["source:web", "zone:eu"]}, ["bob"]),
    ({"body": "/customer/id=7"}, ["ann"]),
    ({"body": '/customer/id="7"'}, ["bob"]),
    ({"body": "/name=eve"}, ["eve"]),
    ({"body": "/customer"}, ["ann", "bob"]),
    ({"body": ["/customer", "/name=bob"]}, ["bob"]),
    ({"text": "ev"}, ["eve"]),
    ({"text": "web", "state": "ready"}, ["ann", "bob"]),
    ({"state": "delayed"}, []),
    ({"from": "2001-01-01T00:00:00Z"}, ["ann", "bob", "eve"]),
    ({"to": "2001-01-01T00:00:00Z"}, []),
    ({"group": ["vip", "none"]}, []),
]
"""Filters, and the names in the messages that each selects."""


@pytest.fixture
def people(client, name) -> str:
    queue = f"/v1/queues/{name}"
    client.put(queue)
    messages = [
        {"body": {"name": "ann", "customer": {"id": 7}}, "headers": {"source": "web"}},
        {
            "body": {"name": "bob", "customer": {"id": "7"}},
            "headers": {"source": "web", "zone": "eu"},
        },
        {"body": {"name": "eve"}},
    ]
    client.post(f"{queue}/messages", json={"messages": messages})
    return queue


@pytest.mark.parametrize(("conditions", "names"), FILTERED)
def test_messages_and_dead_letters_are_filtered_alike(client, people, conditions, names):
    browsed = client.get(f"{people}/messages", params=conditions).json()["items"]
    received = receive(client, people, messages_max=10)
    rejected = [
        {"receipt_handle": one["receipt_handle"], "action": "reject", "reason": "late"}
        for one in received
    ]
    client.post(f"{people}/settle", json={"settlements": rejected})
    conditions = {name: value for name, value in conditions.items() if name != "state"}
    letters = client.get(f"{people}/dead-letters", params={**conditions, "reason": "late"}).json()[
        "items"
    ]
    others = client.get(f"{people}/dead-letters", params={"reason": "other"}).json()["items"]

    assert [one["body"]["name"] for one in browsed] == names
    assert not conditions or [one["body"]["name"] for one in letters] == names
    assert others == []


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("header=source", "/header/0"),
        ("header=a:1&header=a:2", "/header"),
        ("body=customer=7", "/body/0"),
        ("body=/a~2", "/filter/body/0/path"),
        ("from=yesterday", "/from"),
        ("headers=a:1", "/headers"),
    ],
)
def test_malformed_filter_is_rejected(client, people, query, pointer):
    answer = client.get(f"{people}/messages?{query}")

    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_cursor_of_another_filter_is_rejected(client, people):
    page = client.get(f"{people}/messages?text=a&limit=1").json()

    rest = client.get(f"{people}/messages?text=a&limit=1&cursor={page['next_cursor']}")
    other = client.get(f"{people}/messages?text=b&limit=1&cursor={page['next_cursor']}")

    assert [one["body"]["name"] for one in rest.json()["items"]] == ["bob"]
    assert (other.status_code, other.json()["code"]) == (400, "invalid_cursor")


def test_single_message_is_shown_and_dropped(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    sent = client.post(f"{queue}/messages", json={"body": {"n": 1}}).json()

    shown = client.get(f"{queue}/messages/{sent['id']}")
    dropped = client.delete(f"{queue}/messages/{sent['id']}")
    gone = client.get(f"{queue}/messages/{sent['offset']}")

    assert (shown.status_code, shown.json()["body"], shown.json()["state"]) == (
        200,
        {"n": 1},
        "ready",
    )
    assert dropped.status_code == 204
    assert (gone.status_code, gone.json()["code"]) == (404, "message_not_found")


def test_priority_is_accepted_in_every_form(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    client.post(f"{queue}/messages", json={"body": "plain"})
    client.post(f"{queue}/messages", json={"body": "high", "priority": 9})
    client.post(f"{queue}/messages", content=b"higher", headers={"millstream-priority": "8"})
    refused = client.post(f"{queue}/messages", content=b"x", headers={"millstream-priority": "x"})
    too_high = client.post(f"{queue}/messages", json={"body": "x", "priority": 10})

    assert [message.get("body", "") for message in receive(client, queue)] == [
        "high",
        "higher",
        "plain",
    ]
    assert (refused.status_code, too_high.status_code) == (422, 422)


def test_dead_letters_are_redriven_by_reason(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})
    verdicts = [
        {"receipt_handle": one["receipt_handle"], "action": "reject", "reason": one["body"]}
        for one in receive(client, queue)
    ]
    client.post(f"{queue}/settle", json={"settlements": verdicts})

    reasons = client.get(f"{queue}/dead-letters/reasons").json()["items"]
    body = client.post(f"{queue}/redrives", json={"reason": "b"}).json()
    wrong = client.post(f"{queue}/redrives", json={"reasons": ["b"]})

    assert [(one["reason"], one["count"]) for one in reasons] == [("a", 1), ("b", 1)]
    assert body == {"redriven": 1}
    assert wrong.status_code == 422
    assert [one["body"] for one in receive(client, queue)] == ["b"]


def test_waiting_message_is_changed_by_id(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    sent = client.post(f"{queue}/messages", json={"body": "a", "delay_seconds": 3600}).json()

    changed = client.patch(f"{queue}/messages/{sent['id']}", json={"delay_seconds": 0})
    [message] = receive(client, queue)
    too_late = client.patch(f"{queue}/messages/{sent['id']}", json={"priority": 1})
    wrong = client.patch(f"{queue}/messages/{sent['id']}", json={"group": "b"})

    assert (changed.status_code, changed.json()["state"]) == (200, "ready")
    assert message["body"] == "a"
    assert (too_late.status_code, too_late.json()["code"]) == (409, "message_in_flight")
    assert wrong.status_code == 422


def test_parked_group_is_listed_fixed_and_resumed(client, name):
    queue = f"/v1/queues/{name}.fifo"
    client.put(queue, json={"type": "fifo", "attempts_max": 1, "on_poison": "park_group"})
    batch = [{"body": {"n": 1}, "group": "a/b c"}, {"body": "two", "group": "a/b c"}]
    client.post(f"{queue}/messages", json={"messages": batch})
    [message] = receive(client, queue, messages_max=1)
    verdict = {"receipt_handle": message["receipt_handle"], "action": "nack", "reason": "boom"}
    client.post(f"{queue}/settle", json={"settlements": [verdict]})

    page = client.get(f"{queue}/groups", params={"state": "parked"}).json()
    mended = client.patch(f"{queue}/messages/{message['id']}", json={"body": "one"})
    resumed = client.delete(f"{queue}/groups/a%2Fb%20c/pause")

    [group] = page["items"]
    assert (group["group"], group["reason"], group["messages"]) == ("a/b c", "boom", 2)
    assert (mended.status_code, mended.json()["body"]) == (200, "one")
    assert resumed.json() == {"resumed": 2}
    assert [each_message["body"] for each_message in receive(client, queue)] == ["one", "two"]


def test_group_is_paused_manually(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    client.post(f"{queue}/messages", json={"messages": [{"body": "1", "group": "a"}]})

    paused = client.put(f"{queue}/groups/a/pause")
    meanwhile = receive(client, queue)
    client.delete(f"{queue}/groups/a/pause")
    not_parked = client.delete(f"{queue}/groups/a/pause")

    assert paused.status_code == 204
    assert meanwhile == []
    assert (not_parked.status_code, not_parked.json()["code"]) == (404, "group_not_parked")
    assert len(receive(client, queue)) == 1


def test_parked_groups_are_paged(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    for group in "cab":
        client.put(f"{queue}/groups/{group}/pause", json={"reason": "x"})

    first = client.get(f"{queue}/groups", params={"limit": 2}).json()
    second = client.get(f"{queue}/groups", params={"cursor": first["next_cursor"]}).json()

    assert [group["group"] for group in first["items"]] == ["a", "b"]
    assert [group["group"] for group in second["items"]] == ["c"]
    assert second["next_cursor"] is None


def test_full_queue_is_reported_as_retryable(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"messages_max": 1})
    client.post(f"{queue}/messages", json={"body": "1"})

    refused = client.post(f"{queue}/messages", json={"body": "2"})

    assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
    assert refused.json()["retryable"] is True
    assert refused.headers["retry-after"]
    client.patch(queue, json={"overflow": "drop_oldest"})
    assert client.post(f"{queue}/messages", json={"body": "2"}).status_code == 201
    assert [message["body"] for message in receive(client, queue)] == ["2"]


def test_dead_letter_is_shown_and_replaced_by_id(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    client.post(f"{queue}/messages", json={"body": "{"})
    [message] = receive(client, queue)
    verdict = {"receipt_handle": message["receipt_handle"], "action": "reject", "reason": "?"}
    client.post(f"{queue}/settle", json={"settlements": [verdict]})

    shown = client.get(f"{queue}/messages/{message['id']}").json()
    mended = client.patch(f"{queue}/messages/{message['id']}", json={"body": {"ok": True}}).json()

    assert (shown["body"], shown["reason"]) == ("{", "?")
    assert (mended["body"], mended["content_type"]) == ({"ok": True}, "application/json")


def test_in_flight_message_cannot_be_changed(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    client.post(f"{queue}/messages", json={"body": "1"})
    [message] = receive(client, queue)

    refused = client.patch(f"{queue}/messages/{message['id']}", json={"body_base64": "eA=="})

    assert (refused.status_code, refused.json()["code"]) == (409, "message_in_flight")


def test_rate_limited_redrive_becomes_move(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue)
    client.post(f"{queue}/messages", json={"messages": [{"body": 1}, {"body": 2}]})
    messages = receive(client, queue)
    verdicts = [
        {"receipt_handle": message["receipt_handle"], "action": "reject"} for message in messages
    ]
    client.post(f"{queue}/settle", json={"settlements": verdicts})

    begun = client.post(f"{queue}/redrives", json={"per_second": 500})
    over = moved(client, begun.headers["location"])

    assert begun.status_code == 202
    assert (over["state"], over["moved"], over["redrive"]) == ("completed", 2, True)
    assert len(receive(client, queue)) == 2


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"messages_max": 0}, "/messages_max"),
        ({"bytes_max": 0}, "/bytes_max"),
        ({"overflow": "explode"}, "/overflow"),
        ({"on_poison": "park_group"}, "/on_poison"),
        ({"group_weights": [{"match": "", "weight": 1}]}, "/group_weights/0/match"),
        ({"group_weights": [{"match": "a", "weight": 0}]}, "/group_weights/0/weight"),
        ({"type": "fifo", "group_weights": [{"match": "a", "weight": 1}]}, "/group_weights"),
    ],
)
def test_invalid_policy_is_rejected_with_pointer(client, name, config, pointer):
    answer = client.put(f"/v1/queues/{name}", json=config)

    assert answer.status_code == 422
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


def test_stream_view_is_read_as_stream(client, name):
    queue, stream = f"/v1/queues/{name}", f"/v1/streams/{name}"
    client.put(queue, json={"stream_view": True})
    client.post(f"{queue}/messages", json={"messages": [{"body": {"n": 1}, "group": "a"}]})
    [message] = receive(client, queue)
    verdict = {"receipt_handle": message["receipt_handle"], "action": "ack"}
    client.post(f"{queue}/settle", json={"settlements": [verdict]})

    whole = client.get(f"{stream}/records").json()["records"]
    shard = client.get(f"{stream}/shards/0/records").json()["records"]
    refused = client.post(f"{stream}/records", json={"data": "x"})

    for [record] in (whole, shard):
        assert (record["data"], record["key"], record["offset"]) == ({"n": 1}, "a", 0)
    assert client.get(stream).status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (409, "stream_read_only")


def test_dead_letters_are_published_to_topic(client, name):
    """The subject is the queue, and headers state the reason."""
    client.put(f"/v1/topics/{name}", json={}).raise_for_status()
    policy = {"topic": name, "receives_max": 1}
    created = client.put(f"/v1/queues/{name}", json={"dead_letters": policy, "attempts_max": None})
    assert created.json()["dead_letters"] == {"queue": None, **policy}
    client.post(f"/v1/queues/{name}/messages", json={"body": "x"}).raise_for_status()
    [received] = client.post(f"/v1/queues/{name}/receive", json={}).json()["messages"]
    nack = {
        "receipt_handle": received["receipt_handle"],
        "action": "nack",
        "delay_seconds": 0,
        "reason": "declined",
    }
    client.post(f"/v1/queues/{name}/settle", json={"settlements": [nack]}).raise_for_status()

    assert client.post(f"/v1/queues/{name}/receive", json={}).json()["messages"] == []

    [letter] = client.get(f"/v1/streams/topic:{name}/records").json()["records"]
    assert letter["data"] == "x"
    assert letter["headers"]["dead-letter-reason"] == "declined"


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"topic": "none"}, "/dead_letters/topic"),
        ({"topic": "../x"}, "/dead_letters/topic"),
        ({"queue": "../x"}, "/dead_letters/queue"),
        ({}, "/dead_letters"),
        ({"topic": "a", "queue": "b"}, "/dead_letters"),
    ],
)
def test_unsuitable_dead_letter_target_is_refused(client, name, target, pointer):
    policy = {**target, "receives_max": 1}

    refused = client.put(f"/v1/queues/{name}", json={"dead_letters": policy})

    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)
