"""Credentials, tickets and sessions, which authenticate callers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables; tickets and sessions are deleted with their credential."""
    op.create_table(
        "credentials",
        sa.Column("id", NAME, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("everywhere", sa.Boolean, nullable=False),
        sa.Column("roles", JSONB, nullable=False),
        sa.Column("grants", JSONB, nullable=False),
        sa.Column("rates", JSONB),
        sa.Column("family", NAME, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary),
        sa.Column("sealed", sa.LargeBinary),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger),
        sa.Column("last_used_at_ms", sa.BigInteger),
        sa.Column("revoked_at_ms", sa.BigInteger),
    )
    op.create_index("credentials_name", "credentials", ["namespace", "name", "id"])
    op.create_index("credentials_family", "credentials", ["family"])
    op.create_table(
        "tickets",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("credential_id", NAME, _credential()),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("grants", JSONB, nullable=False),
        sa.Column("rates", JSONB),
        sa.Column("ends_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("tickets_expired", "tickets", ["expires_at_ms"])
    op.create_index("tickets_credential", "tickets", ["credential_id"])
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("credential_id", NAME, _credential(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("used_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("sessions_used", "sessions", ["used_at_ms"])
    op.create_index("sessions_credential", "sessions", ["credential_id"])


def _credential() -> sa.ForeignKey:
    return sa.ForeignKey("credentials.id", ondelete="CASCADE")
