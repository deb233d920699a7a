"""The Kinesis door's shapes and bounds beside the service model that every SDK is made from."""

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
from api.aws.protocol.constraints import Bounds, Rule, rule_of
from api.aws.protocol.errors import Fault
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Scalar, Structure, plan_of
from storage.domain.errors import ErrorCode, MillstreamError

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

# Two services that were added to the model and are none of streams: see docs/reference/kinesis.md.
OTHER_THINGS = ("Channel", "Queue")

FAULTS = [value for value in vars(errors).values() if isinstance(value, Fault)]
OURS = {"ACCESS_DENIED", "BAD_REQUEST", "SERVICE_UNAVAILABLE"}


def assert_like(plan: Plan, name: str) -> None:
    """Fail unless the plan has the members, and the kinds, of the model's shape."""
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


def bounds_in_the_model(name: str) -> Bounds | None:
    shape = SHAPES[name]
    bounds = Bounds(
        shape.get("min"), shape.get("max"), shape.get("pattern"), tuple(shape.get("enum", ()))
    )
    return None if bounds == Bounds() else bounds


def assert_bounded(rule: Rule, name: str) -> None:
    """Fail unless the rule asks what the model's shape asks."""
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


def test_every_operation_on_streams_is_here():
    wanted = {
        name for name in MODEL["operations"] if not any(word in name for word in OTHER_THINGS)
    }

    assert KINESIS.operations.keys() == wanted


@pytest.mark.parametrize("operation", KINESIS.operations.values(), ids=lambda one: one.name)
def test_an_operation_s_shapes_are_the_model_s(operation):
    described = MODEL["operations"][operation.name]
    told = get_type_hints(operation.handler)["return"]

    assert_like(plan_of(operation.asked), described["input"]["shape"])
    if told is EventStream:
        assert_like(plan_of(SubscribeToShardEvent), "SubscribeToShardEvent")
    elif "output" in described:
        assert_like(plan_of(told), described["output"]["shape"])
    else:
        assert told is type(None)


@pytest.mark.parametrize("operation", KINESIS.operations.values(), ids=lambda one: one.name)
def test_an_operation_s_bounds_are_the_model_s(operation):
    assert_bounded(rule_of(operation.asked), MODEL["operations"][operation.name]["input"]["shape"])


def test_times_are_those_of_the_model():
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
    """A shape and those inside it."""
    shape = SHAPES[name]
    below = [member["shape"] for member in shape.get("members", {}).values()]
    below += [shape[part]["shape"] for part in ("member", "value") if part in shape]
    return {name}.union(*(reached(one) for one in below))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.shape)
def test_a_fault_s_shape_is_one_of_the_model_s(fault):
    name = fault.shape.rpartition("#")[2]

    assert name in SHAPES or name == "ServiceUnavailableException"
    assert fault.status in (400, 403, 500, 503)


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_of_the_engines_has_words(code):
    kinds = {kind.code: kind for kind in MillstreamError.__subclasses__()}

    told = errors.spell(errors.translate(kinds[code]()))

    assert told.message
    assert told.fault.status in (400, 500, 503)
    assert "#" not in told.fault.shape


def test_an_event_stream_says_what_its_events_are_made_of():
    async def no_events() -> AsyncGenerator[SubscribeToShardEvent]:
        return
        yield

    assert EventStream("SubscribeToShardEvent", no_events()).name in SHAPES
