"""Lineage of a stream's shards, for reshards and the expiry of closed shards."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a target to the stream, and an expiry time to the shard."""
    op.add_column("streams", sa.Column("shards_target", sa.Integer))
    op.add_column("shards", sa.Column("expired_at_ms", sa.BigInteger))
