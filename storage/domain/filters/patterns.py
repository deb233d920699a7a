"""Filters: patterns in the grammar of Amazon EventBridge, parsed to conjunctions.

pattern   := object with at least one key
object    := { key : (object | array), … }      all of them
"$or"     := [ object, object, … ]              any of them, at any depth
array     := [ term, … ]                        any of them; see `terms`
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.filters.conjunctions import Conjunction, FieldCondition
from storage.domain.filters.reasons import PatternInvalid, pointer_token
from storage.domain.filters.terms import Term, parse_term

_OR = "$or"
_Conditions = tuple[FieldCondition, ...]


def parse_pattern(pattern: Any, pointer: str = "") -> tuple[Conjunction, ...]:
    """Parse a filter to the conjunctions of which one must hold. Raises PatternInvalid."""
    if not isinstance(pattern, dict):
        raise PatternInvalid("Filter is not an object", pointer)
    if _size_bytes(pattern, pointer) > limits.FILTER_BYTES_MAX:
        raise PatternInvalid(f"Filter is larger than {limits.FILTER_BYTES_MAX} bytes", pointer)
    combinations = _PatternParser(pointer).combinations(pattern, (), pointer, depth=1)
    return tuple(
        Conjunction(tuple(sorted(conditions, key=lambda condition: condition.path)))
        for conditions in combinations
    )


def _size_bytes(pattern: dict[str, Any], pointer: str) -> int:
    """Return the size as JSON text; a filter may have been decoded from another format."""
    try:
        return len(msgspec.json.encode(pattern))
    except (RecursionError, TypeError, ValueError, OverflowError):
        raise PatternInvalid("Filter is not valid JSON", pointer) from None


class _PatternParser:
    """Parser of one filter, which multiplies `$or` out."""

    def __init__(self, pointer: str) -> None:
        self._pointer = pointer

    def combinations(
        self, pattern: dict[str, Any], path: tuple[str, ...], pointer: str, *, depth: int
    ) -> list[_Conditions]:
        """Return the conditions of an object, once for each combination of alternatives."""
        if not pattern:
            raise PatternInvalid("Empty objects are not allowed", pointer)
        if depth > limits.FILTER_DEPTH_MAX:
            reason = f"Filter is nested deeper than {limits.FILTER_DEPTH_MAX} levels"
            raise PatternInvalid(reason, pointer)
        product: list[_Conditions] = [()]
        for key, value in pattern.items():
            if not isinstance(key, str):
                raise PatternInvalid("Filter is not valid JSON", pointer)
            below = f"{pointer}/{pointer_token(key)}"
            if key == _OR:
                alternatives = self._alternatives(value, path, below, depth=depth)
            else:
                alternatives = self._field(value, (*path, key), below, depth=depth)
            product = self._product(product, alternatives)
        return product

    def _field(
        self, value: Any, path: tuple[str, ...], pointer: str, *, depth: int
    ) -> list[_Conditions]:
        if isinstance(value, dict):
            return self.combinations(value, path, pointer, depth=depth + 1)
        if not isinstance(value, list):
            raise PatternInvalid(f'"{path[-1]}" must be an object or an array', pointer)
        if not value:
            raise PatternInvalid("Empty arrays are not allowed", pointer)
        terms = [_term(term, f"{pointer}/{nth}") for nth, term in enumerate(value)]
        return [(FieldCondition(".".join(path), terms, value),)]

    def _alternatives(
        self, value: Any, path: tuple[str, ...], pointer: str, *, depth: int
    ) -> list[_Conditions]:
        if not isinstance(value, list):
            raise PatternInvalid(f'"{_OR}" must be an array of objects', pointer)
        if len(value) < 2:
            raise PatternInvalid(f'"{_OR}" must have at least two objects', pointer)
        alternatives: list[_Conditions] = []
        for nth, pattern in enumerate(value):
            if not isinstance(pattern, dict):
                reason = f'"{_OR}" must be an array of objects'
                raise PatternInvalid(reason, f"{pointer}/{nth}")
            alternatives += self.combinations(pattern, path, f"{pointer}/{nth}", depth=depth + 1)
            self._check_size(len(alternatives), sum(map(len, alternatives)))
        return alternatives

    def _product(self, left: list[_Conditions], right: list[_Conditions]) -> list[_Conditions]:
        size = len(left) * len(right)
        self._check_size(size, _total(left) * len(right) + _total(right) * len(left))
        return [(*first, *second) for first in left for second in right]

    def _check_size(self, combinations: int, conditions: int) -> None:
        if combinations > limits.FILTER_COMBINATIONS_MAX:
            reason = f"at most {limits.FILTER_COMBINATIONS_MAX} combinations of $or"
            raise PatternInvalid(f"Rule is too complex: {reason}", self._pointer)
        if conditions > limits.FILTER_CONDITIONS_MAX:
            reason = f"at most {limits.FILTER_CONDITIONS_MAX} conditions in all combinations of $or"
            raise PatternInvalid(f"Rule is too complex: {reason}", self._pointer)


def _total(combinations: Iterable[_Conditions]) -> int:
    return sum(map(len, combinations))


def _term(term: Any, pointer: str) -> Term:
    try:
        return parse_term(term)
    except PatternInvalid as invalid:
        raise PatternInvalid(invalid.reason, pointer) from None
