"""Statements of `queries.sql`, by name."""

import re
from functools import cache
from pathlib import Path

from sqlalchemy import TextClause, text

_FILE = Path(__file__).with_name("queries.sql")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def query(name: str) -> TextClause:
    """Return the statement of that name, with `:parameters` to bind.

    Raises KeyError when there is none.
    """
    return _statements()[name]


@cache
def _statements() -> dict[str, TextClause]:
    _, *parts = _NAME.split(_FILE.read_text(encoding="utf-8"))
    return {name: text(sql) for name, sql in zip(parts[::2], parts[1::2], strict=True)}
