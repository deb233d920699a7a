"""Configuration of routes: keys, times, failures, and what makes a new revision."""

import msgspec
import pytest

from storage.domain.errors import ValidationFailed
from storage.domain.topics.copy_key import ConstantKey, key_of
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.route import RouteFailurePolicy, RouteSpec, RouteTarget
from tests.unit.topics.messages import message, spec, transform


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, "c7"),
        ("key", "c7"),
        ("subject", "order.created"),
        ("/body/customer", "ada"),
        ("/body/number", "7"),
        ("/body/list", "[1,2]"),
        ("/body/none", ""),
        ("/headers/tenant", "t7"),
        (ConstantKey("x"), "x"),
    ],
)
def test_key_comes_from_its_source(source, expected):
    spec(key=source).check()
    body = b'{"customer": "ada", "number": 7, "list": [1, 2]}'

    assert key_of(source, message(body, headers=(("tenant", "", b"t7"),)).document) == expected


STREAM = {"target": RouteTarget(stream="audit")}
DEAD_LETTER, DROP = RouteFailurePolicy.DEAD_LETTER, RouteFailurePolicy.DROP


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"key": ""}, "/key"),
        ({"key": "customer"}, "/key"),
        ({"key": "/customer"}, "/key"),
        ({"key": ConstantKey("")}, "/key/constant"),
        ({"key": ConstantKey("x" * 129)}, "/key/constant"),
        ({"delay_ms": -1}, "/delay_seconds"),
        ({"ttl_ms": 10**15}, "/ttl_seconds"),
        ({"delay_ms": 1, **STREAM}, "/delay_seconds"),
        ({"ttl_ms": 1, **STREAM}, "/ttl_seconds"),
        ({"on_failure": DEAD_LETTER}, "/dead_letter_queue"),
        ({"on_failure": DROP, "dead_letter_queue": "dead"}, "/dead_letter_queue"),
        ({"dead_letter_queue": "billing"}, "/dead_letter_queue"),
        ({"dead_letter_queue": "a b"}, "/dead_letter_queue"),
    ],
)
def test_invalid_configuration_is_refused(fields, pointer):
    with pytest.raises(ValidationFailed) as refused:
        spec(**fields).check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@pytest.mark.parametrize(
    "fields",
    [
        {"delay_ms": 1_000, "ttl_ms": 1_000},
        {"on_failure": DEAD_LETTER, "dead_letter_queue": "dead"},
        {"dead_letter_queue": "dead", **STREAM},
    ],
)
def test_valid_configuration_is_accepted(fields):
    spec(**fields).check()


@pytest.mark.parametrize(
    ("fields", "is_same"),
    [
        ({"match": {"subject": "a"}}, False),
        (STREAM, False),
        ({"transform": transform(select="/a")}, False),
        ({"format": CopyFormat.ENVELOPE}, False),
        ({"key": "subject"}, False),
        ({"delay_ms": 1}, True),
        ({"ttl_ms": 1}, True),
        ({"on_failure": DROP}, True),
        ({"dead_letter_queue": "dead"}, True),
        ({"paused": True, "tags": {"a": "b"}}, True),
    ],
)
def test_change_of_copies_makes_new_revision(fields, is_same):
    assert spec(**fields).takes_as(spec()) is is_same


def test_specification_is_stored_and_read():
    stored = spec(
        transform=transform(
            paths={"id": "/key"}, template={"a": "<id>"}, headers={"remove": ["x"]}
        ),
        key=ConstantKey("x"),
        format=CopyFormat.CLOUDEVENTS,
        dead_letter_queue="dead",
    )

    read = msgspec.convert(msgspec.json.decode(msgspec.json.encode(stored)), RouteSpec)

    assert read == stored


def test_specification_of_earlier_version_is_read():
    earlier = {"target": {"queue": "billing", "stream": None}, "match": None, "on_failure": "wait"}

    assert msgspec.convert(earlier, RouteSpec) == spec()
