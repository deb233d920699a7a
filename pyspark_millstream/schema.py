"""Spark schema of a record, and conversion of Arrow tables from the service.

    shard      int               its shard
    offset     bigint            its offset there
    ts         timestamp         its arrival
    event_ts   timestamp?        the producer's own time
    key        string?           its partition key
    data       binary
    headers    array<struct<k: string, t: string, v: binary>>?    name, type (empty outside SQS) and value

The Parquet files of the archive have the same columns, and `shard` as a partition.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_millstream.errors import OptionError

_HEADER = StructType(
    [
        StructField("k", StringType(), nullable=False),
        StructField("t", StringType(), nullable=False),
        StructField("v", BinaryType(), nullable=False),
    ]
)
RECORD = StructType(
    [
        StructField("shard", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("ts", TimestampType(), nullable=False),
        StructField("event_ts", TimestampType()),
        StructField("key", StringType()),
        StructField("data", BinaryType(), nullable=False),
        StructField("headers", ArrayType(_HEADER, containsNull=False)),
    ]
)
"""Schema of the source's records."""

_WRITABLE: dict[str, pa.DataType] = {
    "data": pa.binary(),
    "key": pa.string(),
    "event_ts": pa.timestamp("us", tz="UTC"),
    "headers": pa.list_(pa.struct([("k", pa.string()), ("t", pa.string()), ("v", pa.binary())])),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark requires of a source's batches, exactly."""
    return to_arrow_schema(schema, timezone="UTC")


def as_records(shard: int, tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Convert batches of the service to the ones that Spark expects."""
    expected = arrow_schema(RECORD)
    for batch in tables:
        numbers = pa.nulls(batch.num_rows, pa.int32()).fill_null(shard)
        columns = [
            numbers if field.name == "shard" else _cast(batch.column(field.name), field.type)
            for field in expected
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=expected)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type.equals(kind) else column.cast(kind)


def check_writable(schema: StructType) -> None:
    """Raise OptionError unless a data frame of this schema can be written."""
    names = schema.names
    if "data" not in names:
        raise OptionError("column 'data' is required (binary or string)")
    unknown = [name for name in names if name not in _WRITABLE]
    if unknown:
        raise OptionError(
            f"unknown column {unknown[0]!r}; the columns of a record are {', '.join(_WRITABLE)}"
        )
    kind = schema["data"].dataType
    if not isinstance(kind, BinaryType | StringType):
        raise OptionError(f"column 'data' must be binary or a string, not {kind.simpleString()}")


def as_written(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert a data frame's batch to the one that the service expects.

    Raises OptionError for a record without data.
    """
    columns: dict[str, Any] = {}
    for name, kind in _WRITABLE.items():
        if name in batch.schema.names:
            columns[name] = batch.column(name).cast(kind)
    if pc.any(columns["data"].is_null()).as_py():
        raise OptionError("column 'data' can be empty but not null")
    return pa.RecordBatch.from_pydict(columns)
