"""Key values given as text."""

import math

import pytest

from storage.domain.errors import ValidationFailed
from storage.domain.views.key_text import parse_key_value


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("-120", "bigint", -120),
        ("127", "tinyint", 127),
        ("1.5", "double", 1.5),
        ("True", "boolean", True),
        ("1.5", "decimal(10,2)", "1.50"),
        ("-0", "decimal(10,2)", "0.00"),
        ("0.00000001", "decimal(10,8)", "1E-8"),
        ("12345678901234567890123456789012345678", "decimal(38,0)", "12345678901234567890123456789012345678"),
        ("2026-01-31T13:00:00.5+01:00", "timestamp", "2026-01-31T12:00:00.500000Z"),
        ("2026-01-31", "date", "2026-01-31"),
        ("a b", "string", "a b"),
    ],
)  # fmt: skip
def test_text_is_value_of_type(text, type_, value):
    assert parse_key_value(text, type_, "/key/0") == value


def test_negative_zero_is_zero():
    assert math.copysign(1, parse_key_value("-0.0", "double", "/key/0")) == 1


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("x", "bigint"),
        ("128", "tinyint"),
        ("", "double"),
        ("yes", "boolean"),
        ("1.555", "decimal(10,2)"),
        ("123456789", "decimal(10,2)"),
        ("nan", "decimal(10,2)"),
        ("inf", "decimal(10,2)"),
        ("2026-01-31T13:00:00", "timestamp"),
        ("0001-01-01T00:00:00+14:00", "timestamp"),
        ("31.1.2026", "date"),
        ("\ud800", "string"),
        ("{}", "struct<start:timestamp,end:timestamp>"),
    ],
)
def test_text_of_other_type_is_refused(text, type_):
    with pytest.raises(ValidationFailed) as refused:
        parse_key_value(text, type_, "/key/0")

    assert refused.value.faults[0].pointer == "/key/0"
