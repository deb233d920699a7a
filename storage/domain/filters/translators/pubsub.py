"""Translator of Pub/Sub filters (Google: "Filter messages from a subscription").

    attributes:name   attributes.name = "com"   attributes.name != "com"   hasPrefix(attributes.name, "co")

They are connected by AND, OR and NOT (or `-`); AND and OR need parentheses between them. The result is a
filter, which is indexed, where each attribute stands once in a conjunction, and a `where` condition otherwise.
"""

import re
from collections.abc import Callable, Iterator

from storage.domain.filters.conditions import ConditionInvalid, SqlCondition
from storage.domain.filters.translation import Translation, TranslationRefused
from storage.domain.filters.translators.pubsub_syntax import Connective, Node, PubSubTerm, parse

MISSING_NOTE = (
    "A message without the attribute matches != and NOT hasPrefix, as the documentation of Pub/Sub"
    " describes them: messages without the attribute and the value."
)
WHERE_NOTE = (
    "The filter repeats an attribute, or alternatives, in one conjunction, so it becomes a condition,"
    " which is asked for each message."
)


def translate(condition: object) -> Translation:
    """Translate a filter; an empty one takes every message.

    Raises TranslationRefused.
    """
    if not isinstance(condition, str):
        raise TranslationRefused("A filter is a text.")
    if not condition.strip():
        return Translation({})
    node = parse(condition)
    notes = (MISSING_NOTE,) if any(_matches_missing(term) for term in _terms(node)) else ()
    headers = _headers(node)
    if headers is None:
        return Translation({"where": _checked(_where(node))}, (*notes, WHERE_NOTE))
    return Translation({"filter": {"headers": headers}}, notes)


def _terms(node: Node) -> Iterator[PubSubTerm]:
    if isinstance(node, PubSubTerm):
        yield node
    else:
        for part in node.parts:
            yield from _terms(part)


def _matches_missing(term: PubSubTerm) -> bool:
    return term.is_negated and term.operator != "exists"


def _headers(node: Node) -> dict[str, object] | None:
    """Return a filter's headers; None if an attribute or an `$or` would stand there twice."""
    if isinstance(node, PubSubTerm):
        return {node.attribute: _patterns(node)}
    if node.connector == "OR":
        return _alternatives(node)
    headers: dict[str, object] = {}
    attributes: set[str] = set()
    for part in node.parts:
        condition, names = _headers(part), {term.attribute for term in _terms(part)}
        if condition is None or names & attributes or condition.keys() & headers.keys():
            return None
        headers |= condition
        attributes |= names
    return headers


def _alternatives(node: Connective) -> dict[str, object] | None:
    """Return the headers of a disjunction: the tests of one attribute are one list."""
    lists: dict[str, list[object]] = {}
    objects: list[dict[str, object]] = []
    for part in node.parts:
        if isinstance(part, PubSubTerm):
            patterns = lists.setdefault(part.attribute, [])
            patterns += [pattern for pattern in _patterns(part) if pattern not in patterns]
        else:
            headers = _headers(part)
            if headers is None:
                return None
            objects.append(headers)
    objects[:0] = [{name: patterns} for name, patterns in lists.items()]
    return {"$or": objects} if len(objects) > 1 else objects[0]


def _patterns(term: PubSubTerm) -> list[object]:
    exists: object = {"exists": not term.is_negated}
    if term.operator == "exists":
        return [exists]
    if term.operator == "equals":
        return [{"anything-but": term.value}, exists] if term.is_negated else [term.value]
    prefix = {"prefix": term.value}
    return [{"anything-but": prefix}, exists] if term.is_negated else [prefix]


def _where(node: Node) -> str:
    if isinstance(node, PubSubTerm):
        return _RENDERERS[node.operator, node.is_negated](_name(node.attribute), node.value)
    parts = [
        f"({_where(part)})" if isinstance(part, Connective) else _where(part) for part in node.parts
    ]
    return f" {node.connector} ".join(parts)


def _checked(where: str) -> str:
    try:
        SqlCondition(where)
    except ConditionInvalid as error:
        raise TranslationRefused(
            f"As a condition, the filter is too large. {error.reason}"
        ) from error
    return where


def _name(attribute: str) -> str:
    return 'headers."{}"'.format(attribute.replace('"', '""'))


def _text(value: str) -> str:
    return "'{}'".format(value.replace("'", "''"))


def _prefix_pattern(value: str) -> str:
    escaped = re.sub(r"([!%_])", r"!\1", value)
    return f"{_text(escaped + '%')} ESCAPE '!'"


_RENDERERS: dict[tuple[str, bool], Callable[[str, str], str]] = {
    ("exists", False): lambda name, _: f"EXISTS({name})",
    ("exists", True): lambda name, _: f"NOT EXISTS({name})",
    ("equals", False): lambda name, value: f"{name} = {_text(value)}",
    ("equals", True): lambda name, value: f"({name} <> {_text(value)} OR {name} IS NULL)",
    ("prefix", False): lambda name, value: f"{name} LIKE {_prefix_pattern(value)}",
    ("prefix", True): lambda name, value: (
        f"({name} NOT LIKE {_prefix_pattern(value)} OR {name} IS NULL)"
    ),
}
