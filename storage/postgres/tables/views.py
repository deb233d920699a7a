"""Tables of views: definitions, revisions, rows, batches, and messages for sinks."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME, DefinitionColumns


class ViewRow(DefinitionColumns, table=True):
    """A `storage.domain.views.view.View`."""

    __tablename__ = "views"
    __table_args__ = (Index("views_name", "namespace", "name", unique=True),)

    view_id: str = Field(primary_key=True, sa_type=NAME)


class ViewRevisionRow(SQLModel, table=True):
    """A `storage.domain.views.progress.ViewRevision`, and the stream that it reads.

    It stays without its view, as `deleted`, until its rows are deleted in pieces.
    """

    __tablename__ = "view_revisions"
    __table_args__ = (
        Index(
            "view_revisions_present",
            "view_id",
            "state",
            unique=True,
            postgresql_where=text("state IN ('building', 'active')"),
        ),
        Index("view_revisions_of_a_stream", "namespace", "stream"),
    )

    revision_id: str = Field(primary_key=True, sa_type=NAME)
    view_id: str = Field(sa_type=NAME)
    namespace: str = Field(sa_type=NAME)
    stream: str = Field(sa_type=NAME)
    stream_id: str = Field(sa_type=NAME)
    number: int = Field(sa_type=BigInteger)
    query: dict[str, Any] = Field(sa_type=JSONB)
    plan: dict[str, Any] = Field(sa_type=JSONB)
    state: str = Field(sa_type=Text)
    progress: dict[str, Any] = Field(sa_type=JSONB)
    failure: str = Field(sa_type=Text)
    failures: int = Field(sa_type=Integer)
    is_stopped: bool
    is_rebuild: bool = Field(default=False)
    report: dict[str, Any] | None = Field(default=None, sa_type=JSONB, nullable=True)
    former_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    history_batch: int | None = Field(default=None, sa_type=BigInteger)


class _OfRevision(SQLModel):
    """Key of what a revision has, which is deleted with it."""

    revision_id: str = Field(
        primary_key=True,
        foreign_key="view_revisions.revision_id",
        ondelete="CASCADE",
        sa_type=NAME,
    )


class ViewOutputRow(_OfRevision, table=True):
    """A row of a revision, under its encoded key (`storage.domain.views.row_key`).

    `output` is null while `having` excludes the row; `state` has the partial aggregates; `sources` is null unless the query tracks them.
    """

    __tablename__ = "view_rows"
    __table_args__ = (
        Index(
            "view_rows_windows",
            "revision_id",
            "window_end_ms",
            "key",
            postgresql_where=text("window_end_ms IS NOT NULL"),
        ),
    )

    key: bytes = Field(primary_key=True)
    output: Any = Field(default=None, sa_type=JSON, nullable=True)
    state: str = Field(sa_type=Text)
    window_end_ms: int | None = Field(default=None, sa_type=BigInteger)
    sources: str | None = Field(default=None, sa_type=Text)
    batch: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)


class ViewRowVersion(_OfRevision, table=True):
    """Earlier version of a row: reads returned it from `since_batch` until `until_batch`.

    A revision with `history_batch` has those that end after that batch.
    """

    __tablename__ = "view_row_versions"
    __table_args__ = (Index("view_row_versions_ends", "revision_id", "until_batch"),)

    key: bytes = Field(primary_key=True)
    until_batch: int = Field(primary_key=True, sa_type=BigInteger)
    since_batch: int = Field(sa_type=BigInteger)
    output: Any = Field(sa_type=JSON)
    window_end_ms: int | None = Field(default=None, sa_type=BigInteger)


class ViewBatchRow(_OfRevision, table=True):
    """A `storage.domain.views.progress.BatchRecord`."""

    __tablename__ = "view_batches"
    __table_args__ = (Index("view_batches_times", "revision_id", "at_ms"),)

    batch: int = Field(primary_key=True, sa_type=BigInteger)
    before: dict[str, int] = Field(sa_type=JSONB)
    after: dict[str, int] = Field(sa_type=JSONB)
    joined: dict[str, dict[str, int]] = Field(default_factory=dict, sa_type=JSONB)
    watermark_ms: int | None = Field(default=None, sa_type=BigInteger)
    counts: dict[str, int] = Field(sa_type=JSONB)
    rows: int = Field(sa_type=BigInteger)
    milliseconds: int = Field(sa_type=BigInteger)
    at_ms: int = Field(sa_type=BigInteger)
    versions: int = Field(default=0, sa_type=BigInteger)


class ViewSinkRow(SQLModel, table=True):
    """A `storage.domain.views.sink.SinkState`."""

    __tablename__ = "view_sinks"

    view_id: str = Field(
        primary_key=True, foreign_key="views.view_id", ondelete="CASCADE", sa_type=NAME
    )
    sink: str = Field(primary_key=True, sa_type=NAME)
    pending: int = Field(sa_type=BigInteger)
    sent: int = Field(sa_type=BigInteger)
    failure: str = Field(sa_type=Text)


class ViewOutboxRow(SQLModel, table=True):
    """A pending message of a sink, in the order of `revision` and `sequence`.

    It is written with the batch that it is about, and deleted when the sink has it.
    """

    __tablename__ = "view_outbox"

    view_id: str = Field(
        primary_key=True, foreign_key="views.view_id", ondelete="CASCADE", sa_type=NAME
    )
    sink: str = Field(primary_key=True, sa_type=NAME)
    revision: int = Field(primary_key=True, sa_type=BigInteger)
    sequence: int = Field(primary_key=True, sa_type=BigInteger)
    batch: int = Field(sa_type=BigInteger)
    change: str = Field(sa_type=Text)
    key: str = Field(sa_type=Text)
    output: str | None = Field(default=None, sa_type=Text)
    before: str | None = Field(default=None, sa_type=Text)
