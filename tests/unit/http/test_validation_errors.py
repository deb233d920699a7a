"""Validation errors of msgspec and pydantic, as clients read them."""

from enum import Enum
from typing import Annotated

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api.http.validation_errors import from_msgspec, from_pydantic


class Action(Enum):
    ACK = "ack"
    NACK = "nack"


class Settlement(msgspec.Struct, forbid_unknown_fields=True):
    receipt_handle: str
    action: Action = Action.ACK
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=20)] | None = None


class Settle(msgspec.Struct):
    settlements: list[Settlement]
    note: Annotated[str, msgspec.Meta(max_length=3)] = ""
    tags: dict[str, Settlement] | msgspec.UnsetType = msgspec.UNSET


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    shards: int = Field(default=1, ge=1)
    visibility_timeout_seconds: float = 30


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("Expected `int`, got `str` - at `$.a[3].b`", "/a/3/b"),
        ("Expected `object`, got `array`", ""),
        ("Object missing required field `a` - at `$[1]`", "/1/a"),
        ("Object contains unknown field `a.b`", "/a.b"),
        ("Object contains unknown field `a/~b`", "/a~1~0b"),
        ("Expected `str`, got `int` - at `$.headers[...]`", "/headers"),
    ],
)
def test_msgspec_path_becomes_json_pointer(text, pointer):
    [fault] = from_msgspec(msgspec.ValidationError(text)).faults

    assert fault.pointer == pointer


@pytest.mark.parametrize(
    ("bound", "detail"),
    [
        ("9007199254740991", "At most 9007199254740991"),
        ("20.0", "At most 20"),
        ("0.5", "At most 0.5"),
    ],
)
def test_bound_is_shown_exactly(bound, detail):
    """A limit was shown as 9.00719925474099e+15."""
    [fault] = from_msgspec(msgspec.ValidationError(f"Expected `int` <= {bound}")).faults

    assert fault.detail == detail


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"settlements":[{"receipt_handle":"a","action":"delete"}]}', "/settlements/0/action: 'delete' is not one of ack, nack"),
        ('{"settlements":[],"tags":{"a":{"receipt_handle":"a","action":"x"}}}', "/tags/action: 'x' is not one of ack, nack"),
        ('{"settlements":[{"receipt_handle":"a","delay_seconds":21}]}', "/settlements/0/delay_seconds: At most 20"),
        ('{"settlements":[{"receipt_handle":"a","delay_seconds":-0.5}]}', "/settlements/0/delay_seconds: At least 0"),
        ('{"settlements":[{"receipt_handle":"a","delay_seconds":"1"}]}', "/settlements/0/delay_seconds: Expected a number or null, got text"),
        ('{"settlements":[{"handle":"a"}]}', "/settlements/0/handle: Unknown field 'handle'; did you mean 'receipt_handle'?"),
        ('{"settlements":[{"zzz":"a"}]}', "/settlements/0/zzz: Unknown field 'zzz'"),
        ('{"settlements":[{}]}', "/settlements/0/receipt_handle: 'receipt_handle' is required"),
        ('{"settlements":{}}', "/settlements: Expected a list, got an object"),
        ('{"settlements":[],"note":"long"}', "/note: At most 3 characters"),
        ("5", "Expected an object, got a whole number"),
    ],
)  # fmt: skip
def test_msgspec_error_states_what_is_valid(body, told):
    with pytest.raises(msgspec.ValidationError) as complaint:
        msgspec.json.decode(body, type=Settle)

    assert from_msgspec(complaint.value, Settle).detail == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"visibility_timeout": 5}, "Unknown field 'visibility_timeout'; did you mean 'visibility_timeout_seconds'?"),
        ([], "Expected an object"),
        ({"shards": 0}, "/shards: Input should be greater than or equal to 1"),
        ({"shards": 0, "colour": 1}, "/shards: Input should be greater than or equal to 1; Unknown field 'colour'"),
        ({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, "Unknown field 'a'; Unknown field 'b'; Unknown field 'c'; and 2 more"),
    ],
)  # fmt: skip
def test_pydantic_errors_are_joined_in_one_sentence(body, told):
    with pytest.raises(ValidationError) as complaint:
        Body.model_validate(body)
    errors = [{**error, "loc": ("body", *error["loc"])} for error in complaint.value.errors()]

    assert from_pydantic(errors, Body.model_fields).detail == told


def test_pydantic_pointer_is_escaped():
    error = {"type": "extra_forbidden", "loc": ("body", "tags", "a/~b"), "msg": ""}

    assert from_pydantic([error]).faults[0].pointer == "/tags/a~1~0b"


def test_long_field_name_is_shortened():
    told = from_msgspec(
        msgspec.ValidationError(f"Object contains unknown field `{'x' * 10**6}`"), Settle
    )

    assert told.detail.endswith("…'") or "Unknown field" in told.detail
    assert len(told.detail) < 300
