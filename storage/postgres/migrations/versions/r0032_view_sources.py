"""Sources of the rows of views."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Add the column."""
    op.add_column("view_rows", sa.Column("sources", sa.Text, nullable=True))
