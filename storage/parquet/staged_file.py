"""Staged records of a writer, as an Arrow stream: permitted columns, and the conversion.

data        binary or string, without nulls
key         string?                                   optional, as are the next ones
event_ts    timestamp?
headers     list<struct<k: string, t: string, v: binary>>?
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.log.record_batch import Record
from storage.parquet.record_schema import RECORD_FIELDS, SCHEMA, records_of

_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
_COLUMN_TYPES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "data": (*_BYTES, *_TEXT),
    "key": _TEXT,
    "event_ts": (pa.types.is_timestamp,),
    "headers": (pa.types.is_list, pa.types.is_large_list),
}
"""Permitted columns, and the types each may have."""


def read_staged(encoded: bytes) -> Iterator[list[Record]]:
    """Yield the records, in parts of the size of one append.

    Raises ValidationFailed for anything but such a stream.
    """
    try:
        with pa.ipc.open_stream(encoded) as reader:
            _check_columns(reader.schema)
            for batch in reader:
                batch.validate(full=True)
                yield from _records_in(batch)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValidationFailed(f"The body is not an Arrow IPC stream of records: {error}") from None


def _check_columns(schema: pa.Schema) -> None:
    for field in schema:
        if field.name not in _COLUMN_TYPES:
            raise ValidationFailed.at(f"/{field.name}", "Unknown column", "unknown")
        if not any(is_one(field.type) for is_one in _COLUMN_TYPES[field.name]):
            detail = f"The column type cannot be {field.type}"
            raise ValidationFailed.at(f"/{field.name}", detail, "invalid")
    if "data" not in schema.names:
        raise ValidationFailed.at("/data", "Column 'data' is required", "missing")
    if len(set(schema.names)) != len(schema.names):
        raise ValidationFailed("A column is duplicated.")


def _records_in(batch: pa.RecordBatch) -> Iterator[list[Record]]:
    if batch.column("data").null_count:
        raise ValidationFailed.at("/data", "Data can be empty but not null", "missing")
    whole = _as_archived(batch)
    for start in range(0, len(whole), limits.BATCH_RECORDS_MAX):
        part = whole.slice(start, limits.BATCH_RECORDS_MAX)
        yield [entry.record for entry in records_of(part)]


def _as_archived(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add placeholders for the columns that only the log has."""
    numbers = pa.array(range(batch.num_rows), pa.int64())
    columns = []
    for name in RECORD_FIELDS:
        kind = SCHEMA.field(name).type
        if name == "offset":
            columns.append(numbers)
        elif name == "ts":
            columns.append(numbers.cast(kind))
        elif name in batch.schema.names:
            columns.append(batch.column(name).cast(kind))
        else:
            columns.append(pa.nulls(batch.num_rows, kind))
    return pa.RecordBatch.from_arrays(columns, RECORD_FIELDS)
