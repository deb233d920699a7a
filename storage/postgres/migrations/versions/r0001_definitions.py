"""Definitions of queues and streams, the logs behind them, and the deployment's own row."""

import secrets

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0001"
down_revision = None

NAME = sa.Text(collation="C")
LIVE = sa.text("deleted_at_ms IS NULL")


def upgrade() -> None:
    """Create the schema in an empty database."""
    _make_namespaces()
    _make_deployment()
    _make_logs()
    _make_definitions("queues", "log_id")
    _make_definitions("streams", "stream_id")
    _make_shards()


def _make_namespaces() -> None:
    namespaces = op.create_table(
        "namespaces",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("account_id", sa.Text, nullable=False, unique=True),
    )
    op.bulk_insert(namespaces, [{"name": "default", "account_id": _account_id()}])


def _account_id() -> str:
    return str(10**11 + secrets.randbelow(9 * 10**11))


def _make_deployment() -> None:
    deployment = op.create_table(
        "deployment",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("store_epoch", sa.BigInteger, nullable=False),
        sa.Column("replid", sa.Text, nullable=False),
        sa.Column("beacon", sa.BigInteger, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.CheckConstraint("id = 1", name="deployment_is_one_row"),
    )
    row = {"id": 1, "store_epoch": 0, "replid": "", "beacon": 0, "secret": secrets.token_bytes(32)}
    op.bulk_insert(deployment, [row])


def _make_logs() -> None:
    op.create_table(
        "logs",
        sa.Column("log_id", NAME, primary_key=True),
        _namespace(),
        sa.Column("ceiling", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("store_epoch", sa.BigInteger),
        sa.Column("log_epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("epoch_start", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_table(
        "log_holes",
        sa.Column(
            "log_id", NAME, sa.ForeignKey("logs.log_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("next", sa.BigInteger, nullable=False),
        sa.CheckConstraint("first < next", name="log_holes_hold_something"),
    )


def _make_definitions(table: str, key: str) -> None:
    op.create_table(
        table,
        sa.Column(key, NAME, primary_key=True),
        _namespace(),
        sa.Column("name", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("deleted_at_ms", sa.BigInteger),
    )
    op.create_index(
        f"{table}_live_name", table, ["namespace", "name"], unique=True, postgresql_where=LIVE
    )


def _make_shards() -> None:
    op.create_table(
        "shards",
        sa.Column("stream_id", NAME, sa.ForeignKey("streams.stream_id"), primary_key=True),
        sa.Column("index", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("log_id", NAME, nullable=False, unique=True),
        sa.Column("first_hash_key", sa.Numeric(39, 0), nullable=False),
        sa.Column("last_hash_key", sa.Numeric(39, 0), nullable=False),
        sa.Column("opened_at_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_at_ms", sa.BigInteger),
        sa.Column("parents", ARRAY(sa.Integer), nullable=False, server_default="{}"),
    )


def _namespace() -> "sa.Column[str]":
    return sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False)
