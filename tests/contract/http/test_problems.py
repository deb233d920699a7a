"""Invalid input of every kind, and the problem that answers it."""

import json
from typing import Any

import httpx
import pytest

JSON = {"content-type": "application/json"}
PROBLEM = "application/problem+json"


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == PROBLEM
    problem: dict[str, Any] = answer.json()
    return problem


def pointer(answer: httpx.Response) -> str:
    [fault] = answer.json()["errors"]
    return str(fault["pointer"])


def test_problem_has_all_its_members(client):
    answer = client.get("/v1/queues/nothing", headers={"x-request-id": "r-1"})

    problem = refused(answer, 404, "queue_not_found")
    assert problem.pop("detail")
    assert problem == {
        "type": "urn:millstream:problem:queue_not_found",
        "title": "Queue not found",
        "status": 404,
        "instance": "/v1/queues/nothing",
        "code": "queue_not_found",
        "retryable": False,
        "request_id": "r-1",
    }


def test_control_and_data_plane_return_same_problem(client):
    cold = client.get("/v1/queues/nothing").json()
    hot = client.post("/v1/queues/nothing/receive").json()

    assert cold.keys() == hot.keys()
    assert cold["code"] == hot["code"]


@pytest.mark.parametrize("path", ["/", "/v2/queues", "/v1/queues/a/b", "/v1/queues/a/receive/1"])
def test_unknown_path_returns_problem(client, path):
    refused(client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/queues/a/messages", "GET, POST"),
        ("GET", "/v1/queues/a/receive", "POST"),
        ("DELETE", "/v1/streams/a/records", "GET, POST"),
        ("POST", "/v1/queues", "GET"),
    ],
)
def test_unsupported_method_returns_problem(client, method, path, allowed):
    answer = client.request(method, path)

    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


def test_missing_route_gets_suggestion(client):
    path = client.post("/v1/queues/a/message")
    method = client.post("/v1/queues")
    neither = client.get("/elsewhere")

    assert refused(path, 404, "not_found")["detail"] == (
        "/v1/queues/a/message does not exist; did you mean 'POST /v1/queues/a/messages'?"
    )
    assert refused(method, 405, "method_not_allowed")["detail"] == (
        "Method POST is not allowed for /v1/queues; allowed: GET; did you mean 'PUT /v1/queues/{queue}'?"
    )
    assert "described by /openapi.json" in refused(neither, 404, "not_found")["detail"]


def test_allow_header_lists_all_methods(client):
    answer = client.post("/v1/queues/a")

    refused(answer, 405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "PUT", "PATCH", "DELETE"}


@pytest.mark.parametrize("body", [b"{", b"", b'{"body":1}x', b'{"body":"\\ud800"}', b"\xff"])
def test_malformed_json_is_rejected(client, queue, body):
    refused(client.post(f"{queue}/messages", content=body, headers=JSON), 400, "malformed_json")


def test_malformed_json_in_configuration_is_rejected(client, queue):
    refused(client.put(queue, content=b"{", headers=JSON), 400, "malformed_json")


def test_json_with_invalid_utf8_is_rejected(client, queue):
    for body in (b'{"body":"\xff"}', b'{"body":{"a":"\xff"}}'):
        answer = client.post(f"{queue}/messages", content=body, headers=JSON)

        assert answer.status_code in (400, 422)


def test_malformed_messagepack_is_rejected(client, queue):
    headers = {"content-type": "application/msgpack"}

    answer = client.post(f"{queue}/messages", content=b"\xc1", headers=headers)

    refused(answer, 400, "malformed_msgpack")


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({}, "/body"),
        ({"body": "a", "body_base64": "YQ=="}, "/body_base64"),
        ({"body_base64": "nonsense!"}, "/body_base64"),
        ({"body_base64": 1}, "/body_base64"),
        ({"body": "a", "headers": {"a": 1}}, "/headers"),
        ({"body": "a", "headers": {":id": "1"}}, "/headers/:id"),
        ({"body": "a", "headers": {"": "1"}}, "/headers/"),
        ({"body": "a", "headers": {f"h{n}": "" for n in range(33)}}, "/headers"),
        ({"body": "a", "group": "g" * 129}, "/group"),
        ({"body": "a", "dedup_id": "d"}, "/dedup_id"),
        ({"body": "a", "delay_seconds": -1}, "/delay_seconds"),
        ({"body": "a", "delay_seconds": 315360001}, "/delay_seconds"),
        ({"body": "a", "ttl_seconds": -1}, "/ttl_seconds"),
        ({"body": "a", "delay_seconds": "1"}, "/delay_seconds"),
    ],
)
def test_invalid_message_is_rejected_with_pointer(client, queue, message, where):
    alone = client.post(f"{queue}/messages", json=message)
    refused(alone, 422, "validation_failed")
    assert pointer(alone).startswith(where)
    assert client.get(f"{queue}/stats").json()["sent"] == 0


def test_pointer_names_item_of_batch(client, queue):
    good = {"body": "a"}
    for bad, where in [
        ({}, "/messages/1/body"),
        ({"body": "a", "delay_seconds": -1}, "/messages/1/delay_seconds"),
        ({"body": "a", "body_base64": ""}, "/messages/1/body_base64"),
    ]:
        answer = client.post(f"{queue}/messages", json={"messages": [good, bad]})

        refused(answer, 422, "validation_failed")
        assert pointer(answer) == where


def test_empty_batch_is_rejected(client, queue, stream):
    refused(client.post(f"{queue}/messages", json={"messages": []}), 422, "validation_failed")
    refused(client.post(f"{stream}/records", json={"records": []}), 422, "validation_failed")
    refused(client.post(f"{queue}/settle", json={"settlements": []}), 422, "validation_failed")
    refused(client.post(f"{queue}/settle", json={}), 422, "validation_failed")


def test_batch_of_more_than_1000_items_is_rejected(client, queue, stream):
    settlement = {"receipt_handle": "x", "action": "ack"}
    for path, body in [
        (f"{queue}/messages", {"messages": [{"body": "a"}] * 1001}),
        (f"{stream}/records", {"records": [{"data": "a"}] * 1001}),
        (f"{queue}/settle", {"settlements": [settlement] * 1001}),
    ]:
        refused(client.post(path, json=body), 413, "batch_too_large")


def test_message_over_size_limit_of_queue_is_rejected(client, name):
    client.put(f"/v1/queues/{name}", json={"message_bytes_max": 10})

    answer = client.post(f"/v1/queues/{name}/messages", json={"body": "x" * 11})

    problem = refused(answer, 413, "message_too_large")
    assert problem["message_bytes_max"] == 10


def test_request_over_size_limit_is_rejected(client, queue):
    body = b"x" * (16 * 1024 * 1024 + 1)

    refused(client.post(f"{queue}/messages", content=body), 413, "request_too_large")


def test_chunked_request_over_size_limit_is_rejected(client, queue):
    chunks = (b"x" * 1024 * 1024 for _ in range(17))

    refused(client.post(f"{queue}/messages", content=chunks), 413, "request_too_large")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml"]
)
def test_configuration_of_another_media_type_is_rejected(client, queue, kind):
    headers = {"content-type": kind}

    refused(client.put(queue, content=b"{}", headers=headers), 415, "unsupported_media_type")
    refused(client.patch(queue, content=b"{}", headers=headers), 415, "unsupported_media_type")


def test_receive_or_settle_of_another_media_type_is_rejected(client, queue):
    for verb in ("receive", "settle"):
        answer = client.post(
            f"{queue}/{verb}", content=b"{}", headers={"content-type": "text/plain"}
        )

        refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"messages_max": 0}, "/messages_max"),
        ({"messages_max": 1001}, "/messages_max"),
        ({"messages_max": "1"}, "/messages_max"),
        ({"wait_seconds": 20.1}, "/wait_seconds"),
        ({"wait_seconds": -1}, "/wait_seconds"),
        ({"visibility_timeout_seconds": 43201}, "/visibility_timeout_seconds"),
    ],
)
def test_invalid_receive_is_rejected_with_pointer(client, queue, asked, where):
    answer = client.post(f"{queue}/receive", json=asked)

    refused(answer, 422, "validation_failed")
    assert pointer(answer) == where


@pytest.mark.parametrize(
    ("settlement", "where"),
    [
        ({"receipt_handle": "x"}, "/settlements/0/action"),
        ({"receipt_handle": "x", "action": "eat"}, "/settlements/0/action"),
        ({"action": "ack"}, "/settlements/0/receipt_handle"),
        (
            {"receipt_handle": "x", "action": "extend"},
            "/settlements/0/visibility_timeout_seconds",
        ),
        (
            {"receipt_handle": "x", "action": "nack", "delay_seconds": 172801},
            "/settlements/0/delay_seconds",
        ),
        (
            {"receipt_handle": "x", "action": "reject", "reason": "r" * 1025},
            "/settlements/0/reason",
        ),
    ],
)
def test_invalid_settlement_is_rejected_with_pointer(client, queue, settlement, where):
    answer = client.post(f"{queue}/settle", json={"settlements": [settlement]})

    refused(answer, 422, "validation_failed")
    assert pointer(answer) == where


@pytest.mark.parametrize(
    ("record", "where"),
    [
        ({}, "/data"),
        ({"data": "a", "key": "k" * 257}, "/key"),
        ({"data": "a", "event_time": "yesterday"}, "/event_time"),
        ({"data": "a", "event_time": "2026-01-31T12:00:00"}, "/event_time"),
        ({"data": "a", "headers": {":content_type": "x"}}, "/headers/:content_type"),
        ({"data": "a", "data_base64": "YQ=="}, "/data_base64"),
    ],
)
def test_invalid_record_is_rejected_with_pointer(client, stream, record, where):
    answer = client.post(f"{stream}/records", json=record)

    refused(answer, 422, "validation_failed")
    assert pointer(answer) == where


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("ofset=1", "/ofset"),
        ("offset=-1", "/offset"),
        ("offset=x", "/offset"),
        ("offset=9007199254740992", "/offset"),
        ("limit=0", "/limit"),
        ("limit=10001", "/limit"),
        ("bytes_max=0", "/bytes_max"),
        ("time=yesterday", "/time"),
        ("wait_seconds=21", "/wait_seconds"),
        ("wait_seconds=nan", "/wait_seconds"),
    ],
)
def test_invalid_read_is_rejected_with_pointer(client, stream, query, where):
    answer = client.get(f"{stream}/shards/0/records?{query}")

    refused(answer, 422, "validation_failed")
    assert pointer(answer) == where


def test_repeated_parameter_is_rejected(client, stream):
    answer = client.get(f"{stream}/shards/0/records?offset=0&offset=1")

    refused(answer, 422, "validation_failed")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x"])
def test_invalid_page_size_is_rejected(client, query):
    answer = client.get(f"/v1/queues?{query}")

    refused(answer, 422, "validation_failed")
    assert pointer(answer) == "/limit"


@pytest.mark.parametrize("path", ["/v1/queues", "/v1/streams"])
def test_malformed_cursor_is_rejected(client, path):
    for cursor in ("nonsense", "%25%25", "AAAA", "é"):
        refused(client.get(f"{path}?cursor={cursor}"), 400, "invalid_cursor")


def test_malformed_cursor_of_dead_letters_is_rejected(client, queue):
    refused(client.get(f"{queue}/dead-letters?cursor=AAAA"), 400, "invalid_cursor")


@pytest.mark.parametrize("key", ["k" * 256, "with space", '"'])
def test_malformed_idempotency_key_is_rejected(client, queue, key):
    answer = client.post(f"{queue}/messages", json={"body": "a"}, headers={"idempotency-key": key})

    refused(answer, 422, "validation_failed")


@pytest.mark.parametrize("delay", ["soon", "-1", "315360001"])
def test_invalid_delay_of_raw_message_is_rejected(client, queue, delay):
    headers = {"millstream-delay-seconds": delay}

    refused(
        client.post(f"{queue}/messages", content=b"a", headers=headers), 422, "validation_failed"
    )


@pytest.mark.parametrize("bad", ["a" * 81, "a b", "gr%C3%B6%C3%9Fe", "a:b"])
def test_invalid_name_is_rejected_on_every_route(client, bad):
    for method, path in [
        ("PUT", f"/v1/queues/{bad}"),
        ("POST", f"/v1/queues/{bad}/messages"),
        ("GET", f"/v1/streams/{bad}/records"),
    ]:
        refused(client.request(method, path), 422, "validation_failed")


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example"}]
)
def test_foreign_origin_is_rejected_in_open_mode(client, queue, headers):
    for answer in (
        client.get(queue, headers=headers),
        client.post(f"{queue}/receive", headers=headers),
        client.get("/metrics", headers=headers),
    ):
        refused(answer, 403, "forbidden")


def test_local_origin_is_accepted_in_open_mode(client, queue):
    headers = {"origin": "http://localhost:3000", "host": "localhost:8080"}

    assert client.get(queue, headers=headers).status_code == 200


def test_deeply_nested_body_does_no_harm(client, queue):
    body = json.dumps({"body": None}).replace("null", "[" * 100_000 + "]" * 100_000)

    answer = client.post(f"{queue}/messages", content=body.encode(), headers=JSON)

    assert answer.status_code in (201, 400)
