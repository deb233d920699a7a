"""Relations of a query, as temporary views of its session.

stream   its records, as a view sees them
table    the newest record of each key
view     its rows, all of one batch
"""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from spark_worker.jobs.spark_tasks import slots
from spark_worker.queries.records import RecordPiece, RecordsDeleted, read_in_process, read_in_task
from spark_worker.runtime.job_context import JobContext, PermanentFailure
from spark_worker.settings import TaskSettings
from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.planning.records import (
    RAW,
    TABLE,
    declared_columns,
    parsed_columns,
    parsed_rows,
    parsed_table,
    relation,
    rows_table,
    visible,
)
from storage.domain import limits
from storage.domain.names import ViewName
from storage.domain.queries.query import QuerySpec, QueryStream, StreamRanges
from storage.domain.queries.result import RelationRead
from storage.domain.views.plan import columns_as_ddl
from storage.domain.views.view import ViewInput, ViewTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NULL = "null"
_SPACES = " \t\n\r\x0b\x0c"


class ColumnsRefused(Exception):
    """The declared columns of a relation are refused, as `refusal` says."""

    def __init__(self, name: str, refusal: SqlRefused) -> None:
        super().__init__(name)
        self.name = name
        self.refusal = refusal


class Declared(NamedTuple):
    """Relation that is declared: its rows, and what they include."""

    frame: "DataFrame"
    read: RelationRead


class Relations:
    """Declaration of a query's relations in a session."""

    def __init__(self, work: JobContext, spark: "SparkSession", spec: QuerySpec) -> None:
        self._work = work
        self._spark = spark
        self._spec = spec

    def declare(self, names: Collection[str]) -> dict[str, RelationRead]:
        """Declare the relations of these names; return what each includes.

        Raises ColumnsRefused, PermanentFailure.
        """
        reads = {name: ranges for name, ranges in self._spec.reads.items() if name in names}
        is_small = sum(ranges.records for ranges in reads.values()) < limits.QUERY_SMALL_RECORDS
        declared = {name: self._stream(name, is_small) for name in reads}
        views = {name: view for name, view in self._spec.query.views.items() if name in names}
        declared |= {name: self._view(view) for name, view in views.items()}
        for name, (frame, _) in declared.items():
            frame.createOrReplaceTempView(name)
        return {name: read for name, (_, read) in declared.items()}

    def _stream(self, name: str, is_small: bool) -> Declared:
        ranges, query = self._spec.reads[name], self._spec.query
        stream = query.streams.get(name)
        source = stream or query.tables[name]
        raw = self._raw(source.stream, ranges, is_small)
        try:
            frame = (
                _table_frame(raw, query.tables[name])
                if stream is None
                else _stream_frame(raw, stream)
            )
        except SqlRefused as error:
            raise ColumnsRefused(name, error) from None
        return Declared(frame, RelationRead(positions=ranges.positions, records=ranges.records))

    def _raw(self, stream: str, ranges: StreamRanges, is_small: bool) -> "DataFrame":
        """Return the records of a stream: a local relation, or read by tasks when it is scanned."""
        work = self._work
        namespace = work.job.namespace
        pieces = [
            RecordPiece(namespace, stream, ranges.stream_id, within) for within in ranges.pieces()
        ]
        if is_small:
            try:
                table = work.call(read_in_process(work.storage, pieces))
            except RecordsDeleted as error:
                raise PermanentFailure(str(error)) from None
            if table is not None:
                return self._spark.createDataFrame(table)
        tasks_max = limits.QUERY_TASKS_PER_SLOT * slots(work.spark.sparkContext)
        read = partial(
            read_in_task, TaskSettings(work.settings.storage), [*map(msgspec.json.encode, pieces)]
        )
        numbers = self._spark.range(
            0, len(pieces), numPartitions=max(1, min(len(pieces), tasks_max))
        )
        return numbers.mapInArrow(read, from_arrow_schema(RAW, prefer_timestamp_ntz=True))

    def _view(self, name: str) -> Declared:
        """Return the rows of a view. Raises PermanentFailure for one that is too large."""
        work = self._work
        snapshot = work.call(
            work.storage.view_rows.snapshot(
                ViewName(name, work.job.namespace),
                limits.QUERY_VIEW_ROWS_MAX,
                limits.QUERY_VIEW_BYTES_MAX,
            )
        )
        if snapshot is None:
            most, size = limits.QUERY_VIEW_ROWS_MAX, limits.QUERY_VIEW_BYTES_MAX
            raise PermanentFailure(
                f"The view {name!r} has more than {most} rows or {size} bytes, the maximum of a query."
            )
        revision = snapshot.revision
        rows = self._spark.createDataFrame(rows_table(snapshot.rows))
        return Declared(
            parsed_rows(rows, columns_as_ddl(revision.plan.columns)),
            RelationRead(
                positions=revision.progress.positions,
                records=len(snapshot.rows),
                revision=revision.number,
                batch=revision.progress.batch,
            ),
        )


def _stream_frame(raw: "DataFrame", stream: QueryStream) -> "DataFrame":
    input_ = ViewInput(
        stream=stream.stream,
        columns=stream.columns,
        event_time=stream.event_time,
        on_bad=stream.on_bad,
    )
    records = relation(raw, input_, declared_columns(input_), None)
    return visible(records, input_, drops_late=False)


def _table_frame(raw: "DataFrame", table: ViewTable) -> "DataFrame":
    """Return the newest record of each key, without keys that it deletes.

    A key moves to a shard of a greater number only, so shard and offset order its records.
    """
    newest = sf.max_by("data", sf.struct("shard", "offset")).alias("data")
    text = sf.btrim(sf.col("data").cast("string"), sf.lit(_SPACES))
    records = raw.where("key is not null").groupBy("key").agg(newest)
    present = records.where((sf.octet_length("data") > 0) & (text != _NULL))
    return parsed_table(present.select(*TABLE.names), parsed_columns(table.columns))
