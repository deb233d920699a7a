"""Conversion of Arrow batches between the service and Spark."""

from array import array
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_millstream.errors import OptionError
from pyspark_millstream.schema import RECORD

_WRITTEN: dict[str, pa.DataType] = {
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
        columns = [
            _repeated(shard, batch.num_rows)
            if field.name == "shard"
            else _cast(batch.column(field.name), field.type)
            for field in expected
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=expected)


def _repeated(number: int, count: int) -> pa.Array:
    """Return a column of one number.

    Without `pa.repeat` or `fill_null`, which load pandas where it is installed: a third of a second in each process.
    """
    return pa.Array.from_buffers(
        pa.int32(), count, [None, pa.py_buffer(array("i", [number]) * count)]
    )


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type.equals(kind) else column.cast(kind)


def as_written(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert a data frame's batch to the one that the service expects.

    Raises OptionError for a record without data.
    """
    columns: dict[str, Any] = {}
    for name, kind in _WRITTEN.items():
        if name in batch.schema.names:
            columns[name] = _cast(batch.column(name), kind)
    if columns["data"].null_count:
        raise OptionError("column 'data' can be empty but not null")
    return pa.RecordBatch.from_pydict(columns)
