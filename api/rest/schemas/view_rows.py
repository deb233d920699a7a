"""Schemas of what a view has: rows with their sources, and batches."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.rest.schema_base import Seconds, Time, in_seconds
from api.rest.view_fields import (
    Joined,
    Positions,
    Watermark,
    joined_out,
    shards_out,
    time_out,
)
from storage.domain.views.progress import BatchRecord, ViewRevision


class ViewAsOf(BaseModel):
    """Revision and progress that rows belong to."""

    revision: int
    batch: int
    positions: Positions
    joined: Joined
    watermark: Watermark
    changed_at: Time | None

    @classmethod
    def of(cls, revision: ViewRevision) -> Self:
        """Return the revision and its progress on the wire."""
        progress = revision.progress
        return cls(
            revision=revision.number,
            batch=progress.batch,
            positions=shards_out(progress.positions),
            joined=joined_out(progress),
            watermark=time_out(progress.watermark_ms),
            changed_at=time_out(progress.changed_at_ms or None),
        )


class ViewRowsOut(BaseModel):
    """Rows in the order of their keys; each is an object with the columns of the view."""

    rows: list[dict[str, Any]]
    as_of: ViewAsOf
    next_cursor: Annotated[str | None, Field(description="Null on the last page.")]


class SourceRangeOut(BaseModel):
    """Records of a shard that contributed to a row, from `first` to `last`.

    A record that is joined with several rows of a table counts once for each.
    """

    shard: int
    first: int
    last: int
    records: int


class ViewSourcesOut(BaseModel):
    """A row and its sources: ranges of offsets, and records by shard and offset."""

    row: Annotated[
        dict[str, Any] | None, Field(description="The row; null if there is none with this key.")
    ]
    ranges: list[SourceRangeOut]
    records: Annotated[
        list[dict[str, Any]], Field(description="Records, as a read of the stream returns them.")
    ]
    gaps: Annotated[
        list[dict[str, Any]],
        Field(description="Offsets in the ranges that cannot be read any more, with the reason."),
    ]
    as_of: ViewAsOf
    next_cursor: Annotated[
        str | None,
        Field(
            description="Null on the last page. A page has fewer records than its limit, or none, when many others lie between."
        ),
    ]


class ViewBatchOut(BaseModel):
    """A batch: the records before its positions that the batch before did not include.

    `rows` is the number of rows that it changed.
    """

    batch: int
    positions: Positions
    joined: Joined
    watermark: Watermark
    records: int
    late: int
    bad: int
    gaps: int
    rows: int
    seconds: Seconds
    at: Time

    @classmethod
    def of(cls, batch: BatchRecord) -> Self:
        """Return the batch on the wire."""
        return cls(
            batch=batch.batch,
            positions=shards_out(batch.after),
            joined={name: shards_out(at) for name, at in batch.joined.items()},
            watermark=time_out(batch.watermark_ms),
            records=batch.counts.records,
            late=batch.counts.late,
            bad=batch.counts.bad,
            gaps=batch.counts.gaps,
            rows=batch.rows,
            seconds=in_seconds(batch.milliseconds),
            at=rfc3339(batch.at_ms),
        )


class ViewBatches(BaseModel):
    """Last batches of a view, the newest first."""

    items: list[ViewBatchOut]
