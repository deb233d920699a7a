"""Bounds of arguments that set the size of a result, whatever the size of the data."""

import re
from typing import NamedTuple

from spark_worker.sql.refusal import NodeRefused
from spark_worker.sql.tree import Node
from storage.domain.limits import SQL_SIZE_MAX, SQL_WINDOWS_MAX

SIZE_ARGUMENTS = {
    "array_insert": 1,  # the position, up to which the array is filled with nulls
    "array_repeat": 1,
    "bround": 1,
    "ceil": 1,
    "ceiling": 1,
    "floor": 1,
    "format_number": 1,
    "lpad": 1,
    "repeat": 1,
    "round": 1,  # computed with that many digits
    "rpad": 1,
    "space": 0,
}
ARGUMENTS_MAX = {"approx_count_distinct": 1}  # the second one sets its memory
_LITERAL = "catalyst.expressions.Literal"
_MINUS = "catalyst.expressions.UnaryMinus"
_INTEGERS = frozenset({"tinyint", "smallint", "integer", "bigint", "byte", "short", "long"})
_INTERVAL = re.compile(
    r"(?:interval\s+)?(\d{1,9})\s*(microsecond|millisecond|second|minute|hour|day|week)s?", re.ASCII
)
_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}


class WindowCall(NamedTuple):
    """Call of `window` or `session_window`: its time column and its times.

    `time_column` is empty for another expression. `slide_us` is the duration in a tumbling window. The duration of a session is its gap.
    """

    time_column: str
    duration_us: int
    slide_us: int
    start_us: int
    is_session: bool = False


def window_call(function: Node) -> WindowCall:
    """Return the arguments of a call of `window`. Raises NodeRefused."""
    time, *times = function.parts
    duration, *others = map(_micros, times)
    slide, start = [*others, *(duration, 0)[len(others) :]]
    return WindowCall(_column(time), duration, slide, start)


def session_call(function: Node) -> WindowCall:
    """Return the arguments of a call of `session_window`. Raises NodeRefused."""
    gap = _micros(function.parts[1])
    return WindowCall(_column(function.parts[0]), gap, gap, 0, is_session=True)


def size_of(function: Node, name: str) -> int:
    """Return by how much a call can enlarge what it is given; 1 for most functions.

    Raises NodeRefused.
    """
    arguments = function.parts
    if len(arguments) > ARGUMENTS_MAX.get(name, len(arguments)):
        raise NodeRefused(f"a second argument of {name}", "Leave it out.")
    if name == "sequence":
        size = _sequence(arguments)
    elif name in SIZE_ARGUMENTS and len(arguments) > SIZE_ARGUMENTS[name]:
        size = abs(_integer(arguments[SIZE_ARGUMENTS[name]], name))
    elif name == "window":
        size = _windows(window_call(function))
    else:
        size = 1
    if size > SQL_SIZE_MAX:
        raise NodeRefused(f"{name} with a result of size {size}", f"Use at most {SQL_SIZE_MAX}.")
    return max(1, size)


def _sequence(arguments: list[Node]) -> int:
    start, stop, *step = (_integer(argument, "sequence") for argument in arguments)
    return abs(stop - start) // max(1, abs(step[0]) if step else 1) + 1


def _integer(argument: Node, name: str) -> int:
    if argument.kind == _MINUS:
        return -_integer(argument.parts[0], name)
    if argument.kind != _LITERAL or argument.fields["dataType"] not in _INTEGERS:
        raise NodeRefused(
            f"{name} with a size that is not a literal",
            f"Write the size as an integer of at most {SQL_SIZE_MAX}.",
        )
    return int(argument.fields["value"])


def _column(time: Node) -> str:
    is_column = time.kind == "catalyst.analysis.UnresolvedAttribute"
    return time.name().rpartition(", ")[2].lower() if is_column else ""


def _windows(window: WindowCall) -> int:
    """Return the number of hopping windows that a record is in."""
    windows = -(-window.duration_us // max(1, window.slide_us))
    if windows > SQL_WINDOWS_MAX:
        raise NodeRefused(
            f"a window with {windows} windows for each record",
            f"Use a slide of at least 1/{SQL_WINDOWS_MAX} of the duration.",
        )
    return windows


def _micros(argument: Node) -> int:
    text = str(argument.fields.get("value")).strip().lower()
    match = _INTERVAL.fullmatch(text)
    if argument.kind != _LITERAL or argument.fields["dataType"] != "string" or match is None:
        raise NodeRefused(
            "a window with a duration of this form", "Write it as a text such as '5 minutes'."
        )
    return int(match[1]) * _MICROS[match[2]]
