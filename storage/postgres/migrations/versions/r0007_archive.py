"""The archive's manifest, and the jobs of the workers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"

NAME = sa.Text(collation="C")
OPEN = sa.text("state IN ('queued', 'running', 'paused')")
IN_USE = sa.text("superseded_at_ms IS NULL")


def upgrade() -> None:
    """Create the tables; a shard's files are deleted with its row, a job's parts with the job."""
    op.create_table(
        "archive_shards",
        sa.Column("stream_id", NAME, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("log_id", NAME, nullable=False, unique=True),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("archived", sa.BigInteger, nullable=False),
        sa.Column("archived_at_ms", sa.BigInteger, nullable=False),
    )
    _files()
    _jobs()


def _files() -> None:
    op.create_table(
        "archive_files",
        sa.Column("file_id", NAME, primary_key=True),
        sa.Column("stream_id", NAME, nullable=False),
        sa.Column("shard", sa.Integer, nullable=False),
        sa.Column("first_offset", sa.BigInteger, nullable=False),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("log_bytes", sa.BigInteger, nullable=False),
        sa.Column("file_bytes", sa.BigInteger, nullable=False),
        sa.Column("first_arrival_ms", sa.BigInteger, nullable=False),
        sa.Column("last_arrival_ms", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("superseded_at_ms", sa.BigInteger),
        sa.ForeignKeyConstraint(
            ["stream_id", "shard"],
            ["archive_shards.stream_id", "archive_shards.shard"],
            ondelete="CASCADE",
            name="archive_files_of_a_shard",
        ),
        sa.CheckConstraint("first_offset < next_offset", name="archive_files_hold_something"),
    )
    shard = ["stream_id", "shard"]
    for name, column in (("first", "first_offset"), ("next", "next_offset")):
        op.create_index(
            f"archive_files_{name}",
            "archive_files",
            [*shard, column],
            unique=True,
            postgresql_where=IN_USE,
        )
    op.create_index("archive_files_arrival", "archive_files", [*shard, "last_arrival_ms"])
    op.create_index("archive_files_path", "archive_files", ["path"], unique=True)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", NAME, primary_key=True),
        sa.Column("namespace", NAME, sa.ForeignKey("namespaces.name"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", NAME, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("wish", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("attempts_max", sa.Integer, nullable=False),
        sa.Column("run_after_ms", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until_ms", sa.BigInteger),
        sa.Column("progress", JSONB, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger),
        sa.Column("ended_at_ms", sa.BigInteger),
    )
    op.create_index("jobs_to_do", "jobs", ["run_after_ms"], postgresql_where=OPEN)
    op.create_index("jobs_of_a_kind", "jobs", ["namespace", "kind", "created_at_ms"])
    op.create_index(
        "jobs_open", "jobs", ["kind", "namespace", "subject"], unique=True, postgresql_where=OPEN
    )
    op.create_table(
        "job_parts",
        sa.Column(
            "job_id", NAME, sa.ForeignKey("jobs.job_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("part", NAME, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("counts", JSONB, nullable=False),
    )
