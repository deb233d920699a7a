"""A queue with partitions is one queue over HTTP, through every operation."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import pytest

PARTITION_OFFSETS = 2**46
PARTITIONS = 4

_numbers = count(1)


@pytest.fixture
def queue(client: httpx.Client) -> str:
    """The path of a new standard queue with partitions."""
    path = f"/v1/queues/divided-{next(_numbers)}"
    config = {"partitions": PARTITIONS, "stream_view": True, "history": True}
    client.put(path, json=config).raise_for_status()
    return path


@pytest.fixture
def fifo_queue(client: httpx.Client) -> str:
    """The path of a new FIFO queue with partitions."""
    path = f"/v1/queues/divided-{next(_numbers)}.fifo"
    config = {"type": "fifo", "partitions": PARTITIONS, "dedup_scope": "group"}
    client.put(path, json=config).raise_for_status()
    return path


def send_each(client: httpx.Client, queue: str, bodies: range, **options: Any) -> list[Any]:
    """Send each message in a call of its own, so that they are in all partitions."""
    sent = []
    for body in bodies:
        answer = client.post(f"{queue}/messages", json={"body": body, **options})
        sent.append(answer.raise_for_status().json())
    return sent


def receive(client: httpx.Client, queue: str, messages_max: int = 10) -> list[Any]:
    answer = client.post(f"{queue}/receive", json={"messages_max": messages_max})
    return list(answer.raise_for_status().json()["messages"])


def settle(client: httpx.Client, queue: str, messages: list[Any], **settlement: Any) -> list[Any]:
    settlements = [{"receipt_handle": one["receipt_handle"], **settlement} for one in messages]
    answer = client.post(f"{queue}/settle", json={"settlements": settlements})
    return list(answer.raise_for_status().json()["results"])


def receive_all(client: httpx.Client, queue: str) -> list[Any]:
    """Receive until nothing is ready, and leave all in flight."""
    messages: list[Any] = []
    while received := receive(client, queue):
        messages += received
    return messages


def listed(client: httpx.Client, path: str, limit: int = 3) -> list[Any]:
    """Return all items of a list, by pages."""
    items: list[Any] = []
    cursor = None
    while True:
        query = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        page = client.get(path, params=query).raise_for_status().json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


def partitions_of(messages: list[Any]) -> set[int]:
    return {message["offset"] // PARTITION_OFFSETS for message in messages}


def is_waiting(client: httpx.Client, queue: str) -> bool:
    """Return whether a consumer waits for messages."""
    consumers = client.get(f"{queue}/consumers").json()["items"]
    return any(consumer["waiting"] for consumer in consumers)


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    return answer.status_code, problem["errors"][0]["pointer"], problem["errors"][0]["code"]


# Configuration


@pytest.mark.parametrize("partitions", [0, 65, 1.5])
def test_number_out_of_range_is_rejected(client, queue, partitions):
    answer = client.put(f"{queue}-other", json={"partitions": partitions})

    assert refusal(answer)[:2] == (422, "/partitions")


def test_fifo_queue_requires_scope_of_groups(client, queue):
    answer = client.put(f"{queue}.fifo", json={"type": "fifo", "partitions": 2})

    assert refusal(answer) == (422, "/dedup_scope", "required")


def test_put_without_number_keeps_it(client, queue):
    put = client.put(queue, json={"attempts_max": 3}).json()

    assert put["partitions"] == PARTITIONS
    assert "/partitions" not in [change["pointer"] for change in put["changes"]]
    assert client.patch(queue, json={"partitions": None}).json()["partitions"] == PARTITIONS


def test_number_of_standard_queue_changes(client, queue):
    sent = send_each(client, queue, range(8))

    fewer = client.patch(queue, json={"partitions": 2}).json()
    put = client.put(queue, json={"partitions": 3}).json()

    assert (fewer["partitions"], put["partitions"]) == (2, 3)
    assert {"pointer": "/partitions", "before": 2, "after": 3} in put["changes"]
    assert len(receive_all(client, queue)) == len(sent)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_number_of_fifo_queue_is_immutable(client, fifo_queue, method):
    config = {"dedup_scope": "group", "partitions": 2}
    if method == "PUT":
        config["type"] = "fifo"

    answer = client.request(method, fifo_queue, json=config)

    assert refusal(answer) == (422, "/partitions", "immutable")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_fifo_queue_keeps_scope_of_groups(client, fifo_queue, method):
    config = {"dedup_scope": "queue"} | ({"type": "fifo"} if method == "PUT" else {})

    answer = client.request(method, fifo_queue, json=config)

    assert refusal(answer) == (422, "/dedup_scope", "required")


# Messages


def test_messages_are_received_and_settled(client, queue):
    sent = send_each(client, queue, range(12))

    received = receive_all(client, queue)
    acknowledged = settle(client, queue, received[:8], action="ack")
    released = settle(client, queue, received[8:], action="release")
    again = receive_all(client, queue)

    assert partitions_of(sent) == set(range(PARTITIONS))
    assert {one["id"]: one["offset"] for one in received} == {
        one["id"]: one["offset"] for one in sent
    }
    assert all("error" not in one or one["error"] is None for one in acknowledged + released)
    assert sorted(one["body"] for one in again) == sorted(one["body"] for one in received[8:])
    stats = client.get(f"{queue}/stats").json()
    assert (stats["sent"], stats["acknowledged"], stats["in_flight"]) == (12, 8, 4)


def test_batch_of_many_groups_is_answered_in_order(client, fifo_queue):
    messages = [
        {"body": number, "group": f"g{number % 8}", "dedup_id": str(number)} for number in range(40)
    ]

    sent = client.post(f"{fifo_queue}/messages", json={"messages": messages}).json()["messages"]
    again = client.post(f"{fifo_queue}/messages", json={"messages": messages}).json()["messages"]

    assert len(partitions_of(sent)) > 1
    assert [one["id"] for one in again] == [one["id"] for one in sent]
    assert all(one["duplicate"] for one in again)
    for number, one in enumerate(sent):
        assert client.get(f"{fifo_queue}/messages/{one['id']}").json()["body"] == number
    received: list[Any] = []
    while taken := receive(client, fifo_queue, 100):
        received += taken
        settle(client, fifo_queue, taken, action="ack")
    for group in range(8):
        bodies = [one["body"] for one in received if one["group"] == f"g{group}"]
        assert bodies == list(range(group, 40, 8))


def test_pages_have_each_message_once(client, queue):
    sent = send_each(client, queue, range(14))

    items = listed(client, f"{queue}/messages")

    assert [one["offset"] for one in items] == sorted(one["offset"] for one in sent)
    assert len(partitions_of(items)) == PARTITIONS


def test_message_is_found_by_id_and_offset(client, queue):
    sent = send_each(client, queue, range(8))

    for number, one in enumerate(sent):
        for reference in (one["id"], one["offset"]):
            shown = client.get(f"{queue}/messages/{reference}").json()
            history = client.get(f"{queue}/messages/{reference}/history").json()
            assert (shown["body"], shown["offset"]) == (number, one["offset"])
            assert [event["type"] for event in history["events"]] == ["sent"]
        changed = client.patch(f"{queue}/messages/{one['id']}", json={"delay_seconds": 60})
        assert (changed.json()["state"], changed.json()["offset"]) == ("delayed", one["offset"])
        assert client.delete(f"{queue}/messages/{one['offset']}").status_code == 204
    missing = client.get(f"{queue}/messages/{PARTITIONS * PARTITION_OFFSETS}")
    assert (missing.status_code, missing.json()["code"]) == (404, "message_not_found")


def test_dead_letters_are_listed_and_redriven(client, queue):
    send_each(client, queue, range(12))
    settle(client, queue, receive_all(client, queue), action="reject", reason="bad")

    letters = listed(client, f"{queue}/dead-letters")
    reasons = client.get(f"{queue}/dead-letters/reasons").json()["items"]
    chosen = [letters[0]["id"], letters[-1]["offset"]]
    redriven = [
        client.post(f"{queue}/redrives", json=body).json()["redriven"]
        for body in ({"messages": [str(one) for one in chosen]}, {"messages_max": 4}, {})
    ]

    assert (len(letters), len(partitions_of(letters))) == (12, PARTITIONS)
    assert [(one["reason"], one["count"]) for one in reasons] == [("bad", 12)]
    assert redriven == [2, 4, 6]
    assert len(receive_all(client, queue)) == 12


def test_groups_are_parked_and_resumed(client, fifo_queue):
    for number in range(6):
        body = {"body": 1, "group": f"g{number}", "dedup_id": "1"}
        client.post(f"{fifo_queue}/messages", json=body).raise_for_status()
        client.put(f"{fifo_queue}/groups/g{number}/pause", json={}).raise_for_status()

    parked = listed(client, f"{fifo_queue}/groups", limit=2)
    before = receive(client, fifo_queue)
    for number in range(6):
        client.delete(f"{fifo_queue}/groups/g{number}/pause").raise_for_status()

    assert [one["group"] for one in parked] == [f"g{number}" for number in range(6)]
    assert before == []
    assert len(receive_all(client, fifo_queue)) == 6


def test_purge_and_pause_reach_every_partition(client, queue):
    send_each(client, queue, range(8))

    client.put(f"{queue}/pause").raise_for_status()
    paused = receive(client, queue)
    client.delete(f"{queue}/pause").raise_for_status()
    purged = client.post(f"{queue}/purges").json()

    assert (paused, purged) == ([], {"purged": 8})
    assert receive(client, queue) == []


def test_consumer_is_listed_once(client, queue):
    send_each(client, queue, range(8))
    receive_all(client, queue)

    [consumer] = client.get(f"{queue}/consumers").json()["items"]
    [shown, *_] = listed(client, f"{queue}/messages")

    assert consumer["in_flight"] == 8
    assert shown["last_received_by"]["consumer"] == consumer["id"]


def test_stream_view_has_shard_for_each_partition(client, queue):
    sent = send_each(client, queue, range(8))
    stream = queue.replace("/queues/", "/streams/")

    shards = client.get(f"{stream}/shards").json()["items"]
    bodies = [
        record["data"]
        for shard in range(PARTITIONS)
        for record in client.get(f"{stream}/shards/{shard}/records?offset=0").json()["records"]
    ]

    assert len(shards) == PARTITIONS
    assert sorted(bodies) == sorted(range(len(sent)))


def test_moves_go_through_every_partition(client, queue):
    name = queue.rpartition("/")[2]
    source = f"{queue}-source"
    dead_letters = {"queue": name, "receives_max": 3}
    client.put(source, json={"partitions": 2, "dead_letters": dead_letters}).raise_for_status()
    send_each(client, queue, range(8))

    client.post(
        f"{queue}/moves", json={"destination": source.rpartition("/")[2]}
    ).raise_for_status()
    messages: list[Any] = []
    while len(messages) < 8:
        answer = client.post(f"{source}/receive", json={"messages_max": 10, "wait_seconds": 10})
        taken = answer.json()["messages"]
        assert taken, "the move has stopped"
        messages += taken

    assert sorted(one["body"] for one in messages) == list(range(8))
    assert len(partitions_of(messages)) == 2


def test_long_poll_is_woken_by_each_partition(client, queue, service_url):
    """Each wait begins before the message is sent, and ends well before its time is over."""
    with httpx.Client(base_url=service_url, timeout=30) as other, ThreadPoolExecutor(1) as pool:
        for number in range(PARTITIONS):
            ask = {"messages_max": 1, "wait_seconds": 20}
            waiting = pool.submit(other.post, f"{queue}/receive", json=ask)
            while not is_waiting(client, queue):
                continue
            send_each(client, queue, range(number, number + 1))
            [message] = waiting.result(15).json()["messages"]
            assert message["body"] == number
            settle(client, queue, [message], action="ack")
