"""Mirrors: streams of other deployments that are copied, and how far they are."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0021"
down_revision = "0020"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "mirrors",
        sa.Column("mirror_id", NAME, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("promoted_at_ms", sa.BigInteger),
        sa.Column("failure", sa.Text, nullable=False, server_default=""),
    )
    op.create_index("mirrors_name", "mirrors", ["namespace", "name"], unique=True)
    op.create_table(
        "mirror_shards",
        sa.Column(
            "mirror_id",
            NAME,
            sa.ForeignKey("mirrors.mirror_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("stream", NAME, primary_key=True),
        sa.Column("origin_id", NAME, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("target_id", NAME, nullable=False),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
        sa.Column("tip", sa.BigInteger, nullable=False),
        sa.Column("behind_ms", sa.BigInteger, nullable=False),
        sa.Column("checked_at_ms", sa.BigInteger, nullable=False),
        sa.Column("copied", sa.BigInteger, nullable=False),
        sa.Column("skipped", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
    )
