"""Reasons of holes, and the epochs between which no acknowledged write was lost."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the columns; what earlier versions recorded, and record meanwhile, may be a loss."""
    op.add_column("log_holes", sa.Column("reason", sa.Text, nullable=False, server_default="hole"))
    op.add_column("deployment", sa.Column("lossless_since", sa.BigInteger))
    op.add_column("deployment", sa.Column("lossless_until", sa.BigInteger))
