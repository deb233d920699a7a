"""Columns and types that several tables have."""

from typing import Any

from sqlalchemy import BigInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

NAME = Text(collation="C")
"""Names sort and compare by their bytes, whatever the database's locale."""

LIVE = text("deleted_at_ms IS NULL")


class DefinitionColumns(SQLModel):
    """Columns of every noun with definitions; `spec` is its specification."""

    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    name: str = Field(sa_type=NAME)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
