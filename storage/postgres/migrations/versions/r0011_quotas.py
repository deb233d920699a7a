"""Quotas of a namespace, and its usage."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"

_NOW_MS = sa.text("cast(extract(epoch from clock_timestamp()) * 1000 as bigint)")


def upgrade() -> None:
    """Add the columns; existing namespaces have no quotas."""
    _add("quotas", JSONB, sa.text("'{}'"))
    _add("version", sa.BigInteger, sa.text("1"))
    _add("created_at_ms", sa.BigInteger, _NOW_MS)
    _add("changed_at_ms", sa.BigInteger, _NOW_MS)
    _add("over", sa.Boolean, sa.text("false"))
    op.add_column("namespaces", sa.Column("stored_bytes", sa.BigInteger))


def _add(name: str, kind: type, value: sa.TextClause) -> None:
    op.add_column("namespaces", sa.Column(name, kind, nullable=False, server_default=value))
