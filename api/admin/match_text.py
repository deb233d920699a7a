"""Text of a route's match: its conditions in the order that a reader expects."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from storage.domain.filters.matches import Match, parse_matches
from storage.domain.topics.route import UNMATCHED

_OPERATORS = {
    "prefix": "begins with",
    "suffix": "ends with",
    "wildcard": "like",
    "equals-ignore-case": "is, in any case,",
    "anything-but": "is not",
    "cidr": "in",
}
_OR = "$or"


class MatchCondition(NamedTuple):
    """Condition on a field of a message, as text."""

    field: str
    text: str


def describe_match(match: Any) -> list[list[MatchCondition]]:
    """Return the conditions of each alternative; no alternatives: every message."""
    if match == UNMATCHED:
        return [[MatchCondition("messages", "that no other route takes")]]
    return [list(_conditions(one)) for one in parse_matches(match)]


def compact_json(value: object) -> str:
    """Return a value as compact JSON."""
    return msgspec.json.encode(value).decode()


def indented_json(value: object) -> str:
    """Return a value as JSON on several lines."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _conditions(match: Match) -> Iterator[MatchCondition]:
    if match.subject:
        yield MatchCondition("subject", " or ".join(match.subject))
    if match.filter is not None:
        yield from _fields(match.filter, ())
    if match.where:
        yield MatchCondition("where", match.where)


def _fields(pattern: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[MatchCondition]:
    for key, value in pattern.items():
        if key == _OR:
            yield MatchCondition(".".join(path) or "any of", compact_json(value))
        elif isinstance(value, dict):
            yield from _fields(value, (*path, key))
        else:
            yield MatchCondition(".".join((*path, key)), " or ".join(map(_term, value)))


def _term(term: Any) -> str:
    if not isinstance(term, dict) or len(term) != 1:
        return f"= {compact_json(term)}"
    [(operator, value)] = term.items()
    if operator == "exists":
        return "exists" if value else "does not exist"
    if operator == "numeric":
        pairs = zip(value[::2], value[1::2], strict=True)
        return " and ".join(f"{sign} {compact_json(number)}" for sign, number in pairs)
    name = _OPERATORS.get(operator)
    return compact_json(term) if name is None else f"{name} {compact_json(value)}"
