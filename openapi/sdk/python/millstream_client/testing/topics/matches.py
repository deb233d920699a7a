"""Matches of routes: subjects completely, and operators that compare one value."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from millstream_client.testing.problems import unsupported
from millstream_client.testing.topics.subjects import check_pattern, match_invalid, matches_subject

UNMATCHED = "unmatched"
MATCHES_MAX = 100
FIELDS = ("subject", "filter", "where")

Document = Mapping[str, Any]
"""A message as matches see it: subject, key, headers, body, content_type, size and meta."""

Test = Callable[[Any], bool]


def check_match(match: Any) -> None:
    """Check the match of a route. Raises Problem, also for what is not in memory."""
    if match == UNMATCHED:
        return
    for pointer, item in _items(match):
        if not isinstance(item, dict):
            raise match_invalid(pointer, "A match must be an object")
        for name in item:
            if name not in FIELDS:
                raise match_invalid(f"{pointer}/{name}", "Unknown field", "unknown_field")
        if item.get("where"):
            raise unsupported("match with where")
        for nth, pattern in enumerate(_patterns(item)):
            place = f"/{nth}" if isinstance(item["subject"], list) else ""
            if not isinstance(pattern, str):
                raise match_invalid(
                    f"{pointer}/subject{place}", "A subject pattern must be a string"
                )
            check_pattern(pattern, f"{pointer}/subject{place}")
        if item.get("filter") is not None:
            _check_filter(item["filter"], f"{pointer}/filter")


def matches(match: Any, document: Document) -> bool:
    """Return whether a match, which is not UNMATCHED, takes a message."""
    items = _items(match)
    return not items or any(next(_failed(item, document), None) is None for _, item in items)


def failed_paths(match: Any, document: Document) -> set[str]:
    """Return the paths of conditions that a message does not meet; empty if it is taken."""
    failed = [set(_failed(item, document)) for _, item in _items(match)]
    return set().union(*failed) if all(failed) else set()


def _items(match: Any) -> list[tuple[str, Any]]:
    if match is None or match == {}:
        return []
    if not isinstance(match, list):
        return [("/match", match)]
    if not 1 <= len(match) <= MATCHES_MAX:
        raise match_invalid("/match", f"Specify 1 to {MATCHES_MAX} matches", "out_of_range")
    return [(f"/match/{nth}", item) for nth, item in enumerate(match)]


def _patterns(item: Mapping[str, Any]) -> list[Any]:
    subject = item.get("subject")
    if subject is None:
        return []
    return subject if isinstance(subject, list) else [subject]


def _failed(item: Mapping[str, Any], document: Document) -> Iterator[str]:
    """Yield the paths of conditions of one match that a message does not meet."""
    patterns = _patterns(item)
    if patterns and not any(matches_subject(one, document["subject"]) for one in patterns):
        yield "subject"
    if item.get("filter") is not None:
        yield from _failed_fields(item["filter"], document, "")


# ── Filters ──


def _check_filter(pattern: Any, pointer: str) -> None:
    if not isinstance(pattern, dict):
        raise match_invalid(pointer, "Filter is not an object")
    if not pattern:
        raise match_invalid(pointer, "Empty objects are not allowed")
    for name, value in pattern.items():
        if name == "$or" or "." in name:
            raise unsupported(f"filter with {name}")
        if isinstance(value, dict):
            _check_filter(value, f"{pointer}/{name}")
        elif not isinstance(value, list):
            raise match_invalid(f"{pointer}/{name}", f'"{name}" must be an object or an array')
        elif not value:
            raise match_invalid(f"{pointer}/{name}", "Empty arrays are not allowed")
        else:
            for nth, term in enumerate(value):
                _test_of(term, f"{pointer}/{name}/{nth}")


def _failed_fields(pattern: Mapping[str, Any], value: Any, parent: str) -> Iterator[str]:
    """Yield the paths of a pattern's fields that do not hold for an object."""
    below = value if isinstance(value, Mapping) else {}
    for name, terms in pattern.items():
        path, field = f"{parent}{name}", below.get(name, _NOTHING)
        if isinstance(terms, dict):
            if _has_object_in_array(field):
                raise unsupported("filter on the objects of an array")
            yield from _failed_fields(terms, field, f"{path}.")
        elif not _holds(terms, field):
            yield path


def _holds(terms: list[Any], value: Any) -> bool:
    """Return whether any of some terms holds for a value."""
    leaves = _leaves(value)
    if not leaves:
        return {"exists": False} in terms
    return any(_test_of(term, "")(leaf) for term in terms for leaf in leaves)


_NOTHING = object()


def _has_object_in_array(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(element, Mapping) or _has_object_in_array(element) for element in value
    )


def _leaves(value: Any) -> list[Any]:
    """Return a scalar value, or the scalar elements of an array."""
    if value is _NOTHING or isinstance(value, Mapping):
        return []
    if isinstance(value, list):
        return [leaf for element in value for leaf in _leaves(element)]
    return [value]


def _test_of(term: Any, pointer: str) -> Test:
    """Return the test of a term. Raises Problem."""
    if not isinstance(term, dict):
        return lambda value: _same(value, term)
    if len(term) != 1:
        raise match_invalid(pointer, "Only one key allowed in match expression")
    [(operator, argument)] = term.items()
    if operator not in _OPERATORS or not _is_plain(operator, argument):
        raise unsupported(f"filter with {operator} of this kind")
    return _OPERATORS[operator](argument)


def _is_plain(operator: str, argument: Any) -> bool:
    """Return whether the in-memory service has an operator with this argument."""
    if operator == "exists":
        return isinstance(argument, bool)
    if operator == "numeric":
        return _is_range(argument)
    if operator == "anything-but":
        values = argument if isinstance(argument, list) else [argument]
        return bool(values) and all(isinstance(value, str) or _is_number(value) for value in values)
    return isinstance(argument, str)


def _is_range(argument: Any) -> bool:
    if not isinstance(argument, list) or len(argument) not in {2, 4}:
        return False
    pairs = list(zip(argument[::2], argument[1::2], strict=True))
    return all(operator in _COMPARISONS and _is_number(bound) for operator, bound in pairs)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _in_range(bounds: list[Any]) -> Test:
    pairs = list(zip(bounds[::2], bounds[1::2], strict=True))
    return lambda value: (
        _is_number(value) and all(_COMPARISONS[operator](value, bound) for operator, bound in pairs)
    )


def _anything_but(argument: Any) -> Test:
    values = argument if isinstance(argument, list) else [argument]
    return lambda value: not any(_same(value, excluded) for excluded in values)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}

_OPERATORS: dict[str, Callable[[Any], Test]] = {
    "prefix": lambda text: lambda value: isinstance(value, str) and value.startswith(text),
    "suffix": lambda text: lambda value: isinstance(value, str) and value.endswith(text),
    "equals-ignore-case": lambda text: (
        lambda value: isinstance(value, str) and value.lower() == text.lower()
    ),
    "anything-but": _anything_but,
    "numeric": _in_range,
    "exists": lambda exists: lambda value: exists,
}
