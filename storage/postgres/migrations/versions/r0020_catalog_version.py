"""Version of the catalog, by which a process that is cut off notices changes."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the table and its row, which processes of an earlier version do not raise."""
    table = op.create_table(
        "catalog_version",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(table, [{"version": 0}])
