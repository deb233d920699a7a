"""Append-only audit log, and the intents of calls that are not in it yet."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables; the log outlives the resources it describes, so it has no references."""
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("principal", NAME, nullable=False),
        sa.Column("credential", NAME, nullable=False),
        sa.Column("authenticated", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("door", sa.Text, nullable=False),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("action", NAME, nullable=False),
        sa.Column("resource", NAME, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
        sa.Column("prev_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    for column in ("namespace", "principal", "resource"):
        op.create_index(f"audit_{column}", "audit", [column, "seq"])
    op.create_table(
        "audit_pending",
        sa.Column("intent_id", NAME, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
    )
    op.create_index("audit_pending_at", "audit_pending", ["at_ms"])
    op.execute(
        "create function refuse_to_rewrite_the_audit_log() returns trigger language plpgsql as "
        "$$ begin raise exception 'the audit log only grows'; end $$"
    )
    op.execute(
        "create trigger audit_only_grows before update or delete or truncate on audit "
        "for each statement execute function refuse_to_rewrite_the_audit_log()"
    )
