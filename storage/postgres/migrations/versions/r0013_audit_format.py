"""Members of an audit entry, which its hash covers, by a format per entry."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the format; entries of earlier versions, also those yet to come, have format 1."""
    op.add_column("audit", sa.Column("format", sa.SmallInteger, nullable=False, server_default="1"))
