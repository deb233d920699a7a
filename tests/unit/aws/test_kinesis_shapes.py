"""The Kinesis endpoint's shapes and bounds, compared with the AWS service model."""

import gzip
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, get_type_hints

import botocore
import pytest

from api.aws.kinesis import errors
from api.aws.kinesis.actions.subscribe import SubscribeToShardEvent
from api.aws.kinesis.service import KINESIS
from api.aws.protocol.codecs.event_stream import EventStream
from api.aws.protocol.constraints import Rule, ValueBounds, rule_of
from api.aws.protocol.errors import AwsFault
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Scalar, Structure, plan_of
from storage.domain.errors import ErrorCode, error_types

[SERVICE] = (Path(botocore.__file__).parent / "data/kinesis/2013-12-02").glob("service-2.json*")
MODEL: dict[str, Any] = json.loads(gzip.decompress(SERVICE.read_bytes()))
SHAPES = MODEL["shapes"]
KINDS = {
    "string": str,
    "integer": int,
    "long": int,
    "boolean": bool,
    "blob": bytes,
    "timestamp": float,
}

# Two services in the model that are not about streams: see docs/reference/kinesis.md.
OTHER_THINGS = ("Channel", "Queue")

FAULTS = [value for value in vars(errors).values() if isinstance(value, AwsFault)]
OURS = {"ACCESS_DENIED", "BAD_REQUEST", "SERVICE_UNAVAILABLE"}


def assert_like(plan: Plan, name: str) -> None:
    """Fail unless the plan has the members and types of the model's shape."""
    shape = SHAPES[name]
    match plan:
        case Structure(members):
            ours = {member.name: member.plan for member in members}
            assert ours.keys() == shape["members"].keys(), name
            for member, below in ours.items():
                assert_like(below, shape["members"][member]["shape"])
        case ListOf(item):
            assert_like(item, shape["member"]["shape"])
        case MapOf(_, _, value):
            assert_like(value, shape["value"]["shape"])
        case Scalar(kind):
            assert kind is KINDS[shape["type"]], name


def bounds_in_the_model(name: str) -> ValueBounds | None:
    shape = SHAPES[name]
    bounds = ValueBounds(
        shape.get("min"), shape.get("max"), shape.get("pattern"), tuple(shape.get("enum", ()))
    )
    return None if bounds == ValueBounds() else bounds


def assert_bounded(rule: Rule, name: str) -> None:
    """Fail unless the rule has the bounds of the model's shape."""
    shape = SHAPES[name]
    assert rule.bounds == bounds_in_the_model(name), name
    for _, member, below in rule.members:
        assert below.required is (member in shape.get("required", ())), f"{name}.{member}"
        assert_bounded(below, shape["members"][member]["shape"])
    if rule.item is not None:
        assert_bounded(rule.item, shape["member"]["shape"])
    if rule.entry is not None:
        keys, values = rule.entry
        assert keys == bounds_in_the_model(shape["key"]["shape"])
        assert values == bounds_in_the_model(shape["value"]["shape"])


def test_all_stream_operations_are_implemented():
    operations = {
        name for name in MODEL["operations"] if not any(word in name for word in OTHER_THINGS)
    }

    assert KINESIS.operations.keys() == operations


@pytest.mark.parametrize("operation", KINESIS.operations.values(), ids=lambda one: one.name)
def test_operation_shapes_match_service_model(operation):
    described = MODEL["operations"][operation.name]
    told = get_type_hints(operation.handler)["return"]

    assert_like(plan_of(operation.input_type), described["input"]["shape"])
    if told is EventStream:
        assert_like(plan_of(SubscribeToShardEvent), "SubscribeToShardEvent")
    elif "output" in described:
        assert_like(plan_of(told), described["output"]["shape"])
    else:
        assert told is type(None)


@pytest.mark.parametrize("operation", KINESIS.operations.values(), ids=lambda one: one.name)
def test_operation_bounds_match_service_model(operation):
    assert_bounded(
        rule_of(operation.input_type), MODEL["operations"][operation.name]["input"]["shape"]
    )


def test_timestamp_fields_match_service_model():
    outputs = [
        SHAPES[shape]
        for name, operation in MODEL["operations"].items()
        if name in KINESIS.operations and "output" in operation
        for shape in reached(operation["output"]["shape"])
    ]
    times = {
        name
        for shape in outputs
        for name, member in shape.get("members", {}).items()
        if SHAPES[member["shape"]]["type"] == "timestamp"
    }

    assert times == KINESIS.times


def reached(name: str) -> set[str]:
    """Names of a shape and of all shapes inside it."""
    shape = SHAPES[name]
    below = [member["shape"] for member in shape.get("members", {}).values()]
    below += [shape[part]["shape"] for part in ("member", "value") if part in shape]
    return {name}.union(*(reached(each_shape) for each_shape in below))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.shape)
def test_fault_shape_exists_in_service_model(fault):
    name = fault.shape.rpartition("#")[2]

    assert name in SHAPES or name == "ServiceUnavailableException"
    assert fault.status in (400, 403, 500, 503)


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_translates_to_kinesis_error(code):

    told = errors.as_kinesis_error(errors.translate(error_types()[code]()))

    assert told.message
    assert told.fault.status in (400, 500, 503)
    assert "#" not in told.fault.shape


def test_event_stream_is_named_after_shape_of_model():
    async def no_events() -> AsyncGenerator[SubscribeToShardEvent]:
        return
        yield

    assert EventStream("SubscribeToShardEvent", no_events()).name in SHAPES
