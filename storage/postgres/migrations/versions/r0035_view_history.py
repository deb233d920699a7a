"""Earlier versions of the rows of views."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the table, and add the columns."""
    op.add_column("view_revisions", sa.Column("history_batch", sa.BigInteger, nullable=True))
    versions = sa.Column("versions", sa.BigInteger, server_default="0", nullable=False)
    op.add_column("view_batches", versions)
    op.create_index("view_batches_times", "view_batches", ["revision_id", "at_ms"])
    op.create_table(
        "view_row_versions",
        sa.Column(
            "revision_id",
            NAME,
            sa.ForeignKey("view_revisions.revision_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("until_batch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("since_batch", sa.BigInteger, nullable=False),
        sa.Column("output", sa.JSON, nullable=False),
        sa.Column("window_end_ms", sa.BigInteger),
    )
    op.create_index("view_row_versions_ends", "view_row_versions", ["revision_id", "until_batch"])
