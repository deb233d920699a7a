"""Prepared views of a scan in one Spark session, and the computation of their batches."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_worker.views.executor import (
    NO_TABLES,
    Contributor,
    Executor,
    MergedRow,
    Partials,
    State,
)
from spark_worker.views.inputs.backlog import BatchRecords
from spark_worker.views.inputs.joins import JoinBatch
from spark_worker.views.inputs.tables import ParsedTables, Table, ViewRowsTable
from spark_worker.views.planning.planner import ViewPlanner
from spark_worker.views.planning.prepared import PreparedView
from spark_worker.views.planning.records import RAW, raw_table, with_watermark
from storage.domain import limits
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import LogRecord
from storage.domain.views.progress import ViewRevision

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ViewSession:
    """Views that are planned in a session, by revision."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark
        self._planner = ViewPlanner(spark)
        self._executor = Executor(self._planner.spark, self._planner.plans)
        self._parsed = ParsedTables(self._planner.plans)
        self._prepared: dict[str, tuple[int, PreparedView]] = {}
        self._over_raw: dict[str, PreparedView] = {}
        self._next = 0

    def prepare(self, revision: ViewRevision) -> None:
        """Plan a revision's query unless that is done. Raises SqlRefused."""
        if revision.revision_id not in self._prepared:
            view = self._planner.prepare(revision.query, self._next)
            self._prepared[revision.revision_id] = self._next, view
            self._next += 1

    def changed_columns(self, revision: ViewRevision, tables: Mapping[str, Table]) -> str:
        """Return which view has other columns than a prepared revision reads; empty if none has."""
        _, view = self._prepared[revision.revision_id]
        for relation, table in tables.items():
            if not isinstance(table, ViewRowsTable):
                continue
            types = {column.name: column.type for column in table.columns}
            for field in view.tables[relation].schema:
                if types.get(field.name) != field.dataType.simpleString():
                    return (
                        f"The view {table.name.name!r} has no column {field.name!r} of type {field.dataType.simpleString()} any more; "
                        "put this view again."
                    )
        return ""

    def keep(self, revision_ids: Sequence[str], tables: Collection[StreamName | ViewName]) -> None:
        """Forget all other revisions, and the rows of other tables."""
        self._parsed.keep(tables)
        for prepared in (self._prepared, self._over_raw):
            for gone in prepared.keys() - set(revision_ids):
                del prepared[gone]

    def partials(
        self,
        revisions: Sequence[ViewRevision],
        records: BatchRecords,
        tables: Mapping[str, Mapping[str, Table]] = NO_TABLES,
    ) -> dict[str, Partials]:
        """Return the partial aggregates of a batch, by revision; also `tables`, by their names."""
        [only] = records.reads
        read = raw_table({shard.shard: shard.records for shard in only.shards}, None)
        every = pa.concat_tables([read, pa.Table.from_batches(records.columns, RAW)])
        watermarks = {_watermark_of(revision) for revision in revisions}
        raw = {watermark: with_watermark(every, watermark) for watermark in watermarks}
        numbered = self._numbered(revisions)
        if every.num_rows < limits.VIEW_PARSE_RECORDS:
            numbered = [(one, number, self._raw(one)) for one, number, _ in numbered]
        results = self._executor.partials(
            {number: view for _, number, view in numbered},
            {number: raw[_watermark_of(one)] for one, number, _ in numbered},
            {
                number: self._parsed_tables(one, view, tables[one.revision_id])
                for one, number, view in numbered
                if one.query.tables
            },
        )
        return {revision.revision_id: results[number] for revision, number, _ in numbered}

    def parsed(self, revision: ViewRevision, relation: str, records: pa.Table) -> pa.Table:
        """Return raw records of a joined stream of a prepared revision, parsed."""
        _, view = self._prepared[revision.revision_id]
        return self._executor.parsed(view.joined[relation], records)

    def join(
        self,
        revision: ViewRevision,
        batch: JoinBatch,
        tables: Mapping[str, Table] = NO_TABLES,
    ) -> Partials:
        """Return the partial aggregates of a batch of a revision that joins two streams."""
        _, view = self._prepared[revision.revision_id]
        parsed = self._parsed_tables(revision, view, tables)
        return self._executor.join(view, batch.sides, batch.expired, parsed)

    def _raw(self, revision: ViewRevision) -> PreparedView:
        """Return a prepared revision whose plans are over raw records."""
        view = self._over_raw.get(revision.revision_id)
        if view is None:
            _, prepared = self._prepared[revision.revision_id]
            view = self._over_raw[revision.revision_id] = self._planner.over_raw(prepared)
        return view

    def contributors(
        self,
        revision: ViewRevision,
        records: Mapping[int, Sequence[LogRecord]],
        tables: Mapping[str, Table] = NO_TABLES,
    ) -> Iterator[Contributor]:
        """Yield the records that contribute to rows of a revision, which tracks sources."""
        view = self._raw(revision)
        parsed = self._parsed_tables(revision, view, tables)
        return self._executor.contributors(view, raw_table(records, None), parsed)

    def _parsed_tables(
        self, revision: ViewRevision, view: PreparedView, tables: Mapping[str, Table]
    ) -> dict[str, Any]:
        """Return the rows of a revision's tables, by their names in its query."""
        return {
            name: self._parsed.rows(tables[name], table.columns, view.tables[name])
            for name, table in revision.query.tables.items()
        }

    def merge(
        self, revisions: Sequence[ViewRevision], states: Mapping[str, Sequence[State]]
    ) -> dict[str, list[MergedRow]]:
        """Merge the states of each revision by key."""
        numbered = self._numbered(revisions)
        merged = self._executor.merge(
            {number: view for _, number, view in numbered},
            {number: states[revision.revision_id] for revision, number, _ in numbered},
        )
        return {revision.revision_id: merged[number] for revision, number, _ in numbered}

    def _numbered(
        self, revisions: Sequence[ViewRevision]
    ) -> list[tuple[ViewRevision, int, PreparedView]]:
        return [(revision, *self._prepared[revision.revision_id]) for revision in revisions]


def _watermark_of(revision: ViewRevision) -> int | None:
    """Return the watermark that records may be late behind; None for a view without windows."""
    return revision.progress.watermark_ms if revision.plan.has_windows else None
