"""Identity of the report that stored a router's positions."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Add the column."""
    report = sa.Column("report", sa.BigInteger, server_default="0", nullable=False)
    op.add_column("topic_shards", report)
