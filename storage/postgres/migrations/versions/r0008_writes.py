"""Batches of writers that stage their records first."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0008"
down_revision = "0007"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the table; a write is deleted with its stream."""
    stream = sa.ForeignKey("streams.stream_id", ondelete="CASCADE")
    op.create_table(
        "writes",
        sa.Column("stream_id", NAME, stream, primary_key=True),
        sa.Column("writer_id", NAME, primary_key=True),
        sa.Column("batch_id", sa.BigInteger, primary_key=True),
        sa.Column("staged", ARRAY(sa.Text), nullable=False),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("decided_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("writes_open", "writes", ["stream_id"], postgresql_where=sa.text("not done"))
    op.create_index("writes_decided", "writes", ["decided_at_ms"])
