"""Random calls built from the shapes, in both encodings, are rejected without effect.

The seed is fixed, so that a failure is reproducible.
"""

import base64
import json
import random

import cbor2
import pytest

from api.aws.kinesis.service import KINESIS
from api.aws.protocol.shapes import ListOf, MapOf, Scalar, plan_of
from tests.contract.kinesis.conftest import CBOR, JSON, arn_of, read, records_of

CALLS = 500
SEED = 20_131_202

WORDS = [
    "", "x", "0", "-1", "00", "9" * 39, "9" * 129, str(2**128), "null", "\x00", "\x07", "\ud7ff\ufffe", "é" * 200,
    "x" * 3_000, "a b", "..", "KMS", "NONE", "ALL", "ON_DEMAND", "PROVISIONED", "AUTO", "LATEST", "TRIM_HORIZON",
    "AT_TIMESTAMP", "AFTER_SEQUENCE_NUMBER", "shardId-000000000000", "shardId-000000000099", "UNIFORM_SCALING",
    "arn:aws:kinesis:us-east-1:000000000000:stream/x", "arn:aws:kinesis:x:1:y", '{"Statement":[]}', "ENABLED",
]  # fmt: skip
NUMBERS = [-(2**63), -1, 0, 1, 2, 24, 25, 1024, 8_761, 10_001, 2**31, 2**53]
TIMES = [-1.0, 0.0, 1.5, 1.7e9, 1e12, 1e300]
WRONG: list[object] = [None, True, 1.5, [], {}, [[]], [None], {"": None}, {"x": {"x": {}}}, "x", 5]
SPOILED = [b"", b"{", b"\xff\xfe", b"{}}", b'{"a":' * 500, b"\xbf", b"\xa1\x61a", b"\x9f" * 500]
# A valid one would take effect on what other tests use.
HARMFUL = {"DeleteStream", "UpdateAccountSettings", "CreateStream"}


def some_value(plan, known, chance, kind):
    """Build a value for this shape that may be valid."""
    if chance.random() < 0.08:
        return chance.choice(WRONG)
    match plan:
        case Scalar(of) if of is int:
            return chance.choice(NUMBERS)
        case Scalar(of) if of is float:
            moment = chance.choice(TIMES)
            return cbor2.CBORTag(1, moment) if kind == CBOR and chance.random() < 0.8 else moment
        case Scalar(of) if of is bool:
            return chance.choice([True, False])
        case Scalar(of) if of is bytes:
            data = chance.randbytes(chance.choice([0, 1, 50]))
            return data if kind == CBOR else base64.b64encode(data).decode()
        case Scalar():
            return chance.choice(WORDS)
        case ListOf(item):
            count = chance.choice([0, 1, 2, 51])
            return [some_value(item, known, chance, kind) for _ in range(count)]
        case MapOf(_, _, value):
            keys = chance.sample(WORDS, chance.choice([0, 1, 3, 20]))
            return {key: some_value(value, known, chance, kind) for key in keys}
        case _:
            return {
                member.name: known[member.name]
                if member.name in known and chance.random() < 0.8
                else some_value(member.plan, known, chance, kind)
                for member in plan.members
                if chance.random() < 0.75
            }


def assert_told(answer):
    assert answer.status_code in (200, 400), answer.content
    if answer.status_code == 400:
        told = read(answer)
        assert told["__type"].endswith("Exception"), told
        assert isinstance(told["message"], str)


@pytest.fixture
def untouched(kinesis, name):
    """A stream with one record, which must still be there at the end."""
    kinesis.create_stream(StreamName=f"{name}-untouched", ShardCount=1)
    kinesis.put_record(StreamName=f"{name}-untouched", Data=b"still here", PartitionKey="k")
    yield
    assert [record["Data"] for record in records_of(kinesis, f"{name}-untouched")] == [
        b"still here"
    ]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("kind", [JSON, CBOR])
def test_random_calls_are_answered_or_rejected(kinesis, raw, stream, kind):
    chance = random.Random(SEED)
    arn = arn_of(kinesis, stream)
    fields = {
        "StreamName": stream,
        "StreamARN": arn,
        "ResourceARN": arn,
        "ShardIterator": kinesis.get_shard_iterator(
            StreamName=stream, ShardId="0", ShardIteratorType="LATEST"
        )["ShardIterator"],
        "ShardId": "shardId-000000000000",
        "ConsumerARN": f"{arn}/consumer/none:5",
    }
    operations = [
        each_operation
        for each_operation in KINESIS.operations.values()
        if each_operation.name not in HARMFUL
    ]
    for _ in range(CALLS):
        operation = chance.choice(operations)
        asked = some_value(plan_of(operation.input_type), fields, chance, kind)
        content = json.dumps(asked).encode() if kind == JSON else cbor2.dumps(asked)
        if chance.random() < 0.1:
            content = chance.choice(SPOILED)
        name = operation.name + chance.choice(["", "", "", "", "", "", "x"])
        assert_told(raw.post(name, None, kind, content))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("kind", [JSON, CBOR, "text/plain", ""])
def test_random_bytes_are_rejected(raw, kind):
    chance = random.Random(SEED)
    for _ in range(50):
        content = chance.randbytes(chance.choice([1, 20, 500]))
        for operation in ("PutRecords", "Unheard"):
            answer = raw.post(operation, None, kind, content)
            assert_told(answer)


@pytest.mark.parametrize("kind", [JSON, CBOR])
def test_batch_with_one_invalid_record_puts_none(kinesis, raw, single, kind):
    chance = random.Random(SEED)
    good = {"Data": "eA==" if kind == JSON else b"x", "PartitionKey": "k"}
    for _ in range(100):
        member = chance.choice(["Data", "PartitionKey", "ExplicitHashKey"])
        worse = {**good, member: chance.choice([5, 1.5, True, [], {}, [None]])}
        records = [good, good, worse, good]
        chance.shuffle(records)
        request = {"StreamName": single, "Records": records}
        answer = raw.post("PutRecords", request, kind)
        assert (answer.status_code, read(answer)["__type"]) == (400, "SerializationException")

    assert records_of(kinesis, single) == []
