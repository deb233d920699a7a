"""Mutes of alerts, by kind and object."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Add the table; processes of an earlier version show muted alerts."""
    op.create_table(
        "alert_mutes",
        sa.Column(
            "namespace",
            _NAME,
            sa.ForeignKey("namespaces.name", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("kind", _NAME, primary_key=True),
        sa.Column("object", _NAME, primary_key=True),
        sa.Column("muted_by", sa.Text, nullable=False),
        sa.Column("muted_at_ms", sa.BigInteger, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
    )
