"""Mirrors of groups: tables of offsets, and the groups that a mirror moves."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0022"
down_revision = "0021"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables, and the time of the last list of streams."""
    op.add_column("mirrors", sa.Column("listed_at_ms", sa.BigInteger))
    op.create_table(
        "mirror_offsets",
        sa.Column("mirror_id", NAME, primary_key=True),
        sa.Column("stream", NAME, primary_key=True),
        sa.Column("origin_id", NAME, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("target_shard", sa.Integer, primary_key=True),
        sa.Column("origin_offset", sa.BigInteger, primary_key=True),
        sa.Column("target_offset", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["mirror_id", "stream", "origin_id", "shard"],
            [
                "mirror_shards.mirror_id",
                "mirror_shards.stream",
                "mirror_shards.origin_id",
                "mirror_shards.shard",
            ],
            ondelete="CASCADE",
            name="mirror_offsets_of_a_shard",
        ),
    )
    op.create_table(
        "mirror_groups",
        sa.Column(
            "mirror_id",
            NAME,
            sa.ForeignKey("mirrors.mirror_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("group_name", NAME, primary_key=True),
        sa.Column("stream", NAME, nullable=False),
        sa.Column("origin_created_at", sa.Text, nullable=False),
        sa.Column("group_id", NAME),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("positions", JSONB),
        sa.Column("noted_at_ms", sa.BigInteger, nullable=False),
        sa.Column("moved_at_ms", sa.BigInteger),
        sa.Column("failure", sa.Text, nullable=False),
    )
