"""Records of a stream as a query sees them.

    key          string     its partition key
    value        string     its data as text; null where that is not UTF-8
    (declared)   …          the columns of its data, from JSON
    data         binary
    headers      map<string, binary>
    event_time   timestamp  the declared column, or else the record's own, or else its arrival
    arrival_time timestamp
    shard        int
    offset       bigint

The names are those of the guide, not those of the Spark source, whose columns are the archive's.
"""

import re
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from spark_worker.sql.refusal import SqlRefused, first_line
from spark_worker.sql.sizes import WindowCall
from spark_worker.views.planning.plans import JSON, stream_column, table_column
from storage.domain.streams.stream import LogRecord
from storage.domain.views.view import BadPolicy, ViewInput
from storage.parquet.record_schema import US_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

RAW = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("arrival_time", pa.timestamp("us", "UTC")),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("key", pa.string()),
        pa.field("data", pa.binary()),
        pa.field("headers", pa.map_(pa.string(), pa.binary())),
        pa.field("watermark_us", pa.int64()),
    ]
)
"""Records as they are handed to Spark; `time` is their own, or that of their arrival."""
TABLE = pa.schema([pa.field("key", pa.string()), pa.field("data", pa.binary())])
"""Newest records of the keys of a table."""
ORDER = ("arrival_time", "shard", "offset")
"""Columns that order records."""
_HEADERS = RAW.field("headers").type
_CORRUPT = "_corrupt_record"
_RESERVED = frozenset(
    {"key", "value", "data", "headers", "event_time", *ORDER, "_bad", "_late", _CORRUPT}
)
_STORABLE_TIMES = ("0001-01-01T00:00:00Z", "9000-01-01T00:00:00Z")
"""Event times whose windows have four digits of a year, as keys do. Milliseconds that are read as seconds lie behind them."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


def raw_table(shards: "Mapping[int, Sequence[LogRecord]]", watermark_ms: int | None) -> pa.Table:
    """Return the records of a batch, by shard and offset."""
    rows = [
        (
            shard,
            each.offset,
            each.arrival_ms * US_PER_MS,
            _time_ms(each) * US_PER_MS,
            each.record.key or None,
            each.record.data,
            [*{name: value for name, _, value in each.record.headers}.items()],
            None,
        )
        for shard, records in shards.items()
        for each in records
    ]
    columns = [*zip(*rows, strict=True)] or [()] * len(RAW)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RAW, strict=True)]
    return with_watermark(pa.Table.from_arrays(arrays, schema=RAW), watermark_ms)


def raw_batch(shard: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return records in the columns of the archive as those of RAW."""
    count = batch.num_rows
    arrivals = batch.column("ts")
    columns = [
        pa.repeat(pa.scalar(shard, pa.int32()), count),
        batch.column("offset"),
        arrivals,
        pc.coalesce(batch.column("event_ts"), arrivals),
        batch.column("key"),
        batch.column("data"),
        _headers_of(batch.column("headers")),
        pa.nulls(count, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RAW)


def _headers_of(headers: pa.ListArray) -> pa.MapArray:
    """Return headers as maps: empty without headers, and of equal names the last one."""
    names, _, values = headers.flatten().flatten()
    if _are_repeated(pc.list_parent_indices(headers), names):
        maps = [{one["k"]: one["v"] for one in row or ()} for row in headers.to_pylist()]
        return pa.array([[*each.items()] for each in maps], _HEADERS)
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(headers), 0))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.MapArray.from_arrays(offsets, names, values, _HEADERS)


def _are_repeated(records: pa.Array, names: pa.Array) -> bool:
    """Return whether a record has a name twice; `records` has the record of each name."""
    pairs = pa.table({"record": records, "name": names})
    return bool(pairs.group_by(pairs.column_names).aggregate([]).num_rows < len(names))


def with_watermark(records: pa.Table, watermark_ms: int | None) -> pa.Table:
    """Return records with the watermark that they are late behind."""
    us = None if watermark_ms is None else watermark_ms * US_PER_MS
    column = pa.repeat(pa.scalar(us, pa.int64()), records.num_rows)
    return records.set_column(len(RAW) - 1, RAW.field(len(RAW) - 1), column)


def _time_ms(record: LogRecord) -> int:
    own = record.record.event_time_ms
    return record.arrival_ms if own is None else own


def rows_table(rows: "Sequence[bytes]") -> pa.Table:
    """Return rows of a view, which are JSON, in the columns of TABLE: without keys."""
    columns = [pa.nulls(len(rows), TABLE.field("key").type), pa.array(rows, pa.binary())]
    return pa.Table.from_arrays(columns, schema=TABLE)


def declared_columns(input_: ViewInput) -> StructType:
    """Return the declared columns of an input. Raises SqlRefused."""
    columns = parsed_columns(input_.columns)
    time = input_.event_time
    if time and not any(
        field.name == time and isinstance(field.dataType, TimestampType) for field in columns
    ):
        raise SqlRefused(
            f"the event time {time!r} is not a declared timestamp",
            "Name one of the columns whose type is timestamp.",
        )
    return columns


def parsed_columns(text: str) -> StructType:
    """Return the columns of a text in Spark's DDL. Raises SqlRefused."""
    if not text.strip():
        return StructType([])
    from pyspark.errors import PySparkException

    try:
        parsed = cast("StructType", StructType.fromDDL(text))
    except PySparkException as error:
        raise SqlRefused(first_line(str(error)), "Write columns as Spark DDL.") from None
    columns = StructType([StructField(field.name, field.dataType) for field in parsed.fields])
    names = [name.lower() for name in columns.names]
    for name in names:
        if not _NAME.fullmatch(name) or name in _RESERVED or names.count(name) > 1:
            raise SqlRefused(
                f"a declared column {name!r} is not possible",
                f"Use a name of its own, of letters, digits and underscore, other than {', '.join(sorted(_RESERVED))}.",
            )
    return columns


def parsed_table(raw: "DataFrame", columns: StructType) -> "DataFrame":
    """Return the records of a table with the columns that queries see."""
    frame = raw.withColumn("value", sf.try_validate_utf8(sf.col("data").cast("string")))
    if not columns.names:
        return frame.select("key", "value")
    frame = frame.withColumn("_json", sf.from_json("value", columns, {"mode": "PERMISSIVE"}))
    declared = [sf.col("_json")[name].alias(name) for name in columns.names]
    return frame.select("key", "value", *declared)


def parsed_rows(raw: "DataFrame", columns: str) -> "DataFrame":
    """Return the rows of a view with its columns, as Spark DDL."""
    declared = cast("StructType", StructType.fromDDL(columns))
    row = sf.from_json(sf.col("data").cast("string"), declared, JSON)
    return raw.select(row.alias("row")).select("row.*")


def table_relation(spark: "SparkSession", name: str, schema: StructType) -> "DataFrame":
    """Return an empty relation of a table, whose columns say its name in a template."""
    return _named_relation(spark, schema, partial(table_column, name))


def stream_relation(spark: "SparkSession", name: str, schema: StructType) -> "DataFrame":
    """Return an empty relation of a stream that is joined, as that of a table."""
    return _named_relation(spark, schema, partial(stream_column, name))


def _named_relation(
    spark: "SparkSession", schema: StructType, column: "Callable[[int], str]"
) -> "DataFrame":
    fields = [StructField(column(nth), field.dataType) for nth, field in enumerate(schema.fields)]
    empty = spark.createDataFrame([], StructType(fields))
    return empty.select(
        *[sf.col(own.name).alias(field.name) for own, field in zip(fields, schema, strict=True)]
    )


def relation(
    raw: "DataFrame", input_: ViewInput, columns: StructType, window: WindowCall | None
) -> "DataFrame":
    """Return records as the query's relation, with the columns `_bad` and `_late` behind them."""
    frame = raw.withColumn("value", sf.try_validate_utf8(sf.col("data").cast("string")))
    declared: list[Column] = []
    bad, time = sf.lit(False), sf.col("time")
    if columns.names:
        schema = StructType([*columns.fields, StructField(_CORRUPT, StringType())])
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        frame = frame.withColumn("_json", sf.from_json("value", schema, options))
        declared = [sf.col("_json")[name].alias(name) for name in columns.names]
        bad = sf.col("_json").isNull() | sf.col("_json")[_CORRUPT].isNotNull()
    if input_.event_time:
        own = sf.col("_json")[input_.event_time]
        is_storable = own.between(*map(sf.to_timestamp, map(sf.lit, _STORABLE_TIMES)))
        time = sf.coalesce(sf.when(is_storable, own), time)
        bad |= sf.coalesce(~is_storable, sf.lit(False))
    fixed = (sf.col("data"), sf.col("headers"), time.alias("event_time"), *map(sf.col, ORDER))
    late = _is_late(window, time).alias("_late")
    return frame.select("key", "value", *declared, *fixed, bad.alias("_bad"), late)


def _is_late(window: WindowCall | None, time: "Column") -> "Column":
    """Return whether the last window of a record ended at or before the watermark.

    The session of a record alone ends after the gap, whatever other records it has.
    """
    if window is None:
        return sf.lit(False)
    us = sf.unix_micros(time)
    last_start = us - sf.pmod(us - sf.lit(window.start_us), sf.lit(window.slide_us))
    if window.is_session:
        last_start = us
    return sf.coalesce(last_start + window.duration_us <= sf.col("watermark_us"), sf.lit(False))


def visible(records: "DataFrame", input_: ViewInput, *, drops_late: bool) -> "DataFrame":
    """Return the records that the query sees."""
    if input_.on_bad is BadPolicy.SKIP:
        records = records.where(~sf.col("_bad"))
    if drops_late:
        records = records.where(~sf.col("_late"))
    return records.drop("_bad", "_late")


def narrowed(records: "DataFrame", needed: "Collection[str]") -> "DataFrame":
    """Return records with null in the columns that are not needed."""
    return records.select(
        *[
            sf.col(field.name)
            if field.name in needed
            else sf.lit(None).cast(field.dataType).alias(field.name)
            for field in records.schema
        ]
    )


def stats(records: "DataFrame") -> "DataFrame":
    """Count the records of each shard of a batch, and return their newest event time."""
    return records.groupBy("shard").agg(
        sf.count(sf.lit(1)).alias("records"),
        sf.count_if("_late").alias("late"),
        sf.count_if("_bad").alias("bad"),
        sf.max(sf.unix_millis("event_time")).alias("newest_ms"),
    )
