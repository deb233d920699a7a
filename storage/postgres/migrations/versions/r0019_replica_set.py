"""Replica set: the members, and the term, phase and primary that the deployment agrees on."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the members and the state; without a primary there is no replica set."""
    op.create_table(
        "store_members",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("address", sa.Text(collation="C"), nullable=False, unique=True),
    )
    op.add_column(
        "deployment", sa.Column("store_term", sa.BigInteger, nullable=False, server_default="0")
    )
    op.add_column(
        "deployment", sa.Column("store_phase", sa.Text, nullable=False, server_default="normal")
    )
    op.add_column(
        "deployment", sa.Column("primary_id", sa.Integer, sa.ForeignKey("store_members.id"))
    )
    op.add_column(
        "deployment",
        sa.Column("min_insync_replicas", sa.Integer, nullable=False, server_default="1"),
    )
