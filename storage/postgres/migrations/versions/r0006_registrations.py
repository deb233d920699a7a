"""Registered consumers of streams, and account settings: stored for the Kinesis endpoint."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create both tables; a consumer is deleted with its stream, settings with the namespace."""
    stream = sa.ForeignKey("streams.stream_id", ondelete="CASCADE")
    op.create_table(
        "registered_consumers",
        sa.Column("stream_id", NAME, stream, primary_key=True),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("registered_at_ms", sa.BigInteger, nullable=False),
        sa.Column("tags", JSONB, nullable=False),
        sa.Column("policy", sa.Text),
    )
    op.create_table(
        "account_settings",
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), primary_key=True),
        sa.Column("settings", JSONB, nullable=False),
    )
