"""Consumers of a queue over HTTP, whichever protocol they receive by."""

from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.aws_clients import aws_client
from tests.cli_commands import millstream

RECEIVED_BY = ("principal", "protocol", "address", "client")


def consumers(client: httpx.Client, queue: str) -> list[dict[str, Any]]:
    answer = client.get(f"{queue}/consumers")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_consumer_is_named_by_principal_protocol_address_and_client(client, queue):
    client.post(f"{queue}/messages", json={"messages": [{"body": "a"}, {"body": "b"}]})
    headers = {"user-agent": "worker/7 (shop)"}
    client.post(f"{queue}/receive", json={"messages_max": 2}, headers=headers)
    [one] = consumers(client, queue)
    [first, _] = client.get(f"{queue}/messages").json()["items"]

    assert {name: one[name] for name in RECEIVED_BY} == {
        "principal": "local-administrator",
        "protocol": "rest",
        "address": "127.0.0.1",
        "client": "worker/7 (shop)",
    }
    assert (one["in_flight"], one["waiting"]) == (2, 0)
    assert one["messages_per_second"] > one["receives_per_second"] > 0
    assert first["last_received_by"] == {
        "consumer": one["id"],
        **{name: one[name] for name in RECEIVED_BY},
    }


def test_consumers_of_every_protocol_are_listed(client, queue, service_url):
    name = queue.rpartition("/")[2]
    client.post(f"{queue}/messages", json={"messages": [{"body": "x"}] * 3})
    client.post(f"{queue}/receive")
    sqs = aws_client("sqs", service_url)
    sqs.receive_message(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
    sqs.close()
    address = f"{service_url.replace('http', 'ws')}/v1/ws"
    with connect(address, additional_headers={"authorization": "Bearer x"}) as socket:
        socket.send('{"type":"hello","token":"x"}')
        socket.recv()
        socket.send(
            f'{{"type":"subscribe","id":"1","sub":"s","source":"queue:{name}","credit":{{"messages":1,"bytes":1000}}}}'
        )
        while '"messages"' not in str(socket.recv()):
            pass
        listed = consumers(client, queue)

    assert sorted(one["protocol"] for one in listed) == ["rest", "sqs", "ws"]
    assert {one["protocol"]: one["in_flight"] for one in listed} == dict.fromkeys(
        ("rest", "sqs", "ws"), 1
    )
    assert "Boto3" in next(one["client"] for one in listed if one["protocol"] == "sqs")


@pytest.mark.parametrize("agent", ["", "\x80" * 300, "a\tb"])
def test_any_user_agent_is_taken(client, queue, agent):
    headers = {"user-agent": agent.encode("latin-1")}
    client.post(f"{queue}/receive", headers=headers)
    [one] = consumers(client, queue)

    assert len(one["client"]) <= 100
    assert one["client"].isprintable()


def test_history_names_consumer_of_each_attempt(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"history": True}).raise_for_status()
    client.post(f"{queue}/messages", json={"body": "x"})
    headers = {"user-agent": "worker/7"}
    [message] = client.post(f"{queue}/receive", headers=headers).json()["messages"]
    verdict = {"receipt_handle": message["receipt_handle"], "action": "nack", "reason": "no"}
    client.post(f"{queue}/settle", json={"settlements": [{**verdict, "details": "line 7"}]})
    [attempt] = client.get(f"{queue}/messages/{message['id']}/history").json()["attempts"]

    assert attempt["consumer"]["client"] == "worker/7"
    assert (attempt["number"], attempt["outcome"]) == (1, "nacked")
    assert (attempt["reason"], attempt["details"]) == ("no", "line 7")


def test_too_long_details_are_refused(client, queue):
    verdict = {"receipt_handle": "x", "action": "nack", "details": "x" * 4097}
    answer = client.post(f"{queue}/settle", json={"settlements": [verdict]})

    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
    assert answer.json()["errors"][0]["pointer"] == "/settlements/0/details"


def test_consumers_of_missing_queue_are_not_found(client):
    answer = client.get("/v1/queues/missing/consumers")

    assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")


def test_command_lists_consumers(client, queue, service_url, monkeypatch, tmp_path):
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    name = queue.rpartition("/")[2]
    millstream("queue", "send", name, "hello")
    millstream("queue", "receive", name)

    [row] = millstream("queue", "consumers", name, "-o", "json").json
    table = millstream("queue", "consumers", name).out

    assert row["protocol"] == "rest"
    assert "millstream-client/" in table
