"""Filter pushdown on `shard`, `offset` and `ts`, whose times never decrease in a shard."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pyspark_millstream.ranges import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

OffsetAt = Callable[[int], int]
"""Returns the first offset of a shard whose record arrived at this time, in ms, or later."""

Bounds = tuple[Any, Any]
"""The smallest and the largest value that a filter selects, both inclusive; None for no bound."""


def narrowed(span: Span, filters: Iterable[Filter], offset_at: OffsetAt) -> Span | None:
    """Return the part of a span that the filters select, or None if nothing is left.

    One contiguous range, which may contain more than they select.
    """
    first, end = span.first, span.end
    for condition in filters:
        bounds, column = _bounds(condition), getattr(condition, "attribute", ())
        if bounds is None:
            continue
        low, high = bounds
        if column == ("shard",) and isinstance(condition, In) and span.shard not in condition.value:
            return None
        if column == ("shard",) and not _holds(low, high, span.shard):
            return None
        if column == ("offset",):
            first = first if low is None else max(first, low)
            end = end if high is None else min(end, high + 1)
        if column == ("ts",):
            first = first if low is None else max(first, offset_at(_ms(low)))
            end = end if high is None else min(end, offset_at(_ms(high) + 1))
    return replace(span, first=first, end=end) if first < end else None


def _bounds(condition: Filter) -> Bounds | None:
    match condition:
        case EqualTo(value=int() | datetime() as value):
            return value, value
        case In(value=values) if values and all(
            isinstance(each, int | datetime) for each in values
        ):
            return min(values), max(values)
        case (
            GreaterThan(value=int() | datetime() as value)
            | GreaterThanOrEqual(value=int() | datetime() as value)
        ):
            return value, None
        case (
            LessThan(value=int() | datetime() as value)
            | LessThanOrEqual(value=int() | datetime() as value)
        ):
            return None, value
        case _:
            return None


def _holds(low: Any, high: Any, value: int) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)


def _ms(moment: datetime) -> int:
    """Return whole milliseconds since 1970, rounded down.

    A datetime without a zone is in UTC, as Spark's are.
    """
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
