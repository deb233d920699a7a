"""Predicates: compiled conditions of three values, and the paths that they read."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from storage.domain.filters.sql.names import Path
from storage.domain.filters.sql.values import Scalar


class ConditionDocument(Protocol):
    """Message as conditions see it."""

    def value(self, path: Path) -> object:
        """Return the JSON value at a path; NOTHING if there is none."""


Test = Callable[[ConditionDocument], bool | None]


class Operand(NamedTuple):
    """Compiled value: how it is read, from which paths, and whether it is a header's."""

    read: Callable[[ConditionDocument], Scalar]
    paths: tuple[Path, ...] = ()
    is_header: bool = False
    literal: Scalar = None


class Predicate(NamedTuple):
    """Compiled condition: its test, and the conditions or the paths that it consists of."""

    test: Test
    paths: tuple[Path, ...] = ()
    parts: tuple["Predicate", ...] = ()
    is_negation: bool = False


def negation(part: Predicate) -> Predicate:
    """Return NOT: UNKNOWN stays UNKNOWN."""
    inner = part.test

    def test(document: ConditionDocument) -> bool | None:
        truth = inner(document)
        return None if truth is None else not truth

    return Predicate(test, parts=(part,), is_negation=True)


def conjunction(parts: Sequence[Predicate]) -> Predicate:
    """Return AND: false if a part is, else UNKNOWN if a part is."""
    return _connection(parts, decisive=False)


def disjunction(parts: Sequence[Predicate]) -> Predicate:
    """Return OR: true if a part is, else UNKNOWN if a part is."""
    return _connection(parts, decisive=True)


def _connection(parts: Sequence[Predicate], *, decisive: bool) -> Predicate:
    tests = tuple(part.test for part in parts)

    def test(document: ConditionDocument) -> bool | None:
        truth: bool | None = not decisive
        for part in tests:
            result = part(document)
            if result is decisive:
                return decisive
            if result is None:
                truth = None
        return truth

    return Predicate(test, parts=tuple(parts))


def paths_of(predicate: Predicate) -> Iterator[Path]:
    """Yield the paths that a predicate reads."""
    yield from predicate.paths
    for part in predicate.parts:
        yield from paths_of(part)


def failures(
    predicate: Predicate, document: ConditionDocument, *, required: bool
) -> Iterator[Path]:
    """Yield the paths of the comparisons that keep a predicate from being what is required."""
    if predicate.test(document) is required:
        return
    yield from predicate.paths
    for part in predicate.parts:
        yield from failures(part, document, required=required is not predicate.is_negation)
