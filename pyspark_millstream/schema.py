"""Spark schema of a record.

    shard      int               its shard
    offset     bigint            its offset there
    ts         timestamp         its arrival
    event_ts   timestamp?        the producer's own time
    key        string?           its partition key
    data       binary
    headers    array<struct<k: string, t: string, v: binary>>?    name, type (empty outside SQS) and value

The Parquet files of the archive have the same columns, and `shard` as a partition.
"""

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

_WRITABLE = ("data", "key", "event_ts", "headers")


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
