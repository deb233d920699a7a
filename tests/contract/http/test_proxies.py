"""The proxies of docs/how-to/tls.md: every protocol works through them, unbuffered."""

import os
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from api.websocket.frames import JSON_PROTOCOL
from storage.domain import limits
from tests.conditions import PATIENCE_S, wait_until
from tests.javascript import install, steps_of
from tests.proxies import Proxy, running_haproxy, running_nginx
from tests.server_sent_events import events_of
from tests.websocket_client import Socket

JAVASCRIPT = Path(__file__).parents[1] / "kinesis" / "javascript"
PROXIES = {"nginx": running_nginx, "haproxy": running_haproxy}


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    request: pytest.FixtureRequest, service_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """Each proxy in turn."""
    start, folder = PROXIES[request.param], tmp_path_factory.mktemp(request.param)
    with start(urlsplit(service_url).netloc, folder) as proxy, proxy.client() as client:
        wait_until(lambda: client.get("/livez").status_code == 200)
        yield proxy


def test_sqs_works_through_proxy(proxy: Proxy, name: str):
    sqs = proxy.aws("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert url.startswith(f"{proxy.url}/")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=20)

        sqs.send_message(QueueUrl=url, MessageBody="a" * limits.MESSAGE_BYTES_MAX)

        [message] = waiting.result(PATIENCE_S)["Messages"]
    assert len(message["Body"]) == limits.MESSAGE_BYTES_MAX
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_kinesis_works_through_proxy(proxy: Proxy, name: str):
    kinesis = proxy.aws("kinesis")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(StreamName=name)
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="one")["Consumer"]
    wait_until(lambda: _is_active(kinesis, consumer["ConsumerARN"]))
    subscribed = kinesis.subscribe_to_shard(
        ConsumerARN=consumer["ConsumerARN"],
        ShardId="shardId-000000000000",
        StartingPosition={"Type": "TRIM_HORIZON"},
    )["EventStream"]
    big = [{"Data": os.urandom(900_000), "PartitionKey": str(number)} for number in range(10)]

    assert kinesis.put_records(StreamName=name, Records=big)["FailedRecordCount"] == 0

    data: list[bytes] = []
    for event in subscribed:
        data += [record["Data"] for record in event["SubscribeToShardEvent"]["Records"]]
        if len(data) == len(big):
            break
    subscribed.close()
    kinesis.delete_stream(StreamName=name, EnforceConsumerDeletion=True)
    assert data == [record["Data"] for record in big]


def _is_active(kinesis: Any, arn: str) -> bool:
    consumer_description = kinesis.describe_stream_consumer(ConsumerARN=arn)["ConsumerDescription"]
    return bool(consumer_description["ConsumerStatus"] == "ACTIVE")


def test_events_arrive_while_response_continues(proxy: Proxy, name: str):
    with proxy.client() as client:
        client.put(f"/v1/streams/{name}", json={}).raise_for_status()
        with client.stream("GET", f"/v1/streams/{name}/events") as answer:
            events = events_of(answer.iter_lines())
            for number in range(3):
                record = {"data": str(number), "key": "a"}
                client.post(
                    f"/v1/streams/{name}/records", json={"records": [record]}
                ).raise_for_status()
                assert next(events).data["data"] == str(number)


async def test_websocket_works_through_proxy(proxy: Proxy, name: str):
    with proxy.client() as client:
        client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    async with connect(
        proxy.url.replace("https", "wss") + "/v1/ws",
        ssl=ssl.create_default_context(cafile=str(proxy.ca)),
        subprotocols=[Subprotocol(JSON_PROTOCOL)],
    ) as connection:
        member = Socket(connection)
        await member.hello()
        await member.subscribe("s", f"queue:{name}", credit={"messages": 10})

        with proxy.client() as client:
            client.post(f"/v1/queues/{name}/messages", json={"body": "hello"})

        [message] = (await member.receive_frame("messages"))["messages"]
    assert message["body"] == "hello"


def test_disconnected_waiting_receive_takes_nothing(proxy: Proxy, name: str):
    queue = f"/v1/queues/{name}"
    with proxy.client() as client:
        client.put(queue, json={}).raise_for_status()
        with pytest.raises(httpx.ReadTimeout):
            client.post(f"{queue}/receive", json={"wait_seconds": 20}, timeout=0.5)
        wait_until(lambda: proxy.has_seen_one_leave())
        client.post(f"{queue}/messages", json={"body": "hello"}).raise_for_status()

        [message] = client.post(f"{queue}/receive", json={}).json()["messages"]

    assert (message["body"], message["receive_count"]) == ("hello", 1)


def test_dashboard_examples_use_proxy_address(proxy: Proxy, name: str):
    with proxy.client() as client:
        client.put(f"/v1/queues/{name}", json={}).raise_for_status()

        page = client.get(f"/ui/queues/{name}/code").raise_for_status().text

    assert f"{proxy.url}/v1/queues/{name}/messages" in page


@pytest.mark.parametrize("proxy", ["haproxy"], indirect=True)
def test_http2_only_clients_work_through_proxy(proxy: Proxy, name: str):
    install(JAVASCRIPT)

    steps = steps_of(
        JAVASCRIPT,
        *("env", f"NODE_EXTRA_CA_CERTS={proxy.ca}"),
        *("node", "exercise.mjs", proxy.url, name),
    )

    assert ' HTTP/2.0"' in proxy.log()
    assert steps["subscribed"]["records"] == steps["got"]["records"]
    assert len(steps["got"]["records"]) == 3
    assert [child["ShardId"][-1] for child in steps["split"]["children"]] == ["1", "2"]
