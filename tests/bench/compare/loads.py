"""Operations by protocol, with one load generator per protocol."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.bench import payloads
from tests.bench.compare.results import Did
from tests.bench.load import Load, output_of, wrk
from tests.bench.ratios import Unmeasurable
from tests.bench.rows_kinesis import KIND as KINESIS
from tests.bench.rows_kinesis import TARGET
from tests.bench.rows_sqs import KIND as SQS
from tests.bench.wire import JSON, MSGPACK, REPLY_S_MAX, call, post_all

ONE_AT_A_TIME, OF_BATCHES = 64, 8  # connections
ROUND_S_MAX = 300.0  # includes sending one by one beforehand, each with a wait for the disk
TEN = 10
NAME = "compare"
READS = 40
Round = Callable[[int], Did]
"""Run an operation for this many seconds."""

SIGNED: Mapping[str, str] = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/%s/aws4_request, "
    "SignedHeaders=host, Signature=00",
    "X-Amz-Date": "20260101T000000Z",
}
"""Headers that emulators require, and do not verify."""


def signed(service: str) -> Mapping[str, str]:
    """A load for a service."""
    return {name: value.replace("%s", service) for name, value in SIGNED.items()}


def _did(load: Load, messages: float) -> Did:
    return Did(messages / load.seconds, load.p99_ms)


class Aws:
    """SQS or Kinesis in JSON, at one address."""

    def __init__(self, port: int, folder: Path, service: str) -> None:
        self.port = port
        self._folder = folder
        self._headers = signed(service)

    def ask(self, target: str, kind: str, asked: Mapping[str, Any]) -> Any:
        """Make a call; raises Unmeasurable if it fails."""
        headers = {**self._headers, "Content-Type": kind, "X-Amz-Target": target}
        url = f"http://127.0.0.1:{self.port}/"
        answer = httpx.post(url, content=json.dumps(asked), headers=headers, timeout=REPLY_S_MAX)
        if answer.status_code != 200:
            raise Unmeasurable(f"{target} was answered {answer.status_code}: {answer.text[:200]}")
        return json.loads(answer.content or b"{}")

    def wrk(self, script: str, *words: str, seconds: int, connections: int) -> Load:
        """A signed load."""
        return wrk(
            self.port,
            script,
            *words,
            seconds=seconds,
            connections=connections,
            headers=self._headers,
        )

    def file(self, name: str, contents: str) -> str:
        """Write a file for wrk."""
        path = self._folder / f"{name}-{self.port}"
        path.write_text(contents)
        return str(path)


def sqs(port: int, folder: Path, guess: int, connections: int = ONE_AT_A_TIME) -> dict[str, Round]:
    """`guess`: an estimate of the messages it delivers per second."""
    aws = Aws(port, folder, "sqs")
    url = aws.ask("AmazonSQS.CreateQueue", SQS, {"QueueName": NAME})["QueueUrl"]
    body = payloads.BODY.decode()
    message = aws.file("message", json.dumps({"QueueUrl": url, "MessageBody": body}))
    entries = [{"Id": str(nth), "MessageBody": body} for nth in range(TEN)]
    batch = aws.file("ten", json.dumps({"QueueUrl": url, "Entries": entries}))

    def send(seconds: int) -> Did:
        words = ("POST", SQS, "*/*", message, "/", "1", "0", "AmazonSQS.SendMessage")
        load = aws.wrk("fixed.lua", *words, seconds=seconds, connections=connections)
        return _did(load, load.calls)

    def work(seconds: int) -> Did:
        _fill(seconds * guess)
        load = aws.wrk("sqs_work.lua", url, seconds=seconds, connections=connections)
        if load.empty > load.calls // 10:
            raise Unmeasurable("the queue ran dry")
        return _did(load, load.delivered)

    def _fill(messages: int) -> None:
        sent = 0
        while sent < messages:
            words = ("POST", SQS, "*/*", batch, "/", "1", "0", "AmazonSQS.SendMessageBatch")
            load = aws.wrk("fixed.lua", *words, seconds=1, connections=connections)
            sent += TEN * load.calls

    return {"send": send, "work": work}


def kinesis(port: int, folder: Path) -> dict[str, Round]:
    """Create a stream of one shard."""
    aws = Aws(port, folder, "kinesis")
    aws.ask(f"{TARGET}.CreateStream", KINESIS, {"StreamName": NAME, "ShardCount": 1})
    _wait_until_active(aws)
    data = base64.b64encode(payloads.BODY).decode()
    records = [{"Data": data, "PartitionKey": f"key-{nth}"} for nth in range(payloads.RECORDS)]
    request = {"StreamName": NAME, "Records": records}
    put = aws.file("put", f"{json.dumps(request)}\n")

    def produce(seconds: int) -> Did:
        words = (KINESIS, f"{TARGET}.PutRecords", put)
        load = aws.wrk("lines.lua", *words, seconds=seconds, connections=OF_BATCHES)
        return _did(load, load.calls * payloads.RECORDS)

    def read(seconds: int) -> Did:
        lines = "".join(f"{json.dumps(each_read)}\n" for each_read in _reads(aws, request))
        words = (KINESIS, f"{TARGET}.GetRecords", aws.file("get", lines))
        load = aws.wrk("lines.lua", *words, seconds=seconds, connections=OF_BATCHES)
        return _did(load, load.calls * payloads.RECORDS)

    return {"produce": produce, "read": read}


def _wait_until_active(aws: Aws) -> None:
    for _ in range(100):
        response = aws.ask(f"{TARGET}.DescribeStreamSummary", KINESIS, {"StreamName": NAME})
        if response["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE":
            return
    raise Unmeasurable("the stream was not made")


def _reads(aws: Aws, asked: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Different reads of RECORDS records each."""
    for _ in range(READS):
        aws.ask(f"{TARGET}.PutRecords", KINESIS, asked)
    shards = aws.ask(f"{TARGET}.ListShards", KINESIS, {"StreamName": NAME})["Shards"]
    shard = {"ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    response = aws.ask(f"{TARGET}.GetShardIterator", KINESIS, {"StreamName": NAME, **shard})
    iterator = response["ShardIterator"]
    for _ in range(READS):
        fields = {"ShardIterator": iterator, "Limit": payloads.RECORDS}
        yield fields
        iterator = aws.ask(f"{TARGET}.GetRecords", KINESIS, fields)["NextShardIterator"]


def rest(port: int, folder: Path, guess: int) -> dict[str, Round]:
    """Millstream's native protocol."""
    queue, stream = "/v1/queues/compare-rest", "/v1/streams/compare-rest"
    call(port, "PUT", queue, {})
    call(port, "PUT", stream, {"shards": 1})
    message, columns = folder / "rest-message", folder / "rest-columns"
    message.write_bytes(payloads.message_as_json())
    columns.write_bytes(payloads.columns())

    def send(seconds: int) -> Did:
        words = ("POST", JSON, JSON, str(message), f"{queue}/messages", "1", "0")
        load = wrk(port, "fixed.lua", *words, seconds=seconds, connections=ONE_AT_A_TIME)
        return _did(load, load.calls)

    def work(seconds: int) -> Did:
        batch = (f"{queue}/messages", payloads.messages(1_000), MSGPACK)
        post_all(port, [batch] * (seconds * guess // 1_000))
        load = wrk(port, "receive_settle.lua", queue, seconds=seconds, connections=ONE_AT_A_TIME)
        if load.empty > load.calls // 10:
            raise Unmeasurable("the queue ran dry")
        return _did(load, load.delivered)

    def produce(seconds: int) -> Did:
        words = ("POST", MSGPACK, MSGPACK, str(columns), f"{stream}/columns", "1", "0")
        load = wrk(port, "fixed.lua", *words, seconds=seconds, connections=OF_BATCHES)
        return _did(load, load.calls * payloads.RECORDS)

    def read(seconds: int) -> Did:
        post_all(port, [(f"{stream}/columns", payloads.columns(), MSGPACK)] * READS)
        path = f"{stream}/shards/0/records?limit={payloads.RECORDS}&offset=%d"
        words = ("GET", JSON, MSGPACK, "-", path, str(READS), str(payloads.RECORDS))
        load = wrk(port, "fixed.lua", *words, seconds=seconds, connections=OF_BATCHES)
        return _did(load, load.calls * payloads.RECORDS)

    return {"send": send, "work": work, "produce": produce, "read": read}


def native(program: Path, broker: str, url: str, *words: str) -> dict[str, Round]:
    """RabbitMQ or NATS, through their Go clients."""

    def does(operation: str, callers: int) -> Round:
        def round_(seconds: int) -> Did:
            numbers = (str(seconds), str(payloads.BODY_BYTES), str(callers))
            command = [str(program), broker, url, operation, *numbers, *words]
            body = json.loads(output_of(command, ROUND_S_MAX))
            return Did(body["messages"] / body["seconds"], body["p99_ms"])

        return round_

    operations = {"send": ONE_AT_A_TIME, "work": 16, "produce": OF_BATCHES}
    if broker == "nats":
        operations["read"] = OF_BATCHES
    return {name: does(name, callers) for name, callers in operations.items()}
