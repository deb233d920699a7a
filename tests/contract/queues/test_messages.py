"""Messages over HTTP: every form of sending and receiving."""

import base64
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from storage.domain.limits import NACK_DELAY_MS_MAX, SECOND_MS
from tests.former_names import current_names

MSGPACK = {"content-type": "application/msgpack"}
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def receive(client: httpx.Client, queue: str, **asked: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{queue}/receive", json=asked)
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


def receive_one(client: httpx.Client, queue: str) -> dict[str, Any]:
    [message] = receive(client, queue)
    return message


def test_single_message_gets_single_result(client, queue):
    answer = client.post(f"{queue}/messages", json={"body": "hello"})

    assert answer.status_code == 201
    assert answer.json().keys() == {"id", "offset", "duplicate"}
    assert answer.json()["offset"] == 0


def test_batch_is_answered_in_order(client, queue):
    answer = client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})

    assert answer.status_code == 201
    assert [sent["offset"] for sent in answer.json()["messages"]] == [0, 1]


def test_batch_of_1000_is_accepted(client, queue):
    answer = client.post(f"{queue}/messages", json={"messages": [{"body": "a"}] * 1000})

    assert len(answer.json()["messages"]) == 1000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("text", "text"),
        ("", None),
        ("größer \u0001 \U0001f600", "größer \u0001 \U0001f600"),
        ({"b": 1, "a": [1.5, None, True]}, {"b": 1, "a": [1.5, None, True]}),
        ([], []),
        (None, None),
        (0, 0),
        (12345678901234567890123, 12345678901234567890123),
    ],
)
def test_every_json_value_round_trips(client, queue, body, expected):
    sent = client.post(f"{queue}/messages", json={"body": body})
    if body == "":
        assert (sent.status_code, sent.json()["code"]) == (422, "validation_failed")
        assert "at least one byte" in sent.text
        return
    assert sent.status_code == 201

    assert receive_one(client, queue)["body"] == expected


def test_json_value_keeps_digits_and_loses_spaces(client, queue):
    client.post(
        f"{queue}/messages",
        content=b'{"body": { "a" : 1.10, "b" : [ 1e2 ] } }',
        headers={"content-type": "application/json"},
    )

    answer = client.post(f"{queue}/receive")

    assert b'"body":{"a":1.10,"b":[1e2]}' in answer.content
    assert answer.json()["messages"][0]["content_type"] == "application/json"


def test_binary_body_is_base64(client, queue):
    encoded = base64.b64encode(b"\x00\xff").decode()
    client.post(f"{queue}/messages", json={"body_base64": encoded})

    message = receive_one(client, queue)

    assert message["body_base64"] == encoded
    assert "body" not in message


def test_raw_body_becomes_message(client, queue):
    """`curl -d hello` labels every body as a form."""
    headers = {"content-type": "application/x-www-form-urlencoded"}

    answer = client.post(f"{queue}/messages", content=b"hello", headers=headers)

    assert answer.json().keys() == {"id", "offset", "duplicate"}
    message = receive_one(client, queue)
    assert message["body"] == "hello"
    assert "content_type" not in message


def test_raw_body_takes_options_from_headers(client, fifo_queue):
    client.post(
        f"{fifo_queue}/messages",
        content=b"<a/>",
        headers={
            "content-type": "text/xml; charset=utf-8",
            "millstream-group": "g1",
            "millstream-dedup-id": "d1",
            "millstream-header-source": "web",
        },
    )

    message = receive_one(client, fifo_queue)

    assert message["body"] == "<a/>"
    assert message["content_type"] == "text/xml; charset=utf-8"
    assert message["group"] == "g1"
    assert message["dedup_id"] == "d1"
    assert message["headers"] == {"source": "web"}


def test_binary_raw_body_is_returned_as_base64(client, queue):
    client.post(f"{queue}/messages", content=b"\xff\xfe")

    message = receive_one(client, queue)

    assert base64.b64decode(message["body_base64"]) == b"\xff\xfe"


def test_raw_message_can_be_delayed(client, queue):
    headers = {"millstream-delay-seconds": "900"}
    client.post(f"{queue}/messages", content=b"later", headers=headers)

    assert client.get(f"{queue}/stats").json()["delayed"] == 1


def test_lines_form_batch(client, queue):
    answer = client.post(
        f"{queue}/messages",
        content=b'{"body":"a"}\n\n{"body":{"b":1}}\n',
        headers={"content-type": "application/x-ndjson"},
    )

    assert len(answer.json()["messages"]) == 2


def test_messagepack_carries_bytes_both_ways(client, queue):
    packed = msgspec.msgpack.encode(
        {"messages": [{"body": b"\xff"}, {"body": "text"}, {"body": {"a": 1}}]}
    )
    sent = client.post(
        f"{queue}/messages", content=packed, headers={**MSGPACK, "accept": "application/msgpack"}
    )
    body = msgspec.msgpack.encode({"messages_max": 10})
    answer = client.post(
        f"{queue}/receive", content=body, headers={**MSGPACK, "accept": "application/msgpack"}
    )

    assert sent.headers["content-type"] == "application/msgpack"
    assert len(msgspec.msgpack.decode(sent.content)["messages"]) == 3
    received = msgspec.msgpack.decode(answer.content)["messages"]
    assert [message["body"] for message in received] == [b"\xff", b"text", b'{"a":1}']
    assert received[2]["content_type"] == "application/json"


def test_receive_can_return_lines(client, queue):
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})

    answer = client.post(
        f"{queue}/receive", json={"messages_max": 10}, headers={"accept": "application/x-ndjson"}
    )

    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    assert [line.get("body") for line in lines] == ["a", "b", None]
    assert lines[-1] == {"type": "end"}


def test_headers_round_trip(client, queue):
    client.post(f"{queue}/messages", json={"body": "a", "headers": {"source": "web", "ü": "ß"}})

    assert receive_one(client, queue)["headers"] == {"source": "web", "ü": "ß"}


def test_trace_context_of_request_is_kept_per_message(client, queue):
    client.post(
        f"{queue}/messages",
        json={"messages": [{"body": "a"}, {"body": "b", "headers": {"traceparent": "own"}}]},
        headers={"traceparent": TRACEPARENT, "tracestate": "a=1"},
    )

    first, second = receive(client, queue, messages_max=10)

    assert first["headers"] == {"traceparent": TRACEPARENT, "tracestate": "a=1"}
    assert second["headers"] == {"traceparent": "own"}


def test_malformed_trace_context_is_dropped(client, queue):
    client.post(f"{queue}/messages", json={"body": "a"}, headers={"traceparent": "nonsense"})

    assert "headers" not in receive_one(client, queue)


def test_unknown_message_field_is_rejected(client, queue):
    """A misspelled group, delay or deduplication id was dropped, with 201."""
    answer = client.post(f"{queue}/messages", json={"body": "a", "colour": "red"})

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/colour")
    assert client.get(f"{queue}/stats").json()["sent"] == 0


def test_repeat_with_same_idempotency_key_adds_nothing(client, queue):
    headers = {"idempotency-key": '"8e03"'}
    first = client.post(f"{queue}/messages", json={"body": "a"}, headers=headers)
    again = client.post(
        f"{queue}/messages", json={"body": "a"}, headers={"idempotency-key": "8e03"}
    )

    assert first.json()["duplicate"] is False
    assert again.json() == {**first.json(), "duplicate": True}


def test_idempotency_key_with_other_content_is_rejected(client, queue):
    headers = {"idempotency-key": "k"}
    client.post(f"{queue}/messages", json={"body": "a"}, headers=headers)

    answer = client.post(f"{queue}/messages", json={"body": "b"}, headers=headers)

    assert answer.status_code == 422
    assert answer.json()["code"] == "idempotency_key_reused"


def test_delivery_has_every_field(client, queue):
    client.post(f"{queue}/messages", json={"body": "a"})

    message = receive_one(client, queue)

    assert current_names(message) == {
        "id",
        "body",
        "receipt_handle",
        "offset",
        "sent_at",
        "first_received_at",
        "visible_at",
        "receive_count",
        "failures",
        "crash_count",
    }
    assert message["receive_count"] == 1
    assert message["visible_at"] > message["first_received_at"] >= message["sent_at"]
    assert message["sent_at"].endswith("Z")
    assert len(message["sent_at"]) == len("2026-01-31T12:00:00.000Z")


def test_receive_without_body_returns_one_message(client, queue):
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})

    answer = client.post(f"{queue}/receive")

    assert len(answer.json()["messages"]) == 1


def test_empty_queue_returns_empty_list(client, queue):
    assert receive(client, queue) == []


def test_long_poll_ends_after_its_wait(client, queue):
    started = time.monotonic()

    assert receive(client, queue, wait_seconds=0.3) == []

    assert time.monotonic() - started >= 0.3


def test_long_poll_gets_next_message(client, queue):
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(receive, client, queue, wait_seconds=20)
        time.sleep(0.2)
        started = time.monotonic()
        client.post(f"{queue}/messages", json={"body": "a"})
        [message] = waiting.result()

    assert message["body"] == "a"
    assert time.monotonic() - started < 5


def test_disconnected_waiting_client_takes_nothing(client, queue, service_url):
    url = urlsplit(service_url)
    with socket.create_connection((url.hostname, url.port)) as gone:
        gone.sendall(
            f"POST {queue}/receive HTTP/1.1\r\nHost: localhost\r\n"
            'Content-Type: application/json\r\nContent-Length: 19\r\n\r\n{"wait_seconds":20}'.encode()
        )
        time.sleep(0.3)
    time.sleep(0.2)
    client.post(f"{queue}/messages", json={"body": "a"})

    message = receive_one(client, queue)

    assert message["receive_count"] == 1


def test_visibility_timeout_may_be_fractional(client, queue):
    client.post(f"{queue}/messages", json={"body": "a"})
    receive(client, queue, visibility_timeout_seconds=0.2)

    [again] = receive(client, queue, wait_seconds=5)

    assert again["receive_count"] == 2
    assert again["crash_count"] == 1


def test_acknowledged_messages_are_not_redelivered(client, queue):
    client.post(f"{queue}/messages", json={"body": "a"})
    handle = receive_one(client, queue)["receipt_handle"]

    answer = client.post(
        f"{queue}/settle", json={"settlements": [{"receipt_handle": handle, "action": "ack"}]}
    )

    assert answer.json() == {"results": [{"status": "ok"}]}
    assert client.get(f"{queue}/stats").json()["acknowledged"] == 1


def test_settlements_are_answered_individually(client, queue):
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}] * 3})
    handles = [message["receipt_handle"] for message in receive(client, queue, messages_max=3)]

    answer = client.post(
        f"{queue}/settle",
        json={
            "settlements": [
                {"receipt_handle": handles[0], "action": "nack", "delay_seconds": 60},
                {"receipt_handle": "nonsense", "action": "ack"},
                {"receipt_handle": handles[1], "action": "release"},
                {
                    "receipt_handle": handles[2],
                    "action": "extend",
                    "visibility_timeout_seconds": 90,
                },
            ]
        },
    )

    nacked, refused, released, extended = answer.json()["results"]
    assert nacked["status"] == released["status"] == extended["status"] == "ok"
    assert refused == {
        "status": "error",
        "error": {
            "code": "receipt_handle_invalid",
            "detail": "The receipt handle was not issued by this queue.",
            "retryable": False,
        },
    }
    stats = client.get(f"{queue}/stats").json()
    assert (stats["delayed"], stats["ready"], stats["in_flight"]) == (1, 1, 1)


def test_nack_takes_the_delay_of_the_limits_page(client, queue):
    """REST took 12 hours, where the limits promise two days."""
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}]}).raise_for_status()
    [message] = receive(client, queue, messages_max=1)
    nack = {"receipt_handle": message["receipt_handle"], "action": "nack"}
    seconds = NACK_DELAY_MS_MAX // SECOND_MS

    longer = client.post(
        f"{queue}/settle", json={"settlements": [nack | {"delay_seconds": seconds + 1}]}
    )
    longest = client.post(
        f"{queue}/settle", json={"settlements": [nack | {"delay_seconds": seconds}]}
    )

    assert longer.status_code == 422
    assert longest.json()["results"][0]["status"] == "ok"


def test_empty_selection_redrives_nothing(client, queue):
    """A program that found no messages to redrive had all of them redriven."""
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}]}).raise_for_status()
    [message] = receive(client, queue, messages_max=1)
    reject = {"receipt_handle": message["receipt_handle"], "action": "reject"}
    client.post(f"{queue}/settle", json={"settlements": [reject]}).raise_for_status()

    answer = client.post(f"{queue}/redrives", json={"messages": []})

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/messages")
    assert client.get(f"{queue}/stats").json()["dead_lettered"] == 1


def test_rejected_messages_are_listed_and_redriven(client, queue):
    client.post(f"{queue}/messages", json={"messages": [{"body": {"n": 1}}, {"body": "two"}]})
    settlements = [
        {"receipt_handle": message["receipt_handle"], "action": "reject", "reason": "bad"}
        for message in receive(client, queue, messages_max=2)
    ]
    client.post(f"{queue}/settle", json={"settlements": settlements})

    first = client.get(f"{queue}/dead-letters", params={"limit": 1}).json()
    rest = client.get(f"{queue}/dead-letters", params={"cursor": first["next_cursor"]}).json()
    redriven = client.post(f"{queue}/redrives")

    assert [letter["body"] for letter in first["items"] + rest["items"]] == [{"n": 1}, "two"]
    assert first["items"][0]["reason"] == "bad"
    assert rest["next_cursor"] is None
    assert redriven.json() == {"redriven": 2}
    assert client.get(f"{queue}/stats").json()["ready"] == 2


def test_purge_drops_messages(client, queue):
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}] * 3})

    answer = client.post(f"{queue}/purges")

    assert answer.json() == {"purged": 3}
    assert client.get(f"{queue}/stats").json()["ready"] == 0


def test_stats_include_durability(client, queue):
    stats = client.get(f"{queue}/stats").json()

    assert stats["durability"] == "always"
    assert (stats["replication_factor"], stats["min_insync_replicas"]) == (1, 1)


def test_duplicate_in_fifo_queue_is_reported(client, fifo_queue):
    message = {"body": "a", "group": "g", "dedup_id": "d"}
    first = client.post(f"{fifo_queue}/messages", json=message).json()

    again = client.post(f"{fifo_queue}/messages", json=message).json()

    assert again == {"id": first["id"], "offset": first["offset"], "duplicate": True}


@pytest.mark.parametrize("depth", [100_000, 100])
def test_deeply_nested_json_is_shown_and_received(client, queue, depth):
    """Decoding exceeded the recursion limit: each receive was an internal error."""
    body = "[" * depth + "]" * depth
    encoded = base64.b64encode(body.encode()).decode()
    sent = {"body_base64": encoded, "content_type": "application/json"}
    client.post(f"{queue}/messages", json=sent).raise_for_status()

    [browsed] = client.get(f"{queue}/messages").json()["items"]
    message = receive_one(client, queue)

    assert message["body"] == browsed["body"]
    assert body in (message["body"], json.dumps(message["body"]))
