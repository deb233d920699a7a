"""Values of key columns given as text, such as in the URL of a read."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any

from storage.domain.errors import ValidationFailed
from storage.domain.views.row_key import WINDOW

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL_DIGITS = 38
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_BOOLEANS = {"true": True, "false": False}


def parse_key_value(text: str, type_: str, pointer: str) -> Any:
    """Return a value of a Spark type as in the JSON of a key; a window has its start alone.

    Raises ValidationFailed.
    """
    parse, example = _parser(type_)
    if parse is None:
        raise ValidationFailed.at(pointer, f"A {type_} cannot be given as text")
    try:
        return parse(text)
    except (ValueError, ArithmeticError, KeyError):
        raise ValidationFailed.at(pointer, f"Must be a {type_}, such as {example}") from None


def _parser(type_: str) -> tuple[Callable[[str], Any] | None, str]:
    """Return the function that parses a type, and an example."""
    if type_ in _BITS:
        return lambda text: _integer(text, _BITS[type_]), "120"
    if type_ in ("float", "double"):
        return _double, "1.5"
    if type_.startswith("decimal"):
        precision, scale = type_.removeprefix("decimal(").rstrip(")").split(",")
        return lambda text: _decimal(text, int(precision), int(scale)), "1.50"
    if type_ == "boolean":
        return lambda text: _BOOLEANS[text.lower()], "true"
    if type_ == "timestamp":
        return _time, "2026-01-31T12:00:00Z"
    if type_ == WINDOW:
        return lambda text: {"start": _time(text)}, "2026-01-31T12:00:00Z, where it starts"
    if type_ == "date":
        return lambda text: date.fromisoformat(text).isoformat(), "2026-01-31"
    if type_ == "string":
        return _text, "home"
    return None, ""


def _integer(text: str, bits: int) -> int:
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(text)
    return value


def _double(text: str) -> float:
    value = float(text)
    if math.isnan(value):
        return math.nan
    return value + 0.0  # Spark groups -0.0 with 0.0


def _decimal(text: str, precision: int, scale: int) -> str:
    """Return a decimal as Spark writes it: with all digits of its scale."""
    with localcontext(prec=_DECIMAL_DIGITS + scale):
        value = Decimal(text)
        exact = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_EVEN)
    if exact != value or exact.adjusted() >= precision - scale:
        raise InvalidOperation(text)
    return str(exact.copy_abs() if exact.is_zero() else exact)


def _time(text: str) -> str:
    """Return a time in UTC, with microseconds."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    return _time_text(time.astimezone(UTC))


def time_text(time_ms: int) -> str:
    """Return a time of the years 1 to 9999 as Spark writes it in the JSON of a key."""
    try:
        return _time_text(_EPOCH + timedelta(milliseconds=time_ms))
    except OverflowError:
        return _time_text(_LAST if time_ms > 0 else _FIRST)


def _time_text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def _text(text: str) -> str:
    text.encode()  # half of a surrogate pair is not text
    return text
