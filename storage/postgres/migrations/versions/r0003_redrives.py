"""Rate-limited redrives: moves of a queue's own dead letters."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a redrive's filter and progress; empty for a move to other queues."""
    op.add_column("moves", sa.Column("which_dead", JSONB))
    op.add_column(
        "moves", sa.Column("looked_at", sa.BigInteger, nullable=False, server_default="-1")
    )
    op.alter_column("moves", "looked_at", server_default=None)
