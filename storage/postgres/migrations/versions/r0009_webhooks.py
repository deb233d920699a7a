"""Webhooks, their secrets, the log of their deliveries, and the leases of deliverers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables; secrets and log are deleted with their webhook."""
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", NAME, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("sealed_headers", sa.LargeBinary),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("disabled_at_ms", sa.BigInteger),
        sa.Column("disabled_because", sa.Text),
        sa.Column("health", JSONB, nullable=False),
        sa.Column("holder", NAME),
        sa.Column("lease_epoch", sa.BigInteger, nullable=False),
        sa.Column("lease_until_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("webhooks_name", "webhooks", ["namespace", "name"], unique=True)
    op.create_index(
        "webhooks_active", "webhooks", ["webhook_id"], postgresql_where=sa.text("active")
    )
    op.create_table(
        "webhook_secrets",
        sa.Column("webhook_id", NAME, _webhook(), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("webhook_id", NAME, _webhook(), primary_key=True),
        sa.Column("event_id", NAME, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("kept", JSONB, nullable=False),
        sa.Column("first_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.Column("next_at_ms", sa.BigInteger),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("shard", sa.Integer),
        sa.Column("place", sa.BigInteger),
        sa.Column("event_at_ms", sa.BigInteger, nullable=False),
        sa.Column("event_key", sa.Text, nullable=False),
        sa.Column("event_group", sa.Text, nullable=False),
        sa.Column("payload", sa.LargeBinary),
    )
    op.create_index(
        "webhook_deliveries_newest", "webhook_deliveries", ["webhook_id", "first_at_ms", "event_id"]
    )
    op.create_index("webhook_deliveries_expired", "webhook_deliveries", ["expires_at_ms"])
    op.create_table(
        "deliverers",
        sa.Column("deliverer", NAME, primary_key=True),
        sa.Column("seen_ms", sa.BigInteger, nullable=False),
    )


def _webhook() -> sa.ForeignKey:
    return sa.ForeignKey("webhooks.webhook_id", ondelete="CASCADE")
