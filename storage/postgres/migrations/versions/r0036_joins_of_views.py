"""Positions of views in the stream that theirs is joined with."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Add the column."""
    joined = sa.Column("joined", JSONB, server_default="{}", nullable=False)
    op.add_column("view_batches", joined)
