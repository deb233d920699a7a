"""Statements of `queries.sql`, by name.

`columns(jobs j)` in a statement stands for all columns of a table that this version knows, by the alias. With `*`, the statements
that a running process has prepared would fail once a newer version adds a column.
"""

import re
from functools import cache
from pathlib import Path

from sqlalchemy import TextClause, text

from storage.postgres.tables import METADATA

_FILE = Path(__file__).with_name("queries.sql")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COLUMNS = re.compile(r"\bcolumns\((\w+)(?: (\w+))?\)")


def query(name: str) -> TextClause:
    """Return the statement of that name, with `:parameters` to bind.

    Raises KeyError when there is none.
    """
    return statements()[name]


@cache
def statements() -> dict[str, TextClause]:
    """Return all statements, by name."""
    _, *parts = _NAME.split(_FILE.read_text(encoding="utf-8"))
    return {
        name: text(_COLUMNS.sub(_listed, sql))
        for name, sql in zip(parts[::2], parts[1::2], strict=True)
    }


def _listed(columns: re.Match[str]) -> str:
    """Return the columns of a table, with its alias."""
    table, alias = columns.groups()
    before = f"{alias}." if alias else ""
    return ", ".join(f"{before}{column.name}" for column in METADATA.tables[table].columns)
