"""Counts of routers: dead letters of routes, and messages that expired unrouted."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Add the counts."""
    for table, column in (("routes", "dead_lettered"), ("streams", "expired_unrouted")):
        op.add_column(table, sa.Column(column, sa.BigInteger, nullable=False, server_default="0"))
