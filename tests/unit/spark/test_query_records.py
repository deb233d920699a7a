"""Records of queries: the columns that views have, without Python objects between."""

from random import Random

import pyarrow as pa
import pytest

from spark_worker.views.planning.records import raw_batch, raw_table
from storage.domain.log.record_batch import Headers, Record
from storage.domain.streams.stream import LogRecord
from storage.parquet.record_schema import RECORD_SCHEMA, US_PER_MS

DUPLICATES = (("a", "", b"1"), ("a", "", b"2"), ("b", "String", b""))


def records(random: Random, headers: Headers) -> list[LogRecord]:
    return [
        LogRecord(
            10 + nth,
            1_790_000_000_000 + nth,
            Record(
                bytes([nth]),
                key=random.choice(("", "ann")),
                headers=random.choice(((), headers)),
                event_time_ms=random.choice((None, 5)),
            ),
        )
        for nth in range(20)
    ]


def archived(each: LogRecord) -> dict[str, object]:
    """Return a record in the columns of the archive."""
    time_ms, headers = each.record.event_time_ms, each.record.headers
    return {
        "offset": each.offset,
        "ts": each.arrival_ms * US_PER_MS,
        "event_ts": None if time_ms is None else time_ms * US_PER_MS,
        "key": each.record.key or None,
        "data": each.record.data,
        "headers": [dict(zip("ktv", header, strict=True)) for header in headers] or None,
    }


@pytest.mark.parametrize("headers", [(), DUPLICATES, DUPLICATES[1:]], ids=len)
def test_records_of_queries_equal_those_of_views(headers):
    read = records(Random(2), headers)
    batch = pa.RecordBatch.from_pylist([*map(archived, read)], RECORD_SCHEMA)

    for first in (0, 7, 20):  # a part of a batch has the offsets of the whole
        part = raw_batch(3, batch[first:])
        part.validate(full=True)
        assert pa.Table.from_batches([part]) == raw_table({3: read[first:]}, None)
