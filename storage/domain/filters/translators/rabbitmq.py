"""Translator of RabbitMQ bindings.

{"exchange_type": "topic", "routing_key": "order.*"}
{"exchange_type": "headers", "arguments": {"x-match": "any", "format": "pdf"}}
"""

from collections.abc import Mapping

from storage.domain import limits
from storage.domain.filters.translation import Translation, TranslationRefused

_FIELDS = frozenset({"exchange_type", "routing_key", "arguments"})
_MODES = frozenset({"all", "any", "all-with-x", "any-with-x"})
_WILDCARDS = frozenset("*#>")
NUMBER_NOTE = "A number matches headers of the type Number only; use `where` for headers of text."


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
            return _subject(key, wildcards=frozenset())
        case "topic":
            return _subject(key, wildcards=frozenset("*#"))
        case "headers":
            return _headers(condition.get("arguments") or {})
        case "x-consistent-hash":
            raise TranslationRefused("Use a route with a spread instead of a consistent hash.")
        case _:
            raise TranslationRefused("The exchange_type must be direct, fanout, topic or headers.")


def _subject(key: str, *, wildcards: frozenset[str]) -> Translation:
    if not key:
        return Translation({"filter": {"subject": [""]}})
    words = key.split(".")
    if len(key.encode()) > limits.SUBJECT_BYTES_MAX or len(words) > limits.SUBJECT_TOKENS_MAX:
        raise TranslationRefused(
            f"A subject has at most {limits.SUBJECT_BYTES_MAX} bytes"
            f" and {limits.SUBJECT_TOKENS_MAX} words."
        )
    for word in words:
        _check_token(word, wildcards)
    return Translation({"subject": key})


def _check_token(word: str, wildcards: frozenset[str]) -> None:
    if word in wildcards:
        return
    if not word or not word.isprintable() or " " in word or _WILDCARDS & set(word):
        raise TranslationRefused(f"A subject cannot have the word '{word}'.")


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
    notes = (NUMBER_NOTE,) if any(_is_number(value) for value in arguments.values()) else ()
    return Translation(_combined(conditions, is_any=mode.startswith("any")), notes)


def _literals(name: str, value: object) -> list[object]:
    if name == "$or":
        raise TranslationRefused("A header named '$or' cannot be matched.")
    if value is None:  # the header is there, with any value
        return [{"exists": True}]
    if isinstance(value, str) or _is_number(value):
        return [value]
    raise TranslationRefused(f"The argument '{name}' is neither a text nor a number.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _combined(conditions: Mapping[str, list[object]], *, is_any: bool) -> dict[str, object]:
    if not conditions:
        if is_any:
            raise TranslationRefused("A binding that needs any of no headers takes nothing.")
        return {}
    if not is_any or len(conditions) == 1:
        return {"filter": {"headers": dict(conditions)}}
    alternatives = [{"headers": {name: literals}} for name, literals in conditions.items()]
    return {"filter": {"$or": alternatives}}
