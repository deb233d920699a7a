"""Topics: routes, and the positions of routers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create the tables, and the version of each topic's routes."""
    op.add_column(
        "streams", sa.Column("routes_version", sa.BigInteger, nullable=False, server_default="0")
    )
    op.create_table(
        "routes",
        _stream_id(),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("name", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("table_version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("until_offsets", JSONB),
        sa.Column("removed", sa.Boolean, nullable=False),
        sa.Column("delivered", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("dropped", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("failure", sa.Text, nullable=False, server_default=""),
    )
    op.create_index(
        "routes_current_name",
        "routes",
        ["stream_id", "name"],
        unique=True,
        postgresql_where=sa.text("until_offsets IS NULL"),
    )
    op.create_index("routes_by_version", "routes", ["stream_id", "table_version"])
    op.create_table(
        "topic_shards",
        _stream_id(),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "route_lags",
        _stream_id(),
        sa.Column("buffer", NAME, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
    )


def _stream_id() -> sa.Column[str]:
    return sa.Column(
        "stream_id",
        NAME,
        sa.ForeignKey("streams.stream_id", ondelete="CASCADE"),
        primary_key=True,
    )
