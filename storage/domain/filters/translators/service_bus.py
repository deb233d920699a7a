"""Translator of Service Bus rules: SQL filters and correlation filters.

A SQL filter is a text, or `{"sqlFilter": {"sqlExpression": text}}`. A correlation filter is
`{"correlationFilter": {"label": "red", "properties": {"colour": "blue"}}}`, as the management API has
both; the wrapping names may be left out.
"""

from collections.abc import Mapping

from storage.domain.filters.sql.names import SYSTEM_PROPERTIES
from storage.domain.filters.translation import (
    NUMBER_NOTE,
    Translation,
    TranslationRefused,
    translate_sql,
)

_PROPERTIES = frozenset({"properties", "userproperties", "applicationproperties"})
_IGNORED = frozenset({"requirespreprocessing", "compatibilitylevel"})
SYSTEM_NOTE = (
    "Label is the subject, ContentType content_type, SessionId the key; other system properties"
    " are headers."
)


def translate(condition: object) -> Translation:
    """Translate a rule's filter.

    Raises TranslationRefused.
    """
    if isinstance(condition, str):
        return _sql(condition)
    if not isinstance(condition, Mapping):
        raise TranslationRefused("A filter is a SQL text or an object.")
    properties = condition.get("sqlFilter") or condition.get("correlationFilter") or condition
    if not isinstance(properties, Mapping):
        raise TranslationRefused("A filter is an object.")
    if "sqlExpression" in properties:
        return _sql(properties["sqlExpression"])
    return _correlation(properties)


def _sql(text: object) -> Translation:
    if not isinstance(text, str):
        raise TranslationRefused("The SQL expression of a filter is a text.")
    if "".join(text.split()) == "1=1":
        return Translation({})
    return translate_sql(text, *([SYSTEM_NOTE] if "sys." in text.lower() else []))


def _correlation(properties: Mapping[str, object]) -> Translation:
    fields: dict[str, object] = {}
    headers: dict[str, object] = {}
    for name, value in properties.items():
        if name.lower() in _PROPERTIES:
            headers |= _custom(value)
        elif name.lower() not in _IGNORED:
            _add_system_property(name, value, fields, headers)
    if headers:
        fields["headers"] = headers
    if not fields:
        raise TranslationRefused("A correlation filter names at least one property.")
    return Translation({"filter": fields}, tuple(_notes(properties, headers)))


def _add_system_property(
    name: str, value: object, fields: dict[str, object], headers: dict[str, object]
) -> None:
    path = SYSTEM_PROPERTIES.get(name.lower())
    if path is None or path == ("size",):
        raise TranslationRefused(f"A correlation filter has no property '{name}'.")
    if not isinstance(value, str):
        raise TranslationRefused(f"The property '{name}' is a text.")
    target = headers if len(path) == 2 else fields
    target[path[-1]] = [value]


def _custom(properties: object) -> dict[str, object]:
    if not isinstance(properties, Mapping):
        raise TranslationRefused("The properties of a correlation filter are an object.")
    for name, value in properties.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TranslationRefused(f"The property '{name}' is neither a text nor a number.")
        if name == "$or":
            raise TranslationRefused("A header named '$or' cannot be matched.")
    return {name: [value] for name, value in properties.items()}


def _notes(properties: Mapping[str, object], headers: Mapping[str, object]) -> list[str]:
    has_system = any(name.lower() in SYSTEM_PROPERTIES for name in properties)
    has_number = any(not isinstance(literals[0], str) for literals in headers.values())  # type: ignore[index]  # lists
    return [
        note for note, applies in ((SYSTEM_NOTE, has_system), (NUMBER_NOTE, has_number)) if applies
    ]
