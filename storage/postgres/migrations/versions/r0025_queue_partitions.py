"""Partitions of queues."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0025"
down_revision = "0024"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the table, and the history of their number."""
    op.add_column("queues", sa.Column("partition_sets", JSONB))
    op.create_table(
        "queue_partitions",
        sa.Column("queue_id", NAME, sa.ForeignKey("queues.log_id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("log_id", NAME, nullable=False, unique=True),
        sa.Column("opened_at_ms", sa.BigInteger, nullable=False),
    )
