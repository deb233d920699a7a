"""docs/how-to/tls.md's nginx before a service: every door goes through it, and nothing waits there."""

import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest
from botocore.config import Config
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from api.push.frames import JSON_PROTOCOL
from storage.domain import limits
from storage.embedded.processes import child_setup
from tests.debian import debian_program
from tests.documentation import DOCS, blocks
from tests.server_sent_events import events_of
from tests.sockets import Socket
from tests.tls import Certificates, make_certificates
from tests.waiting import until

PAGE = DOCS / "how-to" / "tls.md"
PATIENCE_S = 10.0
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

MAIN = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ }}
http {{
    access_log {folder}/access.log;
    {temporary}
    {site}
}}
"""


class Nginx:
    """It runs, and is reached at `url` by whoever trusts the CA."""

    def __init__(self, url: str, certificates: Certificates, folder: Path) -> None:
        self.url = url
        self.ca = certificates.ca
        self._access_log = folder / "access.log"

    def client(self) -> httpx.Client:
        """A client of what is behind it."""
        trust = ssl.create_default_context(cafile=str(self.ca))
        return httpx.Client(base_url=self.url, verify=trust, timeout=30)

    def aws(self, service: str) -> Any:
        """An unmodified boto3; it tries once."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            verify=str(self.ca),
            config=Config(retries={"max_attempts": 0}),
        )

    def has_answered(self, status: int) -> bool:
        """Whether any call so far ended like this; 499 is a caller that left."""
        return f" {status} " in self._access_log.read_text()


@pytest.fixture(scope="module")
def nginx(service_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """nginx as the page configures it, but for its port, its certificate and where Millstream is."""
    folder = tmp_path_factory.mktemp("nginx")
    certificates = make_certificates(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        site = _site(urlsplit(service_url).netloc, port, certificates)
        with _running(_configured(folder, site), listener):
            nginx = Nginx(f"https://localhost:{port}", certificates, folder)
            with nginx.client() as client:
                until(lambda: client.get("/livez").status_code == 200)
            yield nginx


def _site(service: str, port: int, certificates: Certificates) -> str:
    [page] = [block.text for block in blocks(PAGE) if block.language == "nginx"]
    ours = {
        "127.0.0.1:8080": service,
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/millstream/tls/fullchain.pem": str(certificates.server),
        "/etc/millstream/tls/privkey.pem": str(certificates.server_key),
    }
    for theirs, own in ours.items():
        assert theirs in page
        page = page.replace(theirs, own)
    return page


def _configured(folder: Path, site: str) -> Path:
    path = folder / "nginx.conf"
    temporary = "".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
    user = "" if os.geteuid() else "user root;"
    path.write_text(MAIN.format(folder=folder, temporary=temporary, site=site, user=user))
    return path


@contextmanager
def _running(configuration: Path, listener: socket.socket) -> Iterator[None]:
    """`NGINX` names sockets that it is handed, as at an upgrade: so it never asks for a port that is taken meanwhile."""
    folder = configuration.parent
    words = [debian_program("nginx"), "-e", f"{folder}/error.log", "-c", str(configuration)]
    process = subprocess.Popen(
        words,
        env={**os.environ, "NGINX": f"{listener.fileno()};"},
        pass_fds=[listener.fileno()],
        preexec_fn=child_setup(signal.SIGTERM),
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_sqs_goes_through(nginx: Nginx, name: str):
    sqs = nginx.aws("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert url.startswith(f"{nginx.url}/")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=20)

        sqs.send_message(QueueUrl=url, MessageBody="a" * limits.MESSAGE_BYTES_MAX)

        [message] = waiting.result(PATIENCE_S)["Messages"]
    assert len(message["Body"]) == limits.MESSAGE_BYTES_MAX
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_kinesis_goes_through(nginx: Nginx, name: str):
    kinesis = nginx.aws("kinesis")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(StreamName=name)
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="one")["Consumer"]
    until(lambda: _is_active(kinesis, consumer["ConsumerARN"]))
    subscribed = kinesis.subscribe_to_shard(
        ConsumerARN=consumer["ConsumerARN"],
        ShardId="shardId-000000000000",
        StartingPosition={"Type": "TRIM_HORIZON"},
    )["EventStream"]
    big = [{"Data": os.urandom(900_000), "PartitionKey": str(number)} for number in range(10)]

    assert kinesis.put_records(StreamName=name, Records=big)["FailedRecordCount"] == 0

    heard: list[bytes] = []
    for event in subscribed:
        heard += [record["Data"] for record in event["SubscribeToShardEvent"]["Records"]]
        if len(heard) == len(big):
            break
    subscribed.close()
    kinesis.delete_stream(StreamName=name, EnforceConsumerDeletion=True)
    assert heard == [record["Data"] for record in big]


def _is_active(kinesis: Any, arn: str) -> bool:
    told = kinesis.describe_stream_consumer(ConsumerARN=arn)["ConsumerDescription"]
    return bool(told["ConsumerStatus"] == "ACTIVE")


def test_events_arrive_while_the_answer_goes_on(nginx: Nginx, name: str):
    with nginx.client() as client:
        client.put(f"/v1/streams/{name}", json={}).raise_for_status()
        with client.stream("GET", f"/v1/streams/{name}/events") as answer:
            events = events_of(answer.iter_lines())
            for number in range(3):
                record = {"data": str(number), "key": "a"}
                client.post(
                    f"/v1/streams/{name}/records", json={"records": [record]}
                ).raise_for_status()
                assert next(events).data["data"] == str(number)


async def test_a_socket_goes_through(nginx: Nginx, name: str):
    with nginx.client() as client:
        client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    async with connect(
        nginx.url.replace("https", "wss") + "/v1/ws",
        ssl=ssl.create_default_context(cafile=str(nginx.ca)),
        subprotocols=[Subprotocol(JSON_PROTOCOL)],
    ) as connection:
        member = Socket(connection)
        await member.hello()
        await member.subscribe("s", f"queue:{name}", credit={"messages": 10})

        with nginx.client() as client:
            client.post(f"/v1/queues/{name}/messages", json={"body": "hello"})

        [message] = (await member.hear("messages"))["messages"]
    assert message["body"] == "hello"


def test_who_leaves_while_it_waits_takes_nothing(nginx: Nginx, name: str):
    queue = f"/v1/queues/{name}"
    with nginx.client() as client:
        client.put(queue, json={}).raise_for_status()
        with pytest.raises(httpx.ReadTimeout):
            client.post(f"{queue}/receive", json={"wait_seconds": 20}, timeout=0.5)
        until(lambda: nginx.has_answered(499))
        client.post(f"{queue}/messages", json={"body": "hello"}).raise_for_status()

        [message] = client.post(f"{queue}/receive", json={}).json()["messages"]

    assert (message["body"], message["receives"]) == ("hello", 1)


def test_the_dashboards_examples_are_for_its_address(nginx: Nginx, name: str):
    with nginx.client() as client:
        client.put(f"/v1/queues/{name}", json={}).raise_for_status()

        page = client.get(f"/ui/queues/{name}/code").raise_for_status().text

    assert f"{nginx.url}/v1/queues/{name}/messages" in page
