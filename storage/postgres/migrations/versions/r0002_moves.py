"""Moves of messages from one queue to others."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NAME = sa.Text(collation="C")
OPEN = sa.text("state IN ('running', 'cancelling')")


def upgrade() -> None:
    """Create one table, with at most one open move from each queue."""
    op.create_table(
        "moves",
        sa.Column("move_id", sa.Text, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("destination", NAME),
        sa.Column("per_second", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("moved", sa.BigInteger, nullable=False),
        sa.Column("to_move", sa.BigInteger, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("moves_of_a_queue", "moves", ["namespace", "source", "started_at_ms"])
    op.create_index(
        "moves_open", "moves", ["namespace", "source"], unique=True, postgresql_where=OPEN
    )
