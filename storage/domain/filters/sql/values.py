"""Values of a SQL condition: numbers, texts and booleans, with None for NULL and UNKNOWN.

Values of different types do not compare: the result is UNKNOWN. A header's text that is a number is one
beside a number, and in arithmetic. Booleans have no order. Division is exact, and a remainder has the
sign of the dividend. A result outside the range of a double is UNKNOWN.
"""

import math
import operator
import re
import sys
from collections.abc import Callable

from storage.domain import limits

Scalar = int | float | str | bool | None
Compare = Callable[[Scalar, Scalar], bool | None]
Calculate = Callable[[int | float, int | float], int | float]

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SCALARS = frozenset({int, float, str, bool})
NUMBERS = frozenset({int, float})

ORDERINGS: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def scalar_of(value: object) -> Scalar:
    """Return a JSON value as an operand: None for null, objects, arrays and absent values."""
    return value if type(value) in _SCALARS else None  # type: ignore[return-value]  # one of the four


def number_of(text: str) -> int | float | None:
    """Return the number that a text is written as; None if it is none."""
    if len(text) > limits.WHERE_NUMBER_CHARACTERS_MAX or not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdigit() else _finite(float(text))


def operand_number(value: Scalar, *, is_header: bool) -> int | float | None:
    """Return an operand of arithmetic as a number; None if it is none."""
    if type(value) in NUMBERS:
        return value  # type: ignore[return-value]  # a number
    return number_of(value) if is_header and isinstance(value, str) else None


def comparison(symbol: str, *, left_header: bool, right_header: bool) -> Compare:
    """Return the three-valued comparison of two operands, each from a header or not."""
    compare = ORDERINGS[symbol]
    is_equality = symbol in {"=", "<>"}

    def test(left: Scalar, right: Scalar) -> bool | None:
        left_type, right_type = type(left), type(right)
        if left_type in NUMBERS and right_header and right_type is str:
            right, right_type = number_of(right), float  # type: ignore[arg-type]
        elif right_type in NUMBERS and left_header and left_type is str:
            left, left_type = number_of(left), float  # type: ignore[arg-type]
        if left is None or right is None:
            return None
        if left_type in NUMBERS and right_type in NUMBERS:
            return compare(left, right)
        if left_type is not right_type or (left_type is bool and not is_equality):
            return None
        return compare(left, right)

    return test


def calculation(
    calculate: Calculate, *, left_header: bool, right_header: bool
) -> Callable[..., Scalar]:
    """Return arithmetic on two operands: None if one is no number, or the result not finite."""

    def result(left: Scalar, right: Scalar) -> Scalar:
        first = operand_number(left, is_header=left_header)
        second = operand_number(right, is_header=right_header)
        if first is None or second is None:
            return None
        try:
            return _finite(calculate(first, second))
        except (ZeroDivisionError, OverflowError):
            return None

    return result


def divide(left: int | float, right: int | float) -> int | float:
    """Divide exactly: an integer if both are and nothing remains."""
    if type(left) is int and type(right) is int and left % right == 0:
        return left // right
    return left / right


def remainder(left: int | float, right: int | float) -> int | float:
    """Return the remainder of a division, with the sign of the dividend."""
    if type(left) is int and type(right) is int:
        magnitude = abs(left) % abs(right)
        return -magnitude if left < 0 else magnitude
    if right == 0:
        raise ZeroDivisionError
    return math.fmod(left, right)


def _finite(number: int | float) -> int | float | None:
    """Return a number within the range of a double, which bounds the cost of integers too."""
    if isinstance(number, int):
        return number if number.bit_length() <= sys.float_info.max_exp else None
    return number if math.isfinite(number) else None
