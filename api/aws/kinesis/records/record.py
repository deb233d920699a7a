"""Records in the Kinesis format, limited to what fits into one response."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from api.aws.kinesis.metadata import KEY, annotation
from api.aws.kinesis.records.deaggregation import parts_of, wants_parts
from api.aws.kinesis.records.sequence_numbers import STEP, first_number
from api.aws.kinesis.shapes import KMS, KinesisRecordOut
from api.aws.kinesis.timestamps import seconds
from storage.domain import limits
from storage.domain.streams.stream import LogRecord, Shard, Stream

_arrival = attrgetter("arrival_ms")


class RecordPage(NamedTuple):
    """Records and their bytes, and the offset to continue from if not all of them fitted."""

    records: list[KinesisRecordOut]
    next_offset: int | None
    size_bytes: int


def encryption_of(stream: Stream) -> str | None:
    """Return `KMS` if the owner enabled it; nothing is encrypted by that."""
    return KMS if stream.spec.annotations and annotation(stream.spec, KEY) else None


def record_page(stream: Stream, shard: Shard, log_records: Sequence[LogRecord]) -> RecordPage:
    """Return the records of one response.

    All that were read, or as many as ten megabytes hold, and at least one.
    """
    size_bytes = sum([len(one.record.data) for one in log_records])
    next_offset = None
    if size_bytes > limits.READ_BYTES_MAX and len(log_records) > 1:
        log_records, size_bytes = _fitting(log_records)
        next_offset = log_records[-1].offset + 1
    encryption = encryption_of(stream)
    if wants_parts(stream.spec):
        records, cut = _with_parts(shard, log_records, encryption)
        next_offset = next_offset if cut is None else cut
    else:
        records = _as_they_are(shard, log_records, encryption)
    return RecordPage(records, next_offset, size_bytes)


def _fitting(log_records: Sequence[LogRecord]) -> tuple[Sequence[LogRecord], int]:
    total = 0
    for nth, log_record in enumerate(log_records):
        size = len(log_record.record.data)
        if nth and total + size > limits.READ_BYTES_MAX:
            return log_records[:nth], total
        total += size
    return log_records, total


def _as_they_are(
    shard: Shard, log_records: Sequence[LogRecord], encryption: str | None
) -> list[KinesisRecordOut]:
    """Convert records; neighbours that arrived together have numbers one step apart."""
    records: list[KinesisRecordOut] = []
    for arrival_ms, together in groupby(log_records, _arrival):
        run, arrival = list(together), seconds(arrival_ms)
        first = first_number(shard.opened_at_ms, shard.index, run[0].offset, arrival_ms)
        numbers = range(first, first + len(run) * STEP, STEP)
        records += [
            KinesisRecordOut(str(number), arrival, one.record.data, one.record.key, encryption)
            for number, one in zip(numbers, run, strict=True)
        ]
    return records


def _with_parts(
    shard: Shard, log_records: Sequence[LogRecord], encryption: str | None
) -> tuple[list[KinesisRecordOut], int | None]:
    """Deaggregate records.

    Returns the offset to continue from if they are more than one response may hold.
    """
    records: list[KinesisRecordOut] = []
    for nth, whole in enumerate(_as_they_are(shard, log_records, encryption)):
        parts = parts_of(whole.data)
        number, arrival = whole.sequence_number, whole.approximate_arrival_timestamp
        if parts is None:
            records.append(whole)
        else:
            records += [
                KinesisRecordOut(number, arrival, data, key, encryption) for key, data in parts
            ]
        if len(records) >= limits.READ_RECORDS_MAX and nth + 1 < len(log_records):
            return records, log_records[nth].offset + 1
    return records, None
