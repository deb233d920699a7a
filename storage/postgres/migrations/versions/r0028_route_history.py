"""Routes that start in the past, and shadow routes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add the history of routes, and the count of shadow routes."""
    shadowed = sa.Column("shadowed", sa.BigInteger, nullable=False, server_default="0")
    done = sa.Column("history_done", sa.Boolean, nullable=False, server_default=sa.false())
    for column in (shadowed, sa.Column("history", postgresql.JSONB), done):
        op.add_column("routes", column)
