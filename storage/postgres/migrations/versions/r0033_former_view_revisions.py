"""Former revisions of views, and the reports of rebuilt ones."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Add the columns."""
    is_rebuild = sa.Column("is_rebuild", sa.Boolean, server_default="false", nullable=False)
    op.add_column("view_revisions", is_rebuild)
    op.add_column("view_revisions", sa.Column("report", JSONB, nullable=True))
    op.add_column("view_revisions", sa.Column("former_until_ms", sa.BigInteger, nullable=True))
