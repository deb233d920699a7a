"""Where a stream's shards come from and go to: what a reshard and the expiry of closed shards need."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """A target for the stream, an end for the shard."""
    op.add_column("streams", sa.Column("shards_target", sa.Integer))
    op.add_column("shards", sa.Column("expired_at_ms", sa.BigInteger))
