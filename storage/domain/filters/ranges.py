"""Numeric ranges: the grammar's `numeric` operator, and an index of many ranges.

["=", 5]   ["<", 5]   ["<=", 5]   [">", 5]   [">=", 5]   [">", 0, "<=", 5]
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import count
from math import frexp, inf
from typing import Any, Generic, TypeVar

import msgspec

from storage.domain import limits
from storage.domain.filters.reasons import PatternInvalid

Item = TypeVar("Item")
Number = int | float


class Range(msgspec.Struct, frozen=True):
    """Numbers between two bounds, each included or not; a side without a bound is infinite."""

    low: Number = -inf
    high: Number = inf
    has_low: bool = False
    has_high: bool = False

    def contains(self, number: Number) -> bool:
        """Return whether a number is in the range."""
        low, high = self.low, self.high
        return (low < number or (self.has_low and low == number)) and (
            number < high or (self.has_high and high == number)
        )


def parse_range(argument: Any) -> Range:
    """Parse the argument of `numeric`. Raises PatternInvalid."""
    if not isinstance(argument, list):
        raise PatternInvalid("Value of numeric must be an array.")
    operator = argument[0] if argument else "]"
    if not argument or not isinstance(operator, str):
        raise PatternInvalid(f"Invalid member in numeric match: {_text(operator)}")
    if operator not in ("=", "<", "<=", ">", ">="):
        raise PatternInvalid(f"Unrecognized numeric range operator: {operator}")
    bound = _bound(operator, argument[1:2])
    if len(argument) == 2:
        return _half_range(operator, bound)
    if operator not in (">", ">="):
        raise PatternInvalid("Too many elements in numeric expression")
    return _full_range(operator, bound, argument[2:])


def _half_range(operator: str, bound: Number) -> Range:
    if operator == "=":
        return Range(bound, bound, has_low=True, has_high=True)
    if operator.startswith(">"):
        return Range(low=bound, has_low=operator == ">=")
    return Range(high=bound, has_high=operator == "<=")


def _full_range(low_operator: str, low: Number, upper: list[Any]) -> Range:
    operator = upper[0]
    if not isinstance(operator, str):
        raise PatternInvalid(f"Bad value in numeric range: {_text(operator)}")
    if operator not in ("<", "<="):
        raise PatternInvalid(f"Bad numeric range operator: {operator}")
    high = _bound(operator, upper[1:2])
    if len(upper) > 2:
        raise PatternInvalid("Too many terms in numeric range expression")
    if low >= high:
        raise PatternInvalid("Bottom must be less than top")
    return Range(low, high, has_low=low_operator == ">=", has_high=operator == "<=")


def _bound(operator: str, values: list[Any]) -> Number:
    if not values or isinstance(values[0], bool) or not isinstance(values[0], int | float):
        raise PatternInvalid(
            f"Value of {'equals' if operator == '=' else operator} must be numeric"
        )
    bound: Number = values[0]
    if not -limits.FILTER_NUMBER_MAX <= bound <= limits.FILTER_NUMBER_MAX:
        raise PatternInvalid("Value must be between -5.0E9 and 5.0E9, inclusive")
    if bound != round(bound, limits.FILTER_NUMBER_DECIMALS_MAX):
        detail = f"at most {limits.FILTER_NUMBER_DECIMALS_MAX} decimals"
        raise PatternInvalid(f"Value of numeric must have {detail}")
    return bound


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class RangeTable(Generic[Item]):
    """Items by range: those whose range has a number are found by bisection.

    Ranges with one bound are sorted by it: the answer is one end of the list. Those with two are grouped by
    the power of two that their width is below, and sorted by their lower bound: only those that begin within
    that width below a number can have it, and of them about half do.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._lows: list[tuple[Number, int, Range, Item]] = []
        self._highs: list[tuple[Number, int, Range, Item]] = []
        self._widths: dict[int, list[tuple[Number, int, Range, Item]]] = {}

    def __len__(self) -> int:
        return len(self._lows) + len(self._highs) + sum(map(len, self._widths.values()))

    def add(self, bounds: Range, item: Item) -> None:
        """Add an item to a range."""
        ranges, bound = self._ranges(bounds)
        insort(ranges, (bound, next(self._numbers), bounds, item))

    def discard(self, bounds: Range, item: Item) -> None:
        """Remove an item from a range that it was added to."""
        ranges, bound = self._ranges(bounds)
        for nth in range(bisect_left(ranges, (bound,)), bisect_right(ranges, (bound, inf))):
            if ranges[nth][2] == bounds and ranges[nth][3] is item:
                del ranges[nth]
                break
        if not ranges:
            self._widths.pop(_width_class(bounds), None)

    def find(self, number: Number) -> Iterator[Item]:
        """Yield the items whose range has the number."""
        for _, _, bounds, item in self._lows[: bisect_right(self._lows, (number, inf))]:
            if bounds.contains(number):
                yield item
        for _, _, bounds, item in self._highs[bisect_left(self._highs, (number,)) :]:
            if bounds.contains(number):
                yield item
        if abs(number) <= limits.FILTER_NUMBER_MAX:
            yield from self._find_between(number)

    def _find_between(self, number: Number) -> Iterator[Item]:
        for width, ranges in self._widths.items():
            start = bisect_left(ranges, (number - 2.0**width,))
            for _, _, bounds, item in ranges[start : bisect_right(ranges, (number, inf))]:
                if bounds.contains(number):
                    yield item

    def _ranges(self, bounds: Range) -> tuple[list[tuple[Number, int, Range, Item]], Number]:
        """Return the list that a range is in, and the bound that it is sorted by."""
        if bounds.high == inf:
            return self._lows, bounds.low
        if bounds.low == -inf:
            return self._highs, bounds.high
        return self._widths.setdefault(_width_class(bounds), []), bounds.low


def _width_class(bounds: Range) -> int:
    """Return n so that the width is below 2ⁿ, with room for rounding."""
    return frexp((bounds.high - bounds.low) * (1 + 1e-9))[1]
