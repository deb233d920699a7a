"""Sources: URLs at which other services post their events."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0016"
down_revision = "0015"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "sources",
        sa.Column("source_id", NAME, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("sources_name", "sources", ["namespace", "name"], unique=True)
