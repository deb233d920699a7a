"""Results of puts: sequence numbers, or one of the two errors that SDKs know."""

from collections.abc import Sequence

import msgspec

from api.aws.kinesis.call_helpers import shard_id
from api.aws.kinesis.errors import THROUGHPUT_EXCEEDED
from api.aws.kinesis.records.sequence_numbers import STEP, first_number, sequence_number
from api.aws.protocol.errors import AwsError
from storage.domain.errors import ErrorCode, MillstreamError
from storage.domain.streams.stream import Appended, AppendedRange, Stream

Result = Appended | MillstreamError | AwsError


class PutRecordsResultEntry(msgspec.Struct, rename="pascal", omit_defaults=True, gc=False):
    """Sequence number and shard of one record, or its error."""

    sequence_number: str | None = None
    shard_id: str | None = None
    error_code: str | None = None
    error_message: str | None = None


def number_of(stream: Stream, placed: Appended) -> str:
    """Return a record's sequence number."""
    opened_ms = stream.shard(placed.shard).opened_at_ms
    return sequence_number(opened_ms, placed.shard, placed.offset, placed.arrival_ms)


def result_entries(stream: Stream, results: Sequence[Result]) -> list[PutRecordsResultEntry]:
    """Convert the results of records that were appended one by one."""
    return [
        PutRecordsResultEntry(number_of(stream, one), shard_id(one.shard))
        if isinstance(one, Appended)
        else failed(one)
        for one in results
    ]


def range_entries(
    stream: Stream, ranges: Sequence[AppendedRange], count: int
) -> list[PutRecordsResultEntry]:
    """Convert the results of records that were appended in ranges; `count` is that of all."""
    if len(ranges) == 1:
        return _entries_of_range(stream, ranges[0])
    entries = [_MISSING] * count
    for appended in ranges:
        for number, entry in zip(
            appended.numbers, _entries_of_range(stream, appended), strict=True
        ):
            entries[number] = entry
    return entries


_MISSING = PutRecordsResultEntry()


def _entries_of_range(stream: Stream, appended: AppendedRange) -> list[PutRecordsResultEntry]:
    """Convert one range: neighbours that arrived together have numbers one step apart."""
    count = len(appended.numbers)
    if appended.error is not None:
        return [failed(appended.error)] * count
    opened_ms, name = stream.shard(appended.shard).opened_at_ms, shard_id(appended.shard)
    first = first_number(opened_ms, appended.shard, appended.offset, appended.arrival_ms)
    numbers = range(first, first + count * STEP, STEP)
    return [PutRecordsResultEntry(str(number), name) for number in numbers]


def failed(error: MillstreamError | AwsError) -> PutRecordsResultEntry:
    """Return the result of a failed record, with one of the two codes that SDKs know.

    One means to retry more slowly, the other to retry.
    """
    if isinstance(error, AwsError):
        return PutRecordsResultEntry(error_code=error.fault.shape, error_message=error.message)
    busy = error.code is ErrorCode.STORAGE_BUSY
    code = THROUGHPUT_EXCEEDED.shape if busy else "InternalFailure"
    return PutRecordsResultEntry(error_code=code, error_message=error.detail)
