"""Sources over HTTP: configuration, reception by the providers' rules, failures, rotation."""

import gzip
import hashlib
import hmac
import time
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import standardwebhooks

from tests.conditions import PATIENCE_S

SECRET = "It's a Secret to Everybody"
GITHUB = {"provider": "github", "secrets": [SECRET], "headers": ["X-GitHub-Event"]}


def github_headers(body: bytes, delivery: str, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "x-hub-signature-256": f"sha256={digest}",
        "x-github-delivery": delivery,
        "x-github-event": "push",
        "content-type": "application/json",
    }


def receive_all(client: httpx.Client, queue: str, count: int) -> list[dict[str, Any]]:
    """Receive and acknowledge until that many messages have come."""
    messages: list[dict[str, Any]] = []
    while len(messages) < count:
        received = client.post(f"{queue}/receive", json={"messages_max": 10, "wait_seconds": 5})
        batch = received.raise_for_status().json()["messages"]
        assert batch, f"only {len(messages)} of {count} messages came"
        settlements = [{"receipt_handle": one["receipt_handle"], "action": "ack"} for one in batch]
        client.post(f"{queue}/settle", json={"settlements": settlements}).raise_for_status()
        messages += batch
    return messages


def eventually_waiting(client: httpx.Client, source: str) -> int:
    """Return the number of events in the outbox, once it is empty or five seconds have passed."""
    for _ in range(50):
        waiting = int(client.get(f"{source}/stats").json()["waiting"])
        if not waiting:
            break
        time.sleep(0.1)
    return waiting


@pytest.fixture
def put(client: httpx.Client, queue: str, name: str):
    """Create the test's source, which sends to its queue; return the answer."""

    def put(webhook: dict[str, Any] = GITHUB, **fields: Any) -> dict[str, Any]:
        into = fields.pop("into", {"queue": queue.rpartition("/")[2]})
        body = {"webhook": webhook, "into": into, **fields}
        return dict(client.put(f"/v1/sources/{name}", json=body).raise_for_status().json())

    return put


def test_source_is_created_shown_listed_changed_and_deleted(client, put, name):
    path = f"/v1/sources/{name}"

    made = put()
    changed = put({**GITHUB, "secrets": None, "tolerance_seconds": 60})
    shown = client.get(path)
    unchanged = client.get(path, headers={"if-none-match": shown.headers["etag"]})
    listed = client.get("/v1/sources", params={"prefix": name}).json()["items"]
    url = client.get(f"{path}/url").json()["path"]
    deleted = client.delete(path)

    assert made["path"] == changed["path"] == url
    assert changed["changes"] == [
        {"pointer": "/webhook/tolerance_seconds", "before": 300, "after": 60}
    ]
    assert shown.json()["webhook"]["secrets"] == ["(secret)"]
    assert SECRET not in shown.text
    assert url not in shown.text
    assert unchanged.status_code == 304
    assert listed == [shown.json()]
    assert deleted.status_code == 204
    assert client.post(url, content=b"x").status_code == 404


def test_event_reaches_the_queue_with_body_and_headers(client, put, queue):
    path, body = put()["path"], b'{"ref": "refs/heads/main"}'

    headers = {**github_headers(body, "d-1"), "group": "a header of the provider", "if-match": "*"}
    answer = client.post(f"{path}?source=ci", content=body, headers=headers)

    [message] = receive_all(client, queue, 1)
    assert (answer.status_code, answer.json()) == (200, {"id": "d-1", "duplicate": False})
    assert message["body"] == {"ref": "refs/heads/main"}
    assert message["headers"] == {"X-GitHub-Event": "push", "event-id": "d-1"}


def test_repeated_event_is_delivered_once(client, put, queue):
    path, body = put()["path"], b"{}"

    answers = [
        client.post(path, content=body, headers=github_headers(body, "again")) for _ in range(3)
    ]
    other = client.post(path, content=body, headers=github_headers(body, "other"))

    received = receive_all(client, queue, 2)
    assert [answer.json()["duplicate"] for answer in (*answers, other)] == [
        False,
        True,
        True,
        False,
    ]
    assert [message["headers"]["event-id"] for message in received] == ["again", "other"]


def test_event_without_the_value_of_its_key_reaches_a_fifo_queue(client, put, fifo_queue):
    path = put(into={"queue": fifo_queue.rpartition("/")[2], "key": "/customer"})["path"]

    for number, body in enumerate([b"{}", b'{"customer": "ada"}', b"no JSON"]):
        headers = github_headers(body, f"f-{number}")
        client.post(path, content=body, headers=headers).raise_for_status()

    received = receive_all(client, fifo_queue, 3)
    assert {message["headers"]["event-id"] for message in received} == {"f-0", "f-1", "f-2"}


@pytest.mark.parametrize("kind", ["queue", "stream"])
def test_event_that_its_target_never_accepts_stops_no_other(client, put, queue, stream, kind):
    """Events behind one that the target refused waited for as long as it did."""
    target = {"queue": queue, "stream": stream}[kind]
    limit = {"queue": "message_bytes_max", "stream": "record_bytes_max"}[kind]
    client.patch(target, json={limit: 1024}).raise_for_status()
    made = put(into={kind: target.rpartition("/")[2]})
    large = b"x" * 2000

    refused = client.post(made["path"], content=large, headers=github_headers(large, "large"))
    accepted = client.post(made["path"], content=b"{}", headers=github_headers(b"{}", "small"))

    source = f"/v1/sources/{made['name']}"
    failures = client.get(f"{source}/failures").json()["items"]
    assert refused.status_code == 413, refused.text
    assert accepted.status_code == 200
    assert [failure["reason"] for failure in failures] == ["message_too_large"]
    assert eventually_waiting(client, source) == 0


@pytest.mark.parametrize("coding", [{}, {"content-encoding": "gzip"}], ids=["plain", "gzip"])
def test_body_over_the_limit_is_refused_before_it_is_buffered(client, put, coding):
    """Up to 16 MiB were read from anyone who had the URL."""
    body = b"x" * (2**20 + 1)
    headers = {**github_headers(body, "large"), "content-type": "text/plain", **coding}
    content = gzip.compress(body) if coding else iter([body[:-1], b"x"])
    made = put()

    refused = client.post(made["path"], content=content, headers=headers)

    stats = client.get(f"/v1/sources/{made['name']}/stats").json()
    assert (refused.status_code, refused.json()["code"]) == (413, "request_too_large")
    assert refused.json()["detail"] == "The request body can have at most 1048576 bytes."
    assert stats["rejected"] == 0


def test_event_reaches_a_stream_with_the_key_of_its_body(client, put, stream):
    into = {"stream": stream.rpartition("/")[2], "key": "/data/customer"}
    path, body = put(into=into)["path"], b'{"data": {"customer": "ada"}}'

    client.post(path, content=body, headers=github_headers(body, "s-1")).raise_for_status()

    records: list[dict[str, Any]] = []
    until = time.monotonic() + PATIENCE_S
    while not records and time.monotonic() < until:
        records = client.get(f"{stream}/records?from=earliest").json()["records"]
    assert [record["key"] for record in records] == ["ada"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"x-hub-signature-256": "sha256=" + "0" * 64}, "signature_mismatch"),
        ({"x-hub-signature-256": "nothing"}, "signature_malformed"),
        ({"x-hub-signature-256": None}, "header_missing"),
    ],
)
def test_bad_signature_is_401_and_stores_nothing(client, put, queue, name, changes, reason):
    path, body = put()["path"], b"{}"
    headers = {**github_headers(body, "bad"), **changes}
    headers = {name: value for name, value in headers.items() if value is not None}

    answer = client.post(path, content=body, headers=headers)

    stats = client.get(f"/v1/sources/{name}/stats").json()
    [failure] = client.get(f"/v1/sources/{name}/failures").json()["items"]
    assert (answer.status_code, answer.json()["code"]) == (401, "signature_rejected")
    assert (stats["accepted"], stats["rejected"]) == (0, 1)
    assert failure["reason"] == reason
    assert client.get(f"{queue}/stats").json()["sent"] == 0


def test_old_signature_is_401(client, put):
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    path = put({"provider": "stripe", "secrets": [secret]})["path"]
    body, at = b'{"id": "evt_1"}', int(time.time())

    def send(timestamp: int) -> Any:
        signed = f"{timestamp}.".encode() + body
        digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        return client.post(
            path, content=body, headers={"stripe-signature": f"t={timestamp},v1={digest}"}
        )

    assert send(at - 301).status_code == 401
    assert send(at).json() == {"id": "evt_1", "duplicate": False}


def test_event_of_the_standard_webhooks_library_is_accepted(client, put):
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    path = put({"provider": "standard_webhooks", "secrets": [secret]})["path"]
    body, now = '{"type": "user.created"}', datetime.now(UTC)
    signature = standardwebhooks.Webhook(secret).sign("msg_1", now, body)

    answer = client.post(
        path,
        content=body,
        headers={
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signature,
        },
    )

    assert (answer.status_code, answer.json()["id"]) == (200, "msg_1")


def test_slack_challenge_is_answered(client, put, name):
    path = put({"provider": "slack", "secrets": ["8f742231b10e8888"]})["path"]
    body, at = b'{"type": "url_verification", "challenge": "3eZbrw1aB"}', str(int(time.time()))
    digest = hmac.new(b"8f742231b10e8888", f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    headers = {"x-slack-request-timestamp": at, "x-slack-signature": f"v0={digest}"}

    answer = client.post(path, content=body, headers=headers)

    stats = client.get(f"/v1/sources/{name}/stats").json()
    assert answer.json() == {"challenge": "3eZbrw1aB"}
    assert (stats["handshakes"], stats["accepted"]) == (1, 0)


def test_paused_source_refuses_events_until_resumed(client, put, name):
    path, body = put()["path"], b"{}"

    client.put(f"/v1/sources/{name}/pause").raise_for_status()
    refused = client.post(path, content=body, headers=github_headers(body, "p"))
    client.delete(f"/v1/sources/{name}/pause").raise_for_status()
    accepted = client.post(path, content=body, headers=github_headers(body, "p"))

    assert (refused.status_code, refused.json()["code"]) == (503, "source_paused")
    assert "retry-after" in refused.headers
    assert accepted.json()["duplicate"] is False


def test_rotated_url_is_valid_for_the_overlap(client, put, name):
    first, body = put()["path"], b"{}"

    overlapping = client.post(f"/v1/sources/{name}/rotate-url", json={"overlap_seconds": 60})
    old = client.post(first, content=body, headers=github_headers(body, "1"))
    final = client.post(f"/v1/sources/{name}/rotate-url", json={"overlap_seconds": 0}).json()
    gone = client.post(first, content=body, headers=github_headers(body, "2"))
    second = overlapping.json()["path"]
    replaced = client.post(second, content=body, headers=github_headers(body, "3"))
    current = client.post(final["path"], content=body, headers=github_headers(body, "4"))

    assert overlapping.json()["old_path_expires_at"] is not None
    assert [one.status_code for one in (old, gone, replaced, current)] == [200, 404, 404, 200]


def test_events_wait_while_the_target_refuses_them(client, put, queue, name):
    """They are on disk, so that they are accepted; `failure` says what they wait for."""
    path, body = put()["path"], b"{}"
    client.delete(queue).raise_for_status()

    answer = client.post(path, content=body, headers=github_headers(body, "w"))

    assert answer.status_code == 200
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        stats = client.get(f"/v1/sources/{name}/stats").json()
        if stats["failure"]:
            break
    assert stats["waiting"] == 1
    assert "does not exist" in stats["failure"]


@pytest.mark.parametrize("provider", ["standard_webhooks", "stripe", "github", "slack", "hmac"])
def test_test_event_of_each_provider_reaches_the_queue(client, put, queue, name, provider):
    scheme = {"signature_header": "x-sum", "id_header": "x-id"} if provider == "hmac" else {}
    put({"provider": provider, "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], **scheme})

    answer = client.post(f"/v1/sources/{name}/test").raise_for_status().json()

    [message] = receive_all(client, queue, 1)
    assert answer["id"].startswith("test-")
    assert message["headers"]["event-id"] == answer["id"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"into": {}}, "/into"),
        ({"into": {"queue": "a", "stream": "b"}}, "/into"),
        ({"into": {"queue": "no-such-queue"}}, "/into/queue"),
        ({"webhook": {"provider": "github"}}, "/webhook/secrets"),
        ({"webhook": {**GITHUB, "secrets": []}}, "/webhook/secrets"),
        ({"webhook": {**GITHUB, "secrets": ["short"]}}, "/webhook/secrets/0"),
        ({"webhook": {**GITHUB, "headers": ["Authorization"]}}, "/webhook/headers/0"),
        ({"webhook": {**GITHUB, "signature_header": "x"}}, "/webhook/provider"),
        ({"webhook": {"provider": "hmac", "secrets": [SECRET]}}, "/webhook/signature_header"),
        ({"webhook": {**GITHUB, "tolerance_seconds": 0}}, "/webhook/tolerance_seconds"),
        ({"dedup_seconds": 1}, "/dedup_seconds"),
        ({"into": {"queue": "q", "key": "customer"}}, "/into/key"),
    ],
)
def test_invalid_source_is_rejected_at_its_field(client, queue, name, fields, pointer):
    body = {"webhook": GITHUB, "into": {"queue": queue.rpartition("/")[2]}, **fields}

    answer = client.put(f"/v1/sources/{name}", json=body)

    assert answer.status_code == 422
    assert pointer in [fault["pointer"] for fault in answer.json()["errors"]]


def test_unknown_url_is_404_without_a_hint(client, put, name):
    """The detail of an unknown name differed from that of a wrong token."""
    path = put()["path"]
    wrong = path[:-1] + ("0" if path[-1] != "0" else "1")
    urls = (
        wrong,
        "/v1/sources/nothing/" + "0" * 64,
        f"/v1/sources/{name}/%00.{'0' * 64}",  # a namespace that Postgres cannot be asked for
        f"/v1/sources/{name}/{'n' * 5000}.{'0' * 64}",
    )

    answers = [client.post(url, content=b"{}").json() for url in urls]

    assert {answer["code"] for answer in answers} == {"source_not_found"}
    assert len({answer["detail"] for answer in answers}) == 1


def test_fields_of_another_provider_are_refused(client, queue, name):
    """They were accepted and had no effect, unless signature_header was among them."""
    into = {"queue": queue.rpartition("/")[2]}
    for field, value in (("id_header", "x-id"), ("prefix", "v9="), ("algorithm", "sha1")):
        answer = client.put(
            f"/v1/sources/{name}", json={"webhook": {**GITHUB, field: value}, "into": into}
        )

        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), field


def test_create_compares_and_changes_nothing(client, put, queue, name):
    put()
    body = {
        "webhook": {**GITHUB, "tolerance_seconds": 9},
        "into": {"queue": queue.rpartition("/")[2]},
    }

    answer = client.put(f"/v1/sources/{name}", json=body, headers={"if-none-match": "*"})

    assert answer.status_code == 412
    assert SECRET not in answer.text
