"""Index of the conditions on one path: the items that a value leads to."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from storage.domain.filters.leaves import Leaves
from storage.domain.filters.ranges import Range, RangeTable
from storage.domain.filters.terms import Term, is_number

Item = TypeVar("Item", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)


class ValueIndex(Generic[Item]):
    """Items by literal, prefix or numeric range of the values at a path."""

    __slots__ = ("_literals", "_prefixes", "_ranges")

    def __init__(self) -> None:
        self._literals: dict[Hashable, set[Item]] = {}
        self._prefixes: dict[int, dict[str, set[Item]]] = {}
        self._ranges: RangeTable[Item] = RangeTable()

    @property
    def is_empty(self) -> bool:
        """Return whether it has no item."""
        return not (self._literals or self._prefixes or len(self._ranges))

    def count(self, terms: Iterable[Term]) -> int:
        """Count the items that values of these terms lead to; all ranges count for a range."""
        return sum(self._count(term) for term in terms)

    def add(self, terms: Iterable[Term], item: Item) -> None:
        """Add an item to each of its terms."""
        for term in terms:
            match term.argument:
                case Range() as bounds:
                    self._ranges.add(bounds, item)
                case str(prefix) if term.operator == "prefix":
                    by_prefix = self._prefixes.setdefault(len(prefix), {})
                    by_prefix.setdefault(prefix, set()).add(item)
                case literal:
                    self._literals.setdefault(literal, set()).add(item)

    def discard(self, terms: Iterable[Term], item: Item) -> None:
        """Remove an item from each of its terms."""
        for term in terms:
            match term.argument:
                case Range() as bounds:
                    self._ranges.discard(bounds, item)
                case str(prefix) if term.operator == "prefix":
                    _discard(self._prefixes[len(prefix)], prefix, item)
                    if not self._prefixes[len(prefix)]:
                        del self._prefixes[len(prefix)]
                case literal:
                    _discard(self._literals, literal, item)

    def find(self, leaves: Leaves) -> Iterator[Item]:
        """Yield the items that the values lead to; an item may come more than once."""
        for value, _ in leaves:
            if value is True or value is False:
                yield from self._literals.get(("boolean", value), ())
                continue
            if items := self._literals.get(value):
                yield from items
            if self._prefixes and isinstance(value, str):
                yield from self._find_prefixes(value)
            elif is_number(value):
                yield from self._ranges.find(value)

    def _find_prefixes(self, text: str) -> Iterator[Item]:
        for length, by_prefix in self._prefixes.items():
            if length <= len(text) and (items := by_prefix.get(text[:length])):
                yield from items

    def _count(self, term: Term) -> int:
        match term.argument:
            case Range():
                return len(self._ranges)
            case str(prefix) if term.operator == "prefix":
                return len(self._prefixes.get(len(prefix), {}).get(prefix, ()))
            case literal:
                return len(self._literals.get(literal, ()))


def _discard(table: dict[Key, set[Item]], key: Key, item: Item) -> None:
    items = table[key]
    items.discard(item)
    if not items:
        del table[key]
