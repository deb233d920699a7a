"""Offset at which a group begins to read a shard."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the start; it is stored when the shard is first assigned for reading."""
    op.add_column("group_shards", sa.Column("start", sa.BigInteger, nullable=True))
