"""Sinks of views, and messages for them."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "view_sinks",
        _view_id(),
        sa.Column("sink", NAME, primary_key=True),
        sa.Column("pending", sa.BigInteger, nullable=False),
        sa.Column("sent", sa.BigInteger, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
    )
    op.create_table(
        "view_outbox",
        _view_id(),
        sa.Column("sink", NAME, primary_key=True),
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("change", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("output", sa.Text),
        sa.Column("before", sa.Text),
    )


def _view_id() -> sa.Column[str]:
    return sa.Column(
        "view_id", NAME, sa.ForeignKey("views.view_id", ondelete="CASCADE"), primary_key=True
    )
