"""Translator of RabbitMQ bindings.

{"exchange_type": "topic", "routing_key": "order.*"}
{"exchange_type": "headers", "arguments": {"x-match": "any", "format": "pdf"}}
"""

from collections.abc import Callable, Mapping

from storage.domain.errors import ValidationFailed
from storage.domain.filters.subjects import check_subject, check_subject_pattern
from storage.domain.filters.terms import is_number
from storage.domain.filters.translation import NUMBER_NOTE, Translation, TranslationRefused

_FIELDS = frozenset({"exchange_type", "routing_key", "arguments"})
_MODES = frozenset({"all", "any", "all-with-x", "any-with-x"})


def translate(condition: object) -> Translation:
    """Translate a binding of a direct, fanout, topic or headers exchange.

    Raises TranslationRefused.
    """
    if not isinstance(condition, Mapping):
        raise TranslationRefused("A binding is an object with exchange_type and routing_key.")
    if unknown := sorted(str(name) for name in condition.keys() - _FIELDS):
        raise TranslationRefused(f"A binding has no field '{unknown[0]}'.")
    exchange_type, key = condition.get("exchange_type"), condition.get("routing_key", "")
    if not isinstance(key, str):
        raise TranslationRefused("The routing_key is a text.")
    match exchange_type:
        case "fanout":
            return Translation({})
        case "direct":
            return _subject(key, check_subject)
        case "topic":
            return _subject(key, _check_binding_key)
        case "headers":
            return _headers(condition.get("arguments") or {})
        case "x-consistent-hash":
            raise TranslationRefused("Use a route with a spread instead of a consistent hash.")
        case _:
            raise TranslationRefused("The exchange_type must be direct, fanout, topic or headers.")


def _subject(key: str, check: Callable[[str], None]) -> Translation:
    if not key:
        return Translation({"filter": {"subject": [""]}})
    try:
        check(key)
    except ValidationFailed as error:
        raise TranslationRefused(f"The routing_key is no subject here. {error.detail}.") from error
    return Translation({"subject": key})


def _check_binding_key(key: str) -> None:
    """Check the key of a topic exchange. Raises ValidationFailed."""
    if ">" in key:  # no wildcard there, and no character of a subject here
        check_subject(">")
    check_subject_pattern(key)


def _headers(arguments: object) -> Translation:
    if not isinstance(arguments, Mapping):
        raise TranslationRefused("The arguments of a binding are an object.")
    mode = arguments.get("x-match", "all")
    if not isinstance(mode, str) or mode not in _MODES:
        raise TranslationRefused(f"x-match must be one of {', '.join(sorted(_MODES))}.")
    conditions = {
        name: _literals(name, value)
        for name, value in arguments.items()
        if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
    }
    notes = (NUMBER_NOTE,) if any(is_number(value) for value in arguments.values()) else ()
    return Translation(_combined(conditions, is_any=mode.startswith("any")), notes)


def _literals(name: str, value: object) -> list[object]:
    if name == "$or":
        raise TranslationRefused("A header named '$or' cannot be matched.")
    if value is None:  # the header is there, with any value
        return [{"exists": True}]
    if isinstance(value, str) or is_number(value):
        return [value]
    raise TranslationRefused(f"The argument '{name}' is neither a text nor a number.")


def _combined(conditions: Mapping[str, list[object]], *, is_any: bool) -> dict[str, object]:
    if not conditions:
        if is_any:
            raise TranslationRefused("A binding that needs any of no headers takes nothing.")
        return {}
    if not is_any or len(conditions) == 1:
        return {"filter": {"headers": dict(conditions)}}
    alternatives = [{"headers": {name: literals}} for name, literals in conditions.items()]
    return {"filter": {"$or": alternatives}}
