"""The SQS endpoint's shapes, compared with the AWS service model."""

import gzip
import json
from pathlib import Path
from typing import Any, get_type_hints

import botocore
import pytest

from api.aws.protocol.errors import AwsFault
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Scalar, Structure, plan_of
from api.aws.sqs import errors
from api.aws.sqs.service import SQS
from storage.domain.errors import ErrorCode, error_types

[SERVICE] = (Path(botocore.__file__).parent / "data/sqs/2012-11-05").glob("service-2.json*")
MODEL: dict[str, Any] = json.loads(gzip.decompress(SERVICE.read_bytes()))
SHAPES = MODEL["shapes"]
KINDS = {"string": str, "integer": int, "long": int, "boolean": bool, "blob": bytes}

FAULTS = [
    value
    for value in vars(errors).values()
    if isinstance(value, AwsFault) and value.shape.startswith("com.amazonaws.sqs#")
]


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


def test_all_operations_are_implemented():
    assert SQS.operations.keys() == MODEL["operations"].keys()


@pytest.mark.parametrize("operation", SQS.operations.values(), ids=lambda one: one.name)
def test_operation_shapes_match_service_model(operation):
    described = MODEL["operations"][operation.name]
    told = get_type_hints(operation.handler)["return"]

    assert_like(plan_of(operation.input_type), described["input"]["shape"])
    if "output" in described:
        assert_like(plan_of(told), described["output"]["shape"])
    else:
        assert told is type(None)


@pytest.mark.parametrize("operation", SQS.operations.values(), ids=lambda one: one.name)
def test_lists_and_maps_have_query_protocol_names(operation):
    for plan in (operation.input_type, get_type_hints(operation.handler)["return"]):
        if plan is type(None):
            continue
        for member in plan_of(plan).members:
            if isinstance(member.plan, ListOf | MapOf):
                assert member.query_name != member.name or not member.name.endswith("s")
            if isinstance(member.plan, MapOf):
                assert member.plan.key_name
                assert member.plan.value_name


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.code)
def test_fault_shape_exists_in_service_model(fault):
    name = fault.shape.partition("#")[2]

    # Two that AWS returns although the model does not have them.
    assert name in SHAPES or name in (
        "InvalidParameterValueException",
        "MissingRequiredParameterException",
    )


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_translates_to_sqs_error(code):

    told = errors.translate(error_types()[code]())

    assert told.message
    assert 400 <= told.fault.status <= 503
