"""Endpoints for operators and their tools."""

import httpx
import pytest


def test_livez_returns_200(client):
    for path in ("/livez", "/healthz"):
        assert client.get(path).json() == {"status": "ok"}


def test_readyz_returns_its_checks(client):
    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert set(answer.json()["checks"].values()) == {"ok"}


def test_health_checks_accept_any_host(client):
    assert client.get("/livez", headers={"host": "10.0.0.7"}).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/v1/queues", "/v1/queues/none", "/nothing"])
def test_request_id_is_returned(client, path):
    response = client.get(path, headers={"x-request-id": "abc-1"})
    made = client.get(path)
    unsafe = client.get(path, headers={"x-request-id": "a b"})

    assert response.headers["x-request-id"] == "abc-1"
    assert len(made.headers["x-request-id"]) >= 16
    assert unsafe.headers["x-request-id"] != "a b"


def test_head_answers_as_get_without_body(client, queue):
    for path in (queue, "/livez", f"{queue}/dead-letters"):
        answer = client.head(path)

        assert answer.status_code == 200
        assert answer.content == b""


def metric(client: httpx.Client, line: str) -> float:
    for actual_line in client.get("/metrics").text.splitlines():
        if actual_line.startswith(line + " "):
            return float(actual_line.rpartition(" ")[2])
    return 0


def test_throughput_is_counted(client, queue):
    lines = [
        'millstream_messages_received_total{kind="queue",protocol="http"}',
        'millstream_messages_confirmed_total{durability="fsync",kind="queue"}',
        'millstream_messages_delivered_total{ack="manual",kind="queue",mode="poll"}',
        'millstream_messages_acknowledged_total{kind="queue"}',
        'millstream_request_duration_seconds_count{operation="settle_messages",protocol="http",status_class="2xx"}',
    ]
    before = [metric(client, line) for line in lines]
    client.post(f"{queue}/messages", json={"body": "a"})
    [message] = client.post(f"{queue}/receive").json()["messages"]
    settlement = {"receipt_handle": message["receipt_handle"], "action": "ack"}
    client.post(f"{queue}/settle", json={"settlements": [settlement]})

    after = [metric(client, line) for line in lines]

    assert [now - then for now, then in zip(after, before, strict=True)] == [1] * len(lines)


def test_rejections_are_counted(client):
    line = (
        'millstream_request_duration_seconds_count{operation="receive_messages",'
        'protocol="http",status_class="4xx"}'
    )
    before = metric(client, line)

    client.post("/v1/queues/nothing/receive")

    assert metric(client, line) - before == 1


def test_metrics_include_build_info(client):
    assert 'millstream_build_info{python="' in client.get("/metrics").text
