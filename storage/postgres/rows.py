"""Rows of tables, and the structs with fields of the same names."""

from typing import Any, TypeVar

import msgspec
from sqlalchemy import Select, select

S = TypeVar("S", bound=msgspec.Struct)


def rows_of(table: type[Any]) -> Select[Any]:
    """Select rows of a table with all its columns."""
    return select(table.__table__)


def struct_of(struct: type[S], row: Any, **values: Any) -> S:
    """Build a struct from `values`, and from the row's columns for its other fields."""
    columns = {name: getattr(row, name) for name in struct.__struct_fields__ if name not in values}
    return struct(**columns, **values)
