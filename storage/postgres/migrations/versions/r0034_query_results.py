"""Results of queries."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Create the table."""
    job = sa.ForeignKey("jobs.job_id", ondelete="CASCADE")
    op.create_table(
        "query_results",
        sa.Column("job_id", sa.Text(collation="C"), job, primary_key=True),
        sa.Column("result", sa.LargeBinary, nullable=False),
    )
