"""boto3's Kinesis client, a raw one for both encodings, and new streams."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import cbor2
import httpx
import pytest
from botocore.exceptions import ClientError

from tests.aws_clients import aws_client

JSON, CBOR = "application/x-amz-json-1.1", "application/x-amz-cbor-1.1"

_numbers = itertools.count(1)


def client_of(url: str) -> Any:
    """Create boto3's client, without retries or validation of its own."""
    return aws_client("kinesis", url, parameter_validation=False)


@pytest.fixture(scope="session")
def kinesis(service_url: str) -> Iterator[Any]:
    client = client_of(service_url)
    yield client
    client.close()


class Raw:
    """Calls in either encoding, as raw bytes."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def post(
        self, operation: str, asked: object, kind: str = JSON, content: bytes | None = None
    ) -> httpx.Response:
        """Return the whole response."""
        if content is None:
            content = json.dumps(asked).encode() if kind == JSON else cbor2.dumps(asked)
        target = f"Kinesis_20131202.{operation}"
        headers = {"x-amz-target": target, "content-type": kind}
        return self.http.post("/", content=content, headers=headers)

    def call(self, operation: str, asked: object, kind: str = JSON) -> Any:
        """Return the result; raises AssertionError for an error."""
        answer = self.post(operation, asked, kind)
        assert answer.status_code == 200, answer.content
        return read(answer)


def read(answer: httpx.Response) -> Any:
    """Decode a response's body by its media type; times stay as they are on the wire."""
    if not answer.content:
        return None
    if answer.headers["content-type"] == CBOR:
        return cbor2.loads(
            answer.content, semantic_decoders={1: lambda value, _: cbor2.CBORTag(1, value)}
        )
    assert answer.headers["content-type"] == JSON
    return answer.json()


@pytest.fixture
def raw(client: httpx.Client) -> Raw:
    return Raw(client)


@pytest.fixture
def name() -> str:
    """A name of a stream that is not in use."""
    return f"kinesis{next(_numbers)}"


@pytest.fixture
def stream(kinesis: Any, name: str) -> str:
    """The name of a new stream of two shards."""
    kinesis.create_stream(StreamName=name, ShardCount=2)
    return name


@pytest.fixture
def single(kinesis: Any, name: str) -> str:
    """The name of a new stream of one shard."""
    kinesis.create_stream(StreamName=f"{name}x", ShardCount=1)
    return f"{name}x"


@pytest.fixture
def on_demand(kinesis: Any, name: str) -> str:
    """The name of a new stream in on-demand mode."""
    kinesis.create_stream(StreamName=f"{name}y", StreamModeDetails={"StreamMode": "ON_DEMAND"})
    return f"{name}y"


def arn_of(kinesis: Any, stream: str) -> str:
    """Return a stream's ARN."""
    response = kinesis.describe_stream_summary(StreamName=stream)
    return str(response["StreamDescriptionSummary"]["StreamARN"])


def shards_of(kinesis: Any, stream: str) -> list[Any]:
    """List a stream's shards."""
    return list(kinesis.list_shards(StreamName=stream)["Shards"])


def iterator_of(
    kinesis: Any, stream: str, shard: int = 0, kind: str = "TRIM_HORIZON", **more: Any
) -> str:
    """Get a shard iterator."""
    response = kinesis.get_shard_iterator(
        StreamName=stream, ShardId=f"shardId-{shard:012d}", ShardIteratorType=kind, **more
    )
    return str(response["ShardIterator"])


def records_of(kinesis: Any, stream: str, shard: int = 0) -> list[Any]:
    """Read all records of a shard."""
    return list(kinesis.get_records(ShardIterator=iterator_of(kinesis, stream, shard))["Records"])


def refusal(call: Callable[..., Any], **asked: Any) -> tuple[int, str, str]:
    """Return the status, code and message of a rejected boto3 call."""
    with pytest.raises(ClientError) as refused:
        call(**asked)
    response = refused.value.response
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    return status, response["Error"]["Code"], response["Error"]["Message"]
