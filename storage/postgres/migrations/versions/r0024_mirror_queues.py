"""Mirrors of queues: how far each is."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "mirror_queues",
        sa.Column(
            "mirror_id",
            NAME,
            sa.ForeignKey("mirrors.mirror_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("queue", NAME, primary_key=True),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
        sa.Column("tip", sa.BigInteger, nullable=False),
        sa.Column("behind_ms", sa.BigInteger, nullable=False),
        sa.Column("checked_at_ms", sa.BigInteger, nullable=False),
        sa.Column("copied", sa.BigInteger, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
    )
