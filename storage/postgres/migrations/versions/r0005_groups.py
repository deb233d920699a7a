"""Consumer groups: members, shards and bookmarks; and outages of the database."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"

NAME = sa.Text(collation="C")


def upgrade() -> None:
    """Create five tables; `attendance` has its row from the start."""
    _make_groups()
    _make_members()
    _make_shards()
    _make_bookmarks()
    _make_attendance()


def _make_groups() -> None:
    op.create_table(
        "groups",
        sa.Column("group_id", NAME, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column(
            "stream_id",
            NAME,
            sa.ForeignKey("streams.stream_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        _number("version"),
        _number("generation"),
        _number("lineage_mark"),
        _number("session_ms"),
        _number("static_ms"),
        _number("created_at_ms"),
        _number("changed_at_ms"),
    )
    op.create_index("groups_name", "groups", ["namespace", "name"], unique=True)
    op.create_index("groups_of_a_stream", "groups", ["stream_id"])


def _make_members() -> None:
    op.create_table(
        "group_members",
        _group(),
        sa.Column("member_id", NAME, primary_key=True),
        sa.Column("static", sa.Boolean, nullable=False),
        sa.Column("away", sa.Boolean, nullable=False),
        _number("joined_generation"),
        _number("joined_at_ms"),
        _number("heartbeat_ms"),
    )


def _make_shards() -> None:
    op.create_table(
        "group_shards",
        _group(),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("owner", NAME),
        _number("generation"),
        sa.Column("revoke_by_ms", sa.BigInteger),
        sa.Column("committed", sa.BigInteger),
        sa.Column("committed_at_ms", sa.BigInteger),
        sa.Column("finished", sa.Boolean, nullable=False),
    )


def _make_bookmarks() -> None:
    op.create_table(
        "group_bookmarks",
        _group(),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("positions", JSONB, nullable=False),
        _number("created_at_ms"),
    )


def _make_attendance() -> None:
    attendance = op.create_table(
        "attendance",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        _number("seen_ms"),
        _number("back_since_ms"),
        sa.CheckConstraint("id = 1", name="attendance_is_one_row"),
    )
    op.bulk_insert(attendance, [{"id": 1, "seen_ms": 0, "back_since_ms": 0}])


def _number(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.BigInteger, nullable=False)


def _group() -> "sa.Column[str]":
    return sa.Column(
        "group_id", NAME, sa.ForeignKey("groups.group_id", ondelete="CASCADE"), primary_key=True
    )
