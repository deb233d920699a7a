"""Records as Kinesis tells them, and how many fit into one answer."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from api.aws.kinesis.metadata import KEY, annotation
from api.aws.kinesis.records.deaggregation import parts_of, wants_parts
from api.aws.kinesis.records.sequence_numbers import STEP, first_number
from api.aws.kinesis.shapes import KMS, RecordOut
from api.aws.kinesis.timestamps import seconds
from storage.domain import limits
from storage.domain.streams.stream import LogRecord, Shard, Stream

_arrival = attrgetter("arrival_ms")


class Told(NamedTuple):
    """Records, the offset to go on with where not all fitted, and their bytes."""

    records: list[RecordOut]
    next_offset: int | None
    size_bytes: int


def encryption_of(stream: Stream) -> str | None:
    """`KMS` where the owner asked for it; nothing is encrypted by that."""
    return KMS if stream.spec.annotations and annotation(stream.spec, KEY) else None


def told_records(stream: Stream, shard: Shard, found: Sequence[LogRecord]) -> Told:
    """The records of one answer: all that was read, or as many as ten megabytes hold, and at least one."""
    size_bytes = sum([len(one.record.data) for one in found])
    next_offset = None
    if size_bytes > limits.READ_BYTES_MAX and len(found) > 1:
        found, size_bytes = _fitting(found)
        next_offset = found[-1].offset + 1
    encryption = encryption_of(stream)
    if wants_parts(stream.spec):
        records, cut = _with_parts(shard, found, encryption)
        next_offset = next_offset if cut is None else cut
    else:
        records = _as_they_are(shard, found, encryption)
    return Told(records, next_offset, size_bytes)


def _fitting(found: Sequence[LogRecord]) -> tuple[Sequence[LogRecord], int]:
    total = 0
    for nth, one in enumerate(found):
        size = len(one.record.data)
        if nth and total + size > limits.READ_BYTES_MAX:
            return found[:nth], total
        total += size
    return found, total


def _as_they_are(
    shard: Shard, found: Sequence[LogRecord], encryption: str | None
) -> list[RecordOut]:
    """Records that arrived together are neighbours, whose numbers are a step apart."""
    told: list[RecordOut] = []
    for arrival_ms, together in groupby(found, _arrival):
        run, arrival = list(together), seconds(arrival_ms)
        first = first_number(shard.opened_at_ms, shard.index, run[0].offset, arrival_ms)
        numbers = range(first, first + len(run) * STEP, STEP)
        told += [
            RecordOut(str(number), arrival, one.record.data, one.record.key, encryption)
            for number, one in zip(numbers, run, strict=True)
        ]
    return told


def _with_parts(
    shard: Shard, found: Sequence[LogRecord], encryption: str | None
) -> tuple[list[RecordOut], int | None]:
    """What was packed, and the offset to go on with where that is more than one answer may hold."""
    told: list[RecordOut] = []
    for nth, whole in enumerate(_as_they_are(shard, found, encryption)):
        parts = parts_of(whole.data)
        number, arrival = whole.sequence_number, whole.approximate_arrival_timestamp
        if parts is None:
            told.append(whole)
        else:
            told += [RecordOut(number, arrival, data, key, encryption) for key, data in parts]
        if len(told) >= limits.READ_RECORDS_MAX and nth + 1 < len(found):
            return told, found[nth].offset + 1
    return told, None
