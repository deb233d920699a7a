"""Translation of another system's condition into a match."""

import msgspec

from storage.domain.filters.conditions import ConditionInvalid, SqlCondition
from storage.domain.filters.sql.names import ROOTS

NUMBER_NOTE = "A number matches headers of the type Number only; use `where` for headers of text."
DIVISION_NOTE = "A division of integers is exact here: 7 / 2 is 3.5, not 3."


class TranslationRefused(ValueError):
    """The condition is invalid, or has no equivalent here; `reason` is a plain sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Translation(msgspec.Struct, frozen=True):
    """Match as JSON on the wire, and what differs from the system that it comes from."""

    match: dict[str, object]
    notes: tuple[str, ...] = ()


def translate_sql(text: str, *notes: str) -> Translation:
    """Translate a SQL condition: properties named like a field of a message are headers.

    Raises TranslationRefused.
    """
    try:
        where = _scoped(text)
        SqlCondition(where)
    except ConditionInvalid as error:
        raise TranslationRefused(error.reason) from error
    return Translation({"where": where}, (*notes, *([DIVISION_NOTE] if "/" in where else [])))


def _scoped(text: str) -> str:
    from storage.domain.filters.sql.parser import lone_names  # loads sqlglot: 0.3 s

    for name in reversed([*lone_names(text)]):
        if name.text in ROOTS:
            text = f"{text[: name.start]}headers.{text[name.start :]}"
    return text
