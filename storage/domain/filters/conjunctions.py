"""Conditions of which all must hold, on the same elements of the arrays that they share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.filters.leaves import Leaves, Pins
from storage.domain.filters.terms import Term, literal_key, term_test

LeavesAt = Callable[[str], Leaves]
"""Leaves of a document at a path."""

_COMMON = frozenset({literal_key(True), literal_key(False), None})
_INDEXED = frozenset({"literal", "prefix", "numeric"})


class FieldCondition:
    """Condition that any of some terms matches a value at a path, or that there is none."""

    __slots__ = ("expected", "is_met_by_absence", "path", "terms", "test")

    def __init__(self, path: str, terms: Iterable[Term], expected: Sequence[Any]) -> None:
        self.path = path
        self.terms = frozenset(terms)
        self.expected = expected
        self.is_met_by_absence = Term("exists", False) in self.terms
        self.test = _any_test(self.terms)

    @property
    def identity(self) -> tuple[str, frozenset[Term]]:
        """Path and terms: conditions that have the same hold for the same documents."""
        return self.path, self.terms

    @property
    def is_indexed(self) -> bool:
        """Return whether a value leads to the condition, without asking it."""
        return all(term.operator in _INDEXED for term in self.terms)

    @property
    def is_literal(self) -> bool:
        """Return whether it lists values."""
        return all(term.operator == "literal" for term in self.terms)

    @property
    def has_boolean(self) -> bool:
        """Return whether it lists true, false or null, which many documents have."""
        return any(term.argument in _COMMON for term in self.terms)

    def pins(self, leaves: Leaves) -> list[Pins]:
        """Return the pins of the matching leaves: none if it fails, `[()]` if it needs no leaf."""
        if not leaves:
            return [()] if self.is_met_by_absence else []
        test = self.test
        if len(leaves) == 1:
            value, pins = leaves[0]
            return [pins] if test(value) else []
        return [pins for value, pins in leaves if test(value)]


def _any_test(terms: frozenset[Term]) -> Callable[[Any], bool]:
    """Compile terms, with their literals in one set."""
    literals = frozenset(term.argument for term in terms if term.operator == "literal")
    tests = [term_test(term) for term in terms if term.operator != "literal"]
    if not tests:
        return lambda value: literal_key(value) in literals
    if not literals and len(tests) == 1:
        return tests[0]
    return lambda value: literal_key(value) in literals or any(test(value) for test in tests)


class Conjunction(msgspec.Struct, frozen=True, eq=False):
    """Conditions of which all must hold, sorted by path."""

    conditions: tuple[FieldCondition, ...]

    def holds(self, leaves_at: LeavesAt) -> bool:
        """Return whether all conditions hold on the same array elements."""
        return hold_together(
            [condition.pins(leaves_at(condition.path)) for condition in self.conditions]
        )

    def failed_conditions(self, leaves_at: LeavesAt) -> list[FieldCondition]:
        """Return the conditions that fail, or those on array elements if only these disagree."""
        failed = [item for item in self.conditions if not item.pins(leaves_at(item.path))]
        if failed or self.holds(leaves_at):
            return failed
        return [item for item in self.conditions if any(item.pins(leaves_at(item.path)))]


def hold_together(choices: list[list[Pins]]) -> bool:
    """Return whether a leaf of each list agrees with the others on shared arrays' elements.

    Joins the lists one after another and keeps of a choice only arrays that a later list shares. With the
    lists sorted by path, arrays that belong together are adjacent, and choices stay as few as elements.
    """
    if not all(choices):
        return False
    pinned = [pins for pins in choices if () not in pins]
    if len(pinned) < 2:
        return True
    return _join(pinned)


def _join(choices: list[list[Pins]]) -> bool:
    last_use = {array: nth for nth, pins in enumerate(choices) for array in _arrays(pins)}
    first_use = {
        array: nth for nth, pins in reversed([*enumerate(choices)]) for array in _arrays(pins)
    }
    states: list[Pins] = [()]
    for nth, pins in enumerate(choices):
        shared = {
            tuple(pin for pin in leaf if first_use[pin[0]] < last_use[pin[0]]): None
            for leaf in pins
        }
        joined: dict[Pins, None] = {}
        for steps, state in enumerate(_compatible(states, list(shared))):
            if steps >= limits.FILTER_CHOICES_MAX:
                return False
            joined[tuple(pin for pin in state if last_use[pin[0]] > nth)] = None
        states = list(joined)
    return bool(states)


def _arrays(choice: list[Pins]) -> set[int]:
    return {array for pins in choice for array, _ in pins}


def _compatible(states: list[Pins], choice: list[Pins]) -> Iterator[Pins]:
    """Join states with one list of pins, on the arrays that both have."""
    for arrays, group in _by_arrays(states).items():
        partners: dict[frozenset[int], dict[frozenset[tuple[int, int]], list[Pins]]] = {}
        for pins in choice:
            shared = frozenset(pin for pin in pins if pin[0] in arrays)
            by_shared = partners.setdefault(frozenset(array for array, _ in shared), {})
            by_shared.setdefault(shared, []).append(pins)
        for state in group:
            for common, by_shared in partners.items():
                shared = frozenset(pin for pin in state if pin[0] in common)
                for pins in by_shared.get(shared, ()):
                    yield tuple(sorted({*state, *pins}))


def _by_arrays(states: list[Pins]) -> dict[frozenset[int], list[Pins]]:
    groups: dict[frozenset[int], list[Pins]] = {}
    for state in states:
        groups.setdefault(frozenset(array for array, _ in state), []).append(state)
    return groups
