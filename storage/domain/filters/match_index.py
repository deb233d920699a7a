"""Index of the matches of many routes, which finds those that take a message.

Each alternative of a match waits where it is found fastest:

    everything     no condition
    literals       path → value → alternatives; at the field whose values lead to the fewest of them
    subjects       trie of the patterns
    prefixes       path → length → prefix → alternatives
    ranges         path → sorted bounds
    conditions     every other condition, evaluated once per message however many alternatives have it
    unconditional  SQL conditions alone, evaluated for each message

A candidate's other conditions are checked then; equal ones once per message.
"""

from collections.abc import Callable, Iterator
from typing import Any

from storage.domain.filters.conjunctions import FieldCondition, hold_together
from storage.domain.filters.documents import Document
from storage.domain.filters.leaves import PathTree, Pins
from storage.domain.filters.matches import Alternative, CompiledMatch
from storage.domain.filters.subjects import SubjectTrie
from storage.domain.filters.value_index import ValueIndex


class IndexedAlternative:
    """Alternative of a route in the index, with its conditions shared with equal ones."""

    __slots__ = ("alternative", "conditions", "discard", "is_met", "number")

    def __init__(
        self, number: int, alternative: Alternative, conditions: tuple[FieldCondition, ...]
    ) -> None:
        self.number = number
        self.alternative = alternative
        self.conditions = conditions
        self.is_met = False  # by what leads to it
        self.discard: Callable[[], None] = _nothing


def _nothing() -> None:
    pass


class SharedConditions:
    """Conditions by identity, each as often as it is in use."""

    def __init__(self) -> None:
        self._uses: dict[Any, tuple[FieldCondition, int]] = {}

    def __len__(self) -> int:
        return len(self._uses)

    def add(self, condition: FieldCondition) -> FieldCondition:
        """Return the condition that equal ones share, with a use more."""
        shared, uses = self._uses.get(condition.identity, (condition, 0))
        self._uses[condition.identity] = (shared, uses + 1)
        return shared

    def discard(self, condition: FieldCondition) -> None:
        """Remove a use."""
        shared, uses = self._uses.pop(condition.identity)
        if uses > 1:
            self._uses[condition.identity] = (shared, uses - 1)


class MatchIndex:
    """Compiled matches by the number of their route."""

    def __init__(self) -> None:
        self.conditions_evaluated = 0
        """Conditions that the last `find` evaluated."""
        self._routes: dict[int, list[IndexedAlternative]] = {}
        self._everything: set[int] = set()
        self._subjects: SubjectTrie[IndexedAlternative] = SubjectTrie()
        self._values: dict[str, ValueIndex[IndexedAlternative]] = {}
        self._paths = PathTree()
        self._conditions: dict[FieldCondition, set[IndexedAlternative]] = {}
        self._unconditional: set[IndexedAlternative] = set()
        self._shared = SharedConditions()

    def __len__(self) -> int:
        return len(self._routes)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is left of any route."""
        return not (
            self._routes
            or self._everything
            or self._values
            or self._paths.tops
            or self._conditions
            or self._unconditional
            or len(self._shared)
            or not self._subjects.is_empty
        )

    def add(self, number: int, compiled: CompiledMatch) -> None:
        """Add a route, or replace it."""
        self.discard(number)
        self._routes[number] = [
            self._indexed(number, alternative) for alternative in compiled.alternatives
        ]

    def discard(self, number: int) -> None:
        """Remove a route if it is there."""
        for item in self._routes.pop(number, ()):
            item.discard()
            for condition in item.conditions:
                self._shared.discard(condition)

    def find(self, document: Document) -> list[int]:
        """Return the numbers of the routes that take a document, sorted."""
        numbers = set(self._everything)
        search = _Search(document)
        for item in self._candidates(search):
            if item.number not in numbers and (item.is_met or search.holds(item)):
                numbers.add(item.number)
        self.conditions_evaluated = search.evaluated
        return sorted(numbers)

    def _candidates(self, search: "_Search") -> Iterator[IndexedAlternative]:
        document = search.document
        yield from self._subjects.find(document.subject)
        for path, leaves in document.extract(self._paths).items():
            yield from self._values[path].find(leaves)
        for condition, items in self._conditions.items():
            if search.pins(condition):
                yield from items
        yield from self._unconditional

    def _indexed(self, number: int, alternative: Alternative) -> IndexedAlternative:
        conditions = tuple(map(self._shared.add, alternative.conjunction.conditions))
        item = IndexedAlternative(number, alternative, conditions)
        self._insert(item)
        return item

    def _insert(self, item: IndexedAlternative) -> None:
        subjects = item.alternative.subjects
        if literal := self._rarest([each for each in item.conditions if each.is_literal]):
            self._insert_values(item, literal)
        elif subjects:
            self._insert_subjects(item, subjects)
        elif indexed := self._rarest([each for each in item.conditions if each.is_indexed]):
            self._insert_values(item, indexed)
        elif item.conditions:
            self._insert_condition(item)
        elif item.alternative.where is not None:
            _insert(item, self._unconditional)
        else:
            self._everything.add(item.number)
            item.discard = lambda: self._everything.discard(item.number)

    def _rarest(self, conditions: list[FieldCondition]) -> FieldCondition | None:
        """Return the condition whose values lead to the fewest alternatives."""
        return min(conditions, key=self._rarity, default=None)

    def _rarity(self, condition: FieldCondition) -> tuple[int, bool, int, bool]:
        """Rank by items that its values lead to; then those with few values and bodies come last."""
        index = self._values.get(condition.path)
        return (
            index.count(condition.terms) if index else 0,
            condition.has_boolean,
            len(condition.terms),
            condition.path.startswith("body"),
        )

    def _insert_values(self, item: IndexedAlternative, condition: FieldCondition) -> None:
        alternative = item.alternative
        item.is_met = len(item.conditions) == 1 and not (alternative.subjects or alternative.where)
        path = condition.path
        index = self._values.setdefault(path, ValueIndex())
        index.add(condition.terms, item)
        self._paths.add(path)

        def discard() -> None:
            index.discard(condition.terms, item)
            self._paths.discard(path)
            if index.is_empty:
                del self._values[path]

        item.discard = discard

    def _insert_subjects(self, item: IndexedAlternative, patterns: tuple[str, ...]) -> None:
        item.is_met = not (item.conditions or item.alternative.where)
        for pattern in patterns:
            self._subjects.add(pattern, item)

        def discard() -> None:
            for pattern in patterns:
                self._subjects.discard(pattern, item)

        item.discard = discard

    def _insert_condition(self, item: IndexedAlternative) -> None:
        """Insert at the condition that the fewest others wait for."""
        condition = min(item.conditions, key=lambda each: len(self._conditions.get(each, ())))
        item.is_met = len(item.conditions) == 1 and item.alternative.where is None
        items = self._conditions.setdefault(condition, set())
        items.add(item)

        def discard() -> None:
            items.discard(item)
            if not items:
                del self._conditions[condition]

        item.discard = discard


def _insert(item: IndexedAlternative, items: set[IndexedAlternative]) -> None:
    items.add(item)
    item.discard = lambda: items.discard(item)


class _Search:
    """Search of the routes of one document, which evaluates each condition once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.evaluated = 0
        self._pins: dict[FieldCondition, list[Pins]] = {}

    def pins(self, condition: FieldCondition) -> list[Pins]:
        """Return the array elements on which a condition holds."""
        pins = self._pins.get(condition)
        if pins is None:
            self.evaluated += 1
            pins = self._pins[condition] = condition.pins(self.document.leaves(condition.path))
        return pins

    def holds(self, item: IndexedAlternative) -> bool:
        """Return whether all parts of an alternative hold."""
        choices = []
        for condition in item.conditions:
            pins = self.pins(condition)
            if not pins:
                return False
            choices.append(pins)
        alternative = item.alternative
        return (
            alternative.has_subject(self.document.subject)
            and hold_together(choices)
            and self._holds_where(alternative)
        )

    def _holds_where(self, alternative: Alternative) -> bool:
        if alternative.where is None:
            return True
        self.evaluated += 1
        return alternative.where.holds(self.document)
