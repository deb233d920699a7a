"""Webhooks over HTTP: configuration, secrets, deliveries and errors."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
import standardwebhooks

URL = "https://shop.example/hooks"


CLIENT = {
    "token_url": "https://login.example/token",
    "client_id": "shop",
    "client_secret": "opensesame",
    "scope": "read",
}


def oauth(**changes: object) -> dict[str, Any]:
    """Return the configuration of credentials; None leaves a field out."""
    fields = {**CLIENT, **changes}
    return {"credentials": {"oauth": {key: fields[key] for key in fields if fields[key]}}}


@pytest.fixture
def source(client: httpx.Client, queue: str) -> str:
    """The source of a new queue."""
    return f"queue:{queue.rpartition('/')[2]}"


@pytest.fixture
def hook(client: httpx.Client, source: str, name: str) -> str:
    """The path of a new webhook that no deliverer serves."""
    path = f"/v1/webhooks/{name}"
    client.put(path, json={"source": source, "url": URL}).raise_for_status()
    return path


def test_webhook_is_created_shown_listed_changed_and_deleted(client, source, name):
    path = f"/v1/webhooks/{name}"
    fields = {"source": source, "url": URL, "headers": {"authorization": "Bearer opensesame"}}

    made = client.put(path, json=fields)
    again = client.put(path, json=fields)
    changed = client.put(path, json={**fields, "rate": 5, "retry_seconds": [1, 2.5]})
    shown = client.get(path)
    listed = client.get("/v1/webhooks", params={"prefix": name}).json()["items"]
    deleted = client.delete(path)

    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert made.json()["secret"].startswith("whsec_")
    assert (again.status_code, again.headers["etag"], again.json()["secret"]) == (200, '"v1"', None)
    assert (changed.status_code, changed.headers["etag"]) == (200, '"v2"')
    assert shown.json()["retry_seconds"] == [1, 2.5]
    assert shown.json()["header_names"] == ["authorization"]
    assert shown.json()["health"]["state"] == "active"
    assert "secret" not in shown.json()
    assert "opensesame" not in shown.text
    assert listed == [shown.json()]
    assert deleted.status_code == 204
    assert client.get(path).json()["code"] == "webhook_not_found"


def test_client_secret_is_kept_and_never_shown(client, source, name):
    path, fields = f"/v1/webhooks/{name}", {"source": source, "url": URL}
    shown = {**CLIENT, "client_secret": "(secret)", "parameters": {}, "client_auth": "basic"}

    made = client.put(path, json=fields | oauth())
    again = client.put(path, json=fields | oauth(client_secret="(secret)"))
    scoped = client.put(path, json=fields | oauth(client_secret=None, scope="write"))
    moved = client.put(path, json=fields | oauth(client_secret=None, token_url=f"{URL}/token"))
    removed = client.put(path, json=fields)

    assert made.json()["credentials"] == {"oauth": shown}
    assert (again.json()["version"], scoped.json()["version"]) == (1, 2)
    assert scoped.json()["credentials"] == {"oauth": shown | {"scope": "write"}}
    assert moved.json()["errors"][0]["pointer"] == "/credentials/oauth/client_secret"
    assert removed.json()["credentials"] is None
    answers = (made, again, scoped, moved, removed)
    assert not any("opensesame" in answer.text for answer in answers)


def test_change_states_that_it_is_in_force(client, hook, source):
    fields = {"source": source, "url": URL}

    answers = [
        client.put(hook, json=fields),
        client.put(hook, json={**fields, "rate": 1}),
        client.post(f"{hook}/secret", json={"overlap_seconds": 0}),
        client.put(f"{hook}/pause"),
        client.delete(f"{hook}/pause"),
        client.post(f"{hook}/enable"),
    ]
    dry_run = client.put(hook, json={**fields, "rate": 2}, params={"dry_run": True})

    assert [answer.json()["in_force"] for answer in answers] == [True] * 6
    assert dry_run.json()["in_force"] is False


def test_preconditions_are_enforced(client, hook, source):
    fields = {"source": source, "url": URL, "rate": 1}

    for headers, status in (
        ({"if-match": '"v7"'}, 412),
        ({"if-none-match": "*"}, 412),
        ({"if-match": '"v1"'}, 200),
    ):
        assert client.put(hook, json=fields, headers=headers).status_code == status
    assert client.put(f"{hook}-new", json=fields, headers={"if-match": "*"}).status_code == 412
    assert client.delete(hook, headers={"if-match": '"v1"'}).status_code == 412
    assert client.delete(hook, headers={"if-match": '"v2"'}).status_code == 204


def test_lists_are_paged(client, source, name):
    for number in range(5):
        fields = {"source": source, "url": URL}
        client.put(f"/v1/webhooks/{name}-{number}", json=fields).raise_for_status()

    found, cursor = [], ""
    while True:
        request = {"prefix": name, "limit": 2, "cursor": cursor}
        page = client.get("/v1/webhooks", params=request).json()
        found += [item["name"] for item in page["items"]]
        if not (cursor := page["next_cursor"]):
            break

    assert found == [f"{name}-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"url": "http://shop.example/"}, "/url", "not_allowed"),
        ({"url": "https://10.0.0.1/"}, "/url", "not_allowed"),
        ({"url": "https://2852039166/latest/meta-data"}, "/url", "not_allowed"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "/url", "not_allowed"),
        ({"url": "https://8.8.8.8:22/"}, "/url", "not_allowed"),
        ({"url": "https://a:b@shop.example/"}, "/url", "not_allowed"),
        ({"url": 7}, "/url", "invalid"),
        ({"source": "queue:none"}, "/source", "not_found"),
        ({"source": "group:none"}, "/source", "not_found"),
        ({"source": "stream:clicks"}, "/source", "invalid"),
        ({"headers": {"host": "other"}}, "/headers/host", "not_allowed"),
        ({"headers": {"x": "a\r\nb: c"}}, "/headers/x", "invalid"),
        ({"credentials": {}}, "/credentials/oauth", "required"),
        (oauth(client_secret=None), "/credentials/oauth/client_secret", "required"),
        (oauth(client_secret="(secret)"), "/credentials/oauth/client_secret", "required"),
        (oauth(token_url="http://a.example/"), "/credentials/oauth/token_url", "not_allowed"),
        (oauth(token_url="https://10.0.0.1/"), "/credentials/oauth/token_url", "not_allowed"),
        (oauth(client_auth="jwt"), "/credentials/oauth/client_auth", "invalid"),
        (oauth(grant="password"), "/credentials/oauth/grant", "unknown_field"),
        (oauth(parameters={"scope": "a"}), "/credentials/oauth/parameters/scope", "not_allowed"),
        ({"timeout_seconds": 0}, "/timeout_seconds", "out_of_range"),
        ({"in_flight_max": 100_000}, "/in_flight_max", "out_of_range"),
        ({"rate": 0}, "/rate", "out_of_range"),
        ({"retry_seconds": [100_000]}, "/retry_seconds", "out_of_range"),
        ({"on_failure": "dead_letter"}, "/on_failure", "not_supported"),
        ({"on_failure": "explode"}, "/on_failure", "invalid"),
        ({"format": "xml"}, "/format", "invalid"),
        ({"colour": "red"}, "/colour", "unknown_field"),
    ],
)
def test_invalid_configuration_is_rejected_with_pointer(
    client, source, name, change, pointer, code
):
    fields = {"source": source, "url": URL, **change}

    answer = client.put(f"/v1/webhooks/{name}", json=fields)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    [fault] = answer.json()["errors"]
    assert (fault["pointer"], fault["code"]) == (pointer, code)


def test_unknown_webhook_or_delivery_is_not_found(client, hook, name):
    for method, path, code in (
        ("GET", "/v1/webhooks/none", "webhook_not_found"),
        ("DELETE", "/v1/webhooks/none", "webhook_not_found"),
        ("POST", "/v1/webhooks/none/secret", "webhook_not_found"),
        ("POST", "/v1/webhooks/none/enable", "webhook_not_found"),
        ("POST", "/v1/webhooks/none/tests", "webhook_not_found"),
        ("GET", "/v1/webhooks/none/deliveries", "webhook_not_found"),
        ("POST", "/v1/webhooks/none/deliveries/a/resends", "webhook_not_found"),
        ("POST", f"{hook}/deliveries/none/resends", "delivery_not_found"),
    ):
        answer = client.request(method, path)

        assert (answer.status_code, answer.json()["code"]) == (404, code), path


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"status": "lost"}, 422),
        ({"from": "yesterday"}, 422),
        ({"from": "2026-01-31T12:00:00"}, 422),
        ({"limit": 0}, 422),
        ({"cursor": "x"}, 400),
        ({"status": "failed", "from": "2026-01-31T12:00:00Z", "to": "2026-02-01T00:00:00Z"}, 200),
    ],
)
def test_invalid_delivery_filter_is_rejected(client, hook, query, status):
    assert client.get(f"{hook}/deliveries", params=query).status_code == status


def test_log_is_paged_and_delivery_is_found_by_id(client, hook, log_delivery):
    name = hook.rpartition("/")[2]
    for number in range(3):
        log_delivery(name, f"event-{number}")

    first = client.get(f"{hook}/deliveries", params={"limit": 2}).json()
    request = {"limit": 2, "cursor": first["next_cursor"]}
    second = client.get(f"{hook}/deliveries", params=request).json()
    body = client.get(f"{hook}/deliveries", params={"message": "event-1"}).json()

    ids = [item["id"] for item in (*first["items"], *second["items"])]
    assert ids == ["event-2", "event-1", "event-0"]
    assert [item["id"] for item in body["items"]] == ["event-1"]


class _Keep(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((dict(self.headers.items()), body))  # type: ignore[attr-defined]
        self.send_response(202)
        self.end_headers()
        self.wfile.write(b"thanks")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    """A receiver on this machine, which the deployment's `webhook_allow` names."""
    server = HTTPServer(("127.0.0.1", 0), _Keep)
    server.requests = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_test_and_resent_delivery_verify_with_shown_secret(
    client, source, name, receiver, log_delivery
):
    path = f"/v1/webhooks/{name}"
    fields = {
        "source": source,
        "url": f"http://127.0.0.1:{receiver.server_port}/",
        "enabled": False,
    }
    first = client.put(path, json=fields).json()["secret"]
    log_delivery(name, "event-1")

    tested = client.post(f"{path}/tests").json()
    rotated = client.post(f"{path}/secret", json={"overlap_seconds": 60}).json()
    resent = client.post(f"{path}/deliveries/event-1/resends").json()

    assert (tested["outcome"], tested["status"], tested["response"]) == ("delivered", 202, "thanks")
    assert (resent["outcome"], resent["resent"]) == ("delivered", True)
    (test_headers, test_body), (headers, body) = receiver.requests
    standardwebhooks.Webhook(first).verify(test_body, test_headers)
    for secret in (first, rotated["secret"]):
        lowered = {key.lower(): value for key, value in headers.items()}
        signed = standardwebhooks.Webhook(secret)
        assert lowered["webhook-id"] == "event-1"
        assert _signature_of(signed, lowered, body) in lowered["webhook-signature"].split()
    assert body == b"hello"
    assert client.get(f"{path}/deliveries").json()["items"][0]["attempts"] == 2


def test_deliveries_are_counted_and_resent_in_bulk(client, source, name, receiver, log_delivery):
    path = f"/v1/webhooks/{name}"
    url = f"http://127.0.0.1:{receiver.server_port}/"
    client.put(path, json={"source": source, "url": url, "enabled": False})
    for number in range(3):
        log_delivery(name, f"event-{number}")
    conditions = {"status": "delivered", "to": "2001-01-01T00:00:00Z"}
    resends = f"{path}/deliveries/resends"

    counted = client.post(resends, json={**conditions, "dry_run": True}).json()
    none = client.post(resends, json={"dry_run": True}).json()
    first = client.post(resends, json={**conditions, "deliveries_max": 2}).json()
    body = {**conditions, "cursor": first["next_cursor"]}
    rest = client.post(resends, json=body).json()
    other = client.post(resends, json={"cursor": first["next_cursor"]})

    assert (counted["matched"], counted["delivered"], none["matched"]) == (3, 0, 0)
    assert (first["delivered"], first["matched"]) == (2, None)
    assert (rest["delivered"], rest["next_cursor"]) == (1, None)
    assert sorted(headers["webhook-id"] for headers, _ in receiver.requests) == [
        "event-0",
        "event-1",
        "event-2",
    ]
    assert (other.status_code, other.json()["code"]) == (400, "invalid_cursor")


def _signature_of(signer: standardwebhooks.Webhook, headers: dict[str, str], body: bytes) -> str:
    moment = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    return signer.sign(headers["webhook-id"], moment, body.decode())


def test_secret_overlap_is_limited(client, hook):
    answer = client.post(f"{hook}/secret", json={"overlap_seconds": 10_000_000})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/overlap_seconds"


def test_paused_webhook_is_enabled_again(client, source, name):
    path = f"/v1/webhooks/{name}"
    client.put(path, json={"source": source, "url": URL, "enabled": False}).raise_for_status()
    before = client.get(path).json()

    enabled = client.post(f"{path}/enable")

    assert (before["health"]["state"], before["enabled"]) == ("paused", False)
    assert (enabled.json()["health"]["state"], enabled.json()["enabled"]) == ("active", True)
    assert enabled.headers["etag"] == '"v2"'
