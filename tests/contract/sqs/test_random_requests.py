"""Random calls built from the shapes are rejected without effect.

The seed is fixed, so that a failure is reproducible.
"""

import json
import random
import xml.etree.ElementTree as ET

import pytest

from api.aws.protocol.shapes import ListOf, MapOf, Scalar, plan_of
from api.aws.sqs.service import SQS

CALLS = 400
SEED = 20_121_105

WORDS = [
    "", "x", "0", "-1", "11", "99999999999999999999", "null", "true", "\x00", "\x07", "\ud7ff\ufffe",
    "é" * 200, "x" * 5_000, "http://[", "http://h/1/x", "/000000000000/", "arn:aws:sqs:::x", "{}",
    '{"Statement":[]}', "String", "Number.x", "Binary", "a b", "..", "%", "<&>", "2012-11-05", "All",
]  # fmt: skip
NUMBERS = [-(2**63), -1, 0, 1, 10, 21, 901, 43_201, 2**31, 2**64, 10**30]
WRONG: list[object] = [None, True, 1.5, [], {}, [[]], [None], {"": None}, {"x": {"x": {}}}, "x", 5]
SPOILED = [b"", b"{", b"\xff\xfe", b"{}}", b'{"a":' * 500, b'{"QueueUrl":"\\ud800"}']
HARMFUL = {"DeleteQueue", "PurgeQueue"}  # a valid call would take effect


def some_json(plan, url, chance):
    """Build a value for this shape that may be valid."""
    if chance.random() < 0.1:
        return chance.choice(WRONG)
    match plan:
        case Scalar(kind) if kind is int:
            return chance.choice(NUMBERS)
        case Scalar():
            return chance.choice([url, *WORDS])
        case ListOf(item):
            return [some_json(item, url, chance) for _ in range(chance.choice([0, 1, 2, 11]))]
        case MapOf(_, _, value):
            keys = chance.sample([*WORDS, "DelaySeconds", "Policy"], chance.choice([0, 1, 3, 12]))
            return {key: some_json(value, url, chance) for key in keys}
        case _:
            return {
                member.name: url
                if member.name == "QueueUrl"
                else some_json(member.plan, url, chance)
                for member in plan.members
                if chance.random() < 0.7
            }


def parameters_of(plan, url, chance, path=""):
    """Build random parameters of the Query protocol."""
    form = {}
    for member in plan.members:
        if chance.random() < 0.3:
            continue
        place = path + member.query_name
        if member.name == "QueueUrl":
            form[place] = url
        elif isinstance(member.plan, Scalar):
            form[place] = chance.choice(WORDS)
        elif isinstance(member.plan, MapOf):
            form[f"{place}.1.{chance.choice([member.plan.key_name, 'x'])}"] = chance.choice(WORDS)
            form[f"{place}.{chance.choice(['1', '2', 'y'])}.Value"] = chance.choice(WORDS)
        elif isinstance(member.plan, ListOf) and isinstance(member.plan.item, Scalar):
            form[f"{place}.{chance.choice(['1', 'member.1', 'z'])}"] = chance.choice(WORDS)
        elif isinstance(member.plan, ListOf):
            form |= parameters_of(member.plan.item, url, chance, f"{place}.1.")
    return form


def assert_told_in_json(answer):
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.json()["__type"]
        assert answer.headers["x-amzn-query-error"].endswith(";Sender")


def assert_told_in_xml(answer):
    assert answer.status_code < 500, answer.text
    root = ET.fromstring(answer.content)
    if answer.status_code >= 400:
        assert root.find("{*}Error/{*}Code") is not None


@pytest.fixture
def untouched(sqs, name):
    """A queue with one message, which must still be there at the end."""
    url = sqs.create_queue(QueueName=f"{name}-untouched")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="still here")
    yield url
    messages = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
    assert [message["Body"] for message in messages] == ["still here"]


@pytest.mark.usefixtures("untouched")
def test_random_json_is_answered_or_rejected(client, url):
    chance = random.Random(SEED)
    operations = [
        each_operation
        for each_operation in SQS.operations.values()
        if each_operation.name not in HARMFUL
    ]
    for _ in range(CALLS):
        operation = chance.choice(operations)
        asked = some_json(plan_of(operation.input_type), url, chance)
        if isinstance(asked, dict):
            asked.pop("WaitTimeSeconds", None)
        content = json.dumps(asked).encode()
        if chance.random() < 0.1:
            content = chance.choice(SPOILED)
        target = f"AmazonSQS.{operation.name}{chance.choice(['', '', '', '', 'x'])}"
        headers = {"x-amz-target": target, "content-type": chance.choice(["", "text/plain", "x"])}
        assert_told_in_json(client.post("/", content=content, headers=headers))


@pytest.mark.usefixtures("untouched")
def test_random_parameters_are_answered_or_rejected(client, url):
    chance = random.Random(SEED)
    operations = [
        each_operation
        for each_operation in SQS.operations.values()
        if each_operation.name not in HARMFUL
    ]
    for _ in range(CALLS):
        operation = chance.choice(operations)
        form = parameters_of(plan_of(operation.input_type), url, chance)
        form.pop("WaitTimeSeconds", None)
        form = {name: value.encode(errors="replace") for name, value in form.items()}
        form["Action"] = operation.name + chance.choice(["", "", "", "", "x"])
        assert_told_in_xml(client.post(chance.choice(["/", "/000000000000/x"]), data=form))


@pytest.mark.usefixtures("untouched")
def test_random_bytes_are_rejected(client):
    chance = random.Random(SEED)
    for _ in range(50):
        content = chance.randbytes(chance.choice([1, 20, 500]))
        assert_told_in_xml(client.post("/", content=content))
        target = {"x-amz-target": "AmazonSQS.SendMessage"}
        assert_told_in_json(client.post("/", content=content, headers=target))
