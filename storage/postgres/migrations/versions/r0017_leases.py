"""Leases of leaders, with their fencing numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

_NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Add the table; a sweeper of an earlier version takes an advisory lock for each task."""
    op.create_table(
        "leases",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("holder", _NAME, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    )
