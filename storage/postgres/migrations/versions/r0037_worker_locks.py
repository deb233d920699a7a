"""Locks that workers hold while they are connected."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("worker_lock", sa.Text))
