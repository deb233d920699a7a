"""Views: definitions, revisions, rows and batches."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0030"
down_revision = "0029"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "views",
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("view_id", NAME, primary_key=True),
    )
    op.create_index("views_name", "views", ["namespace", "name"], unique=True)
    _create_revisions()
    op.create_table(
        "view_rows",
        _revision_id(),
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("output", sa.JSON),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("window_end_ms", sa.BigInteger),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "view_rows_windows",
        "view_rows",
        ["revision_id", "window_end_ms", "key"],
        postgresql_where=sa.text("window_end_ms IS NOT NULL"),
    )
    op.create_table(
        "view_batches",
        _revision_id(),
        sa.Column("batch", sa.BigInteger, primary_key=True),
        sa.Column("before", JSONB, nullable=False),
        sa.Column("after", JSONB, nullable=False),
        sa.Column("watermark_ms", sa.BigInteger),
        sa.Column("counts", JSONB, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("milliseconds", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )


def _create_revisions() -> None:
    op.create_table(
        "view_revisions",
        sa.Column("revision_id", NAME, primary_key=True),
        sa.Column("view_id", NAME, nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("stream", NAME, nullable=False),
        sa.Column("stream_id", NAME, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("query", JSONB, nullable=False),
        sa.Column("plan", JSONB, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("progress", JSONB, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("is_stopped", sa.Boolean, nullable=False),
    )
    op.create_index(
        "view_revisions_present",
        "view_revisions",
        ["view_id", "state"],
        unique=True,
        postgresql_where=sa.text("state IN ('building', 'active')"),
    )
    op.create_index("view_revisions_of_a_stream", "view_revisions", ["namespace", "stream"])


def _revision_id() -> sa.Column[str]:
    return sa.Column(
        "revision_id",
        NAME,
        sa.ForeignKey("view_revisions.revision_id", ondelete="CASCADE"),
        primary_key=True,
    )
