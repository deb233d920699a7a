"""Operations by protocol, with one load generator per protocol."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from tests.bench import payloads
from tests.bench.compare.processor import processor_time
from tests.bench.compare.results import Did
from tests.bench.load import Load, output_of, wrk
from tests.bench.ratios import Unmeasurable
from tests.bench.rows_kinesis import KIND as KINESIS
from tests.bench.rows_kinesis import TARGET
from tests.bench.rows_sqs import KIND as SQS
from tests.bench.wire import JSON, MSGPACK, REPLY_S_MAX, call, post_all

ONE_AT_A_TIME, OF_TEN, OF_BATCHES = 64, 16, 8  # callers
ROUND_S_MAX = 60.0
TEN, BATCH = 10, 1_000
NAME = "compare"
READS = 40
FILL_S_MAX = 8  # some take minutes to fill: their rounds end when everything is received
FILLED = 40_000  # messages per second that the first round may take
READABLE = 400_000
PUBLISHED = 5_000  # messages for each second of a round, with ten copies each
SPARE = 1.3  # headroom over the round before
UNDELIVERED = 2_000  # messages that other callers may have prefetched
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


class Backlog:
    """Number of messages to have ready for a round: a little more than the last one took."""

    def __init__(self) -> None:
        self._rate = float(FILLED)

    def wanted(self, seconds: int) -> int:
        """Messages for a round of this duration."""
        return round(self._rate * seconds) + UNDELIVERED

    def learn(self, rate: float) -> None:
        """Take note of the rate of a round."""
        self._rate = max(rate * SPARE, 1.0)


def _measured(load: Callable[[], Load], messages: Callable[[Load], float]) -> Did:
    with processor_time() as spent:
        done = load()
    count_ = messages(done)
    if not count_:
        raise Unmeasurable("no message was received")
    return Did(count_ / done.seconds, done.p50_ms, done.p99_ms, 1e6 * spent.seconds / count_)


def _received(load: Load) -> float:
    if load.empty > load.calls // 20:
        raise Unmeasurable("the queue ran dry")
    return load.delivered


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


def sqs(port: int, folder: Path) -> dict[str, Round]:
    """One queue, of which a round of work leaves little."""
    aws, backlog = Aws(port, folder, "sqs"), Backlog()
    url = aws.ask("AmazonSQS.CreateQueue", SQS, {"QueueName": NAME})["QueueUrl"]
    body = payloads.BODY.decode()
    message = aws.file("message", json.dumps({"QueueUrl": url, "MessageBody": body}))
    entries = [{"Id": str(nth), "MessageBody": body} for nth in range(TEN)]
    batch = aws.file("ten", json.dumps({"QueueUrl": url, "Entries": entries}))

    def send(seconds: int) -> Did:
        words = ("POST", SQS, "*/*", message, "/", "1", "0", "AmazonSQS.SendMessage")
        return _measured(
            lambda: aws.wrk("fixed.lua", *words, seconds=seconds, connections=ONE_AT_A_TIME),
            lambda load: load.calls,
        )

    def work(seconds: int) -> Did:
        _fill(backlog.wanted(seconds))
        did = _measured(
            lambda: aws.wrk("sqs_work.lua", url, seconds=seconds, connections=OF_TEN),
            _received,
        )
        backlog.learn(did.messages_s)
        return did

    def _fill(messages: int) -> None:
        words = ("POST", SQS, "*/*", batch, "/", "1", "0", "AmazonSQS.SendMessageBatch")
        sent = 0
        for _ in range(FILL_S_MAX):
            load = aws.wrk("fixed.lua", *words, seconds=1, connections=OF_TEN)
            sent += TEN * load.calls
            if sent >= messages:
                return

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
        return lines("PutRecords", put, seconds)

    def read(seconds: int) -> Did:
        reads = "".join(f"{json.dumps(each_read)}\n" for each_read in _reads(aws, request))
        return lines("GetRecords", aws.file("get", reads), seconds)

    def lines(operation: str, file: str, seconds: int) -> Did:
        words = (KINESIS, f"{TARGET}.{operation}", file)
        return _measured(
            lambda: aws.wrk("lines.lua", *words, seconds=seconds, connections=OF_BATCHES),
            lambda load: load.calls * payloads.RECORDS,
        )

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


def rest(port: int, folder: Path) -> dict[str, Round]:
    """Millstream's native protocol."""
    queue, stream, backlog = "/v1/queues/compare-rest", "/v1/streams/compare-rest", Backlog()
    call(port, "PUT", queue, {})
    call(port, "PUT", stream, {"shards": 1})
    message, columns = folder / "rest-message", folder / "rest-columns"
    message.write_bytes(payloads.message_as_json())
    columns.write_bytes(payloads.columns())

    def fixed(words: tuple[str, ...], messages: int, callers: int, seconds: int) -> Did:
        return _measured(
            lambda: wrk(port, "fixed.lua", *words, seconds=seconds, connections=callers),
            lambda load: load.calls * messages,
        )

    def send(seconds: int) -> Did:
        words = ("POST", JSON, JSON, str(message), f"{queue}/messages", "1", "0")
        return fixed(words, 1, ONE_AT_A_TIME, seconds)

    def work(seconds: int) -> Did:
        batch = (f"{queue}/messages", payloads.messages(BATCH), MSGPACK)
        post_all(port, [batch] * (backlog.wanted(seconds) // BATCH + 1))
        did = _measured(
            lambda: wrk(port, "receive_settle.lua", queue, seconds=seconds, connections=OF_TEN),
            _received,
        )
        backlog.learn(did.messages_s)
        return did

    def produce(seconds: int) -> Did:
        words = ("POST", MSGPACK, MSGPACK, str(columns), f"{stream}/columns", "1", "0")
        return fixed(words, payloads.RECORDS, OF_BATCHES, seconds)

    def read(seconds: int) -> Did:
        post_all(port, [(f"{stream}/columns", payloads.columns(), MSGPACK)] * READS)
        path = f"{stream}/shards/0/records?limit={payloads.RECORDS}&offset=%d"
        words = ("GET", JSON, MSGPACK, "-", path, str(READS), str(payloads.RECORDS))
        return fixed(words, payloads.RECORDS, OF_BATCHES, seconds)

    return {"send": send, "work": work, "produce": produce, "read": read}


class Native:
    """A broker, loaded through its own Go client; each round has a queue or log of its own."""

    CALLERS: Mapping[str, int] = {
        "send": ONE_AT_A_TIME,
        "work": OF_TEN,
        "produce": OF_BATCHES,
        "read": OF_BATCHES,
        "fill": OF_BATCHES,
        "fan-out": OF_BATCHES,
    }

    def __init__(self, program: Path, broker: str, url: str) -> None:
        self._command = [str(program), "-broker", broker, "-url", url]
        self._backlog = Backlog()
        self._names = (f"{NAME}-{number}" for number in count(1))
        self._readable: tuple[str, int] | None = None

    def operations(self, *names: str) -> dict[str, Round]:
        """These operations of the broker."""
        return {name: getattr(self, name) for name in names}

    def send(self, seconds: int) -> Did:
        """One message a call."""
        return self._of_a_new_log("send", seconds)

    def produce(self, seconds: int) -> Did:
        """RECORDS messages a call."""
        return self._of_a_new_log("produce", seconds)

    def topic_operations(self) -> dict[str, Round]:
        """Publications of one message and of RECORDS a call, and copies to ten queues."""
        return {"publish": self.send, "publish-batch": self.produce, "fan-out": self.fan_out}

    def fan_out(self, seconds: int) -> Did:
        """Publish, and acknowledge the copies of all messages in ten queues at the same time."""
        return self._of_a_new_log("fan-out", seconds, PUBLISHED * seconds)

    def work(self, seconds: int) -> Did:
        """Ten messages a call, until the time is over or most of them are received."""
        name, filled = self._filled(self._backlog.wanted(seconds))
        did = self._measured("work", name, seconds, filled - UNDELIVERED)
        self._backlog.learn(did.messages_s)
        self._run("drop", name)
        return did

    def read(self, seconds: int) -> Did:
        """RECORDS messages a call, again and again."""
        if self._readable is None:
            self._readable = self._filled(READABLE)
        name, filled = self._readable
        return self._measured("read", name, seconds, filled)

    def _of_a_new_log(self, operation: str, seconds: int, limit: int = 0) -> Did:
        name = next(self._names)
        self._run("create", name)
        did = self._measured(operation, name, seconds, limit)
        self._run("drop", name)
        return did

    def _filled(self, messages: int) -> tuple[str, int]:
        name = next(self._names)
        self._run("create", name)
        done = self._run("fill", name, FILL_S_MAX, messages)
        return name, done["messages"]

    def _measured(self, operation: str, name: str, seconds: int, limit: int = 0) -> Did:
        with processor_time() as spent:
            done = self._run(operation, name, seconds, limit)
        messages = done["messages"]
        return Did(
            messages / done["seconds"],
            done["p50_ms"],
            done["p99_ms"],
            1e6 * spent.seconds / messages,
        )

    def _run(self, operation: str, name: str, seconds: int = 1, limit: int = 0) -> Any:
        callers = self.CALLERS.get(operation, 1)
        numbers = {"seconds": seconds, "size": payloads.BODY_BYTES, "limit": limit}
        words = [f"-{option}={value}" for option, value in numbers.items()]
        words += [f"-operation={operation}", f"-name={name}", f"-callers={callers}"]
        return json.loads(output_of([*self._command, *words], ROUND_S_MAX))
