"""Tables of jobs, their parts, and the results of queries."""

from typing import Any

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME

OPEN_JOB = text("state IN ('queued', 'running', 'paused')")


class JobRow(SQLModel, table=True):
    """A `storage.domain.jobs.Job`, and the lease that a worker holds on it.

    `worker_lock`: the worker whose lock was held when the job was claimed.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index("jobs_to_do", "run_after_ms", postgresql_where=OPEN_JOB),
        Index("jobs_of_a_kind", "namespace", "kind", "created_at_ms"),
        Index("jobs_open", "kind", "namespace", "subject", unique=True, postgresql_where=OPEN_JOB),
    )

    job_id: str = Field(primary_key=True, sa_type=NAME)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    kind: str = Field(sa_type=Text)
    subject: str = Field(sa_type=NAME)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    state: str = Field(sa_type=Text)
    wish: str = Field(sa_type=Text)
    attempt: int = Field(sa_type=Integer)
    failures: int = Field(sa_type=Integer)
    attempts_max: int = Field(sa_type=Integer)
    run_after_ms: int = Field(sa_type=BigInteger)
    worker: str | None = Field(default=None, sa_type=Text)
    worker_lock: str | None = Field(default=None, sa_type=Text)
    lease_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    progress: dict[str, Any] = Field(sa_type=JSONB)
    failure: str = Field(sa_type=Text)
    created_at_ms: int = Field(sa_type=BigInteger)
    started_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    ended_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class JobPartRow(SQLModel, table=True):
    """Progress of a part of a job: `position` is the next item, `counts` the work done."""

    __tablename__ = "job_parts"

    job_id: str = Field(
        primary_key=True, foreign_key="jobs.job_id", ondelete="CASCADE", sa_type=NAME
    )
    part: str = Field(primary_key=True, sa_type=NAME)
    position: int = Field(sa_type=BigInteger)
    done: bool
    counts: dict[str, int] = Field(sa_type=JSONB)


class QueryResultRow(SQLModel, table=True):
    """A `storage.domain.queries.result.QueryResult` as JSON; it is deleted with its job."""

    __tablename__ = "query_results"

    job_id: str = Field(
        primary_key=True, foreign_key="jobs.job_id", ondelete="CASCADE", sa_type=NAME
    )
    result: bytes = Field(sa_type=LargeBinary)
