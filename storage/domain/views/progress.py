"""Progress of a view's revision, and the batches that advance it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Self

import msgspec

from storage.domain.views.changes import RowDifference, SinkMessage, SinkReport, first_samples
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.plan import ViewPlan
from storage.domain.views.sources import Sources
from storage.domain.views.view import ViewInput, ViewQuery

Positions = Mapping[int, int]
"""Next offset to read of each shard, as `storage.domain.streams.lineage` defines it."""


class RevisionState(StrEnum):
    """State of a revision: `building` until it has caught up, then `active`.

    former: replaced, and kept up to date for a while. deleted: replaced, or its view was deleted; its rows are deleted in pieces.
    back_test: written by a back-test, and read by nobody else. snapshot: the rows of the active one when a back-test began.
    """

    BUILDING = "building"
    ACTIVE = "active"
    FORMER = "former"
    BACK_TEST = "back_test"
    SNAPSHOT = "snapshot"
    DELETED = "deleted"


class ViewCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of records of a batch, or of all batches.

    `late` and `bad` ones are among `records`; `gaps`: those that retention had deleted before they were read.
    """

    records: int = 0
    late: int = 0
    bad: int = 0
    gaps: int = 0

    def __add__(self, other: "ViewCounts") -> "ViewCounts":
        return ViewCounts(
            records=self.records + other.records,
            late=self.late + other.late,
            bad=self.bad + other.bad,
            gaps=self.gaps + other.gaps,
        )

    def __sub__(self, other: "ViewCounts") -> "ViewCounts":
        return ViewCounts(
            records=self.records - other.records,
            late=self.late - other.late,
            bad=self.bad - other.bad,
            gaps=self.gaps - other.gaps,
        )


class StreamProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a revision in one of its streams.

    `marks`: greatest event time of each shard. `buffered_from`: first offset of each shard whose record waits for those of the other
    stream of a join. `stream_id`: the stream that the positions belong to; empty in a back-test that has read nothing.
    """

    positions: dict[int, int] = {}
    marks: dict[int, int] = {}
    buffered_from: dict[int, int] = {}
    stream_id: str = ""


class ViewProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a revision: the records that its rows include.

    `positions`, `marks` and `buffered_from` are those of the first stream, `joined` has the progress in the one that it is joined with, by its name in the query. `tables`: positions of the tables that the last batch was joined with. `watermark_ms`: None before the first record. `final`: the windows whose rows are final for
    sinks. `batch` counts batches from 1. `versions`: number of earlier versions of rows that were stored.
    """

    positions: dict[int, int] = {}
    joined: dict[str, StreamProgress] = {}
    tables: dict[str, dict[int, int]] = {}
    marks: dict[int, int] = {}
    buffered_from: dict[int, int] = {}
    watermark_ms: int | None = None
    final: FinalPosition | None = None
    batch: int = 0
    rows: int = 0
    messages: int = 0
    versions: int = 0
    counts: ViewCounts = ViewCounts()
    changed_at_ms: int = 0

    def with_streams(self, query: ViewQuery, streams: Sequence[StreamProgress]) -> Self:
        """Return the progress with that in each stream of a query, the first one first."""
        first, *others = streams
        return msgspec.structs.replace(
            self,
            positions=first.positions,
            marks=first.marks,
            buffered_from=first.buffered_from,
            joined=dict(zip(query.joined, others, strict=True)),
        )


class RevisionReport(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a revision's rows with those of the one that it replaces, or would.

    `former`: its number. `records` and `former_records`: records that the rows of each include. `added`, `removed` and `changed`: number
    of rows; `samples`: the first of them. `is_exact`: both had read the same records. `sinks`: messages that a back-test did not send.
    """

    former: int
    is_exact: bool
    records: int
    former_records: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    samples: tuple[RowDifference, ...] = ()
    sinks: tuple[SinkReport, ...] = ()

    def with_messages(self, messages: Sequence[SinkMessage], most: int) -> "RevisionReport":
        """Return the report with messages for sinks, and at most `most` samples of each."""
        sinks = tuple(sink.with_messages(messages, most) for sink in self.sinks)
        return msgspec.structs.replace(self, sinks=sinks)

    def with_differences(self, differences: Sequence[RowDifference], most: int) -> "RevisionReport":
        """Return the report with more differences, and at most `most` samples."""
        added = sum(one.before is None for one in differences)
        removed = sum(one.after is None for one in differences)
        return msgspec.structs.replace(
            self,
            added=self.added + added,
            removed=self.removed + removed,
            changed=self.changed + len(differences) - added - removed,
            samples=first_samples([*self.samples, *differences[:most]], most),
        )


class FollowedStream(NamedTuple):
    """A stream that a revision follows under a name, and the progress in it."""

    relation: str
    input: ViewInput
    progress: StreamProgress


class ViewRevision(msgspec.Struct, frozen=True, kw_only=True):
    """A revision of a view.

    `stream_id`: the stream that the positions belong to. `failures`: failed batches since the last one that succeeded; `failure`: why the
    last one failed. `is_rebuild`: its query is that of the revision that it replaces, and their rows are compared. `former_until_ms`: when
    a former revision is deleted. `history_batch`: the first batch whose rows can be read; None if earlier ones are not kept.
    """

    revision_id: str
    view_id: str
    number: int
    query: ViewQuery
    plan: ViewPlan
    stream_id: str
    state: RevisionState
    progress: ViewProgress = ViewProgress()
    failure: str = ""
    failures: int = 0
    is_stopped: bool = False
    is_rebuild: bool = False
    report: RevisionReport | None = None
    former_until_ms: int | None = None
    history_batch: int | None = None

    @property
    def streams(self) -> tuple[FollowedStream, ...]:
        """The streams that it follows, the first one first."""
        query, progress = self.query, self.progress
        first = StreamProgress(
            positions=progress.positions,
            marks=progress.marks,
            buffered_from=progress.buffered_from,
            stream_id=self.stream_id,
        )
        joined = [
            FollowedStream(name, input_, progress.joined.get(name, StreamProgress()))
            for name, input_ in query.joined.items()
        ]
        return (FollowedStream(query.relation, query.input, first), *joined)


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """Row of a key after a batch.

    `row` is JSON, None while `having` excludes it; `state` has the partial aggregates. `window_end_ms`: end of its window. `sources`:
    None unless the query tracks them. `replaces`: keys of rows that are deleted, since its session includes theirs.
    """

    key: bytes
    row: str | None
    state: str
    window_end_ms: int | None = None
    sources: Sources | None = None
    replaces: tuple[bytes, ...] = ()


class ViewBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of a revision: the progress before it, the one after it, and the changed rows.

    `after.rows`, `final`, `messages` and `versions` are ignored: the transaction decides them.
    """

    before: ViewProgress
    after: ViewProgress
    changes: tuple[RowChange, ...] = ()
    milliseconds: int = 0

    @property
    def counts(self) -> ViewCounts:
        """Records that the batch counted."""
        return self.after.counts - self.before.counts


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A committed batch as it is listed.

    `before` and `after`: positions in the first stream. `joined`: those in the other stream of a join after it, by its name. `rows`: number of rows that it changed or deleted. `versions`: those of its progress.
    """

    batch: int
    before: dict[int, int]
    after: dict[int, int]
    joined: dict[str, dict[int, int]]
    watermark_ms: int | None
    counts: ViewCounts
    rows: int
    milliseconds: int
    at_ms: int
    versions: int = 0
