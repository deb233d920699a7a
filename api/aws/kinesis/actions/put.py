"""PutRecord and PutRecords.

    decode ▶ constraints ▶ the stream's own limits ▶ select each record's shard ▶ one append ▶ an answer for each

A record that the stream would never take refuses the whole call; what fails on its way fails alone.
"""

import random
import re
from collections.abc import Sequence
from typing import Annotated, cast

import msgspec

from api.aws.kinesis import metadata
from api.aws.kinesis.call_helpers import now_ms, process_state, shard_id, stream_of
from api.aws.kinesis.errors import (
    INVALID_ARGUMENT,
    VALIDATION,
    dry_run,
    invalid,
    refuse,
    translate,
)
from api.aws.kinesis.metadata import annotation
from api.aws.kinesis.records.put_results import (
    PutRecordsResultEntry,
    Result,
    number_of,
    range_entries,
    result_entries,
)
from api.aws.kinesis.records.record import encryption_of
from api.aws.kinesis.records.sequence_numbers import read_number
from api.aws.kinesis.records.throttled_append import append_throttled
from api.aws.kinesis.shapes import (
    AUTO,
    KEY_CHARACTERS_MAX,
    RECORDS_MAX,
    DataIn,
    HashKeyIn,
    PartitionKeyIn,
    SequenceNumberIn,
    StreamIdentity,
)
from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError, OutcomeUnknown, StorageBusy, StorageUnavailable
from storage.domain.log.record_batch import Record
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.stream import RING_SIZE, Appended, AppendedRange, Stream

operations = Operations()

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
CALL_BYTES_MAX = 10 * limits.MIB
_PATH = "records.{}.member."


class PutRecord(StreamIdentity):
    """One record."""

    data: DataIn = None
    partition_key: PartitionKeyIn = None
    explicit_hash_key: HashKeyIn = None
    sequence_number_for_ordering: SequenceNumberIn = None
    dry_run: bool | None = None


class PutRecordResult(OperationOutput):
    """The shard and sequence number of the record."""

    shard_id: str
    sequence_number: str
    encryption_type: str | None = None


class PutRecordsEntry(msgspec.Struct, rename="pascal", gc=False):
    """One record of several."""

    data: DataIn = None
    explicit_hash_key: HashKeyIn = None
    partition_key: PartitionKeyIn = None


class PutRecords(StreamIdentity):
    """Records."""

    records: Annotated[list[PutRecordsEntry] | None, bounds(1, RECORDS_MAX), REQUIRED] = None
    dry_run: bool | None = None


class PutRecordsResult(OperationOutput):
    """Results for each record, in their order."""

    failed_record_count: int
    records: list[PutRecordsResultEntry]
    encryption_type: str | None = None


@operations.add("PutRecord", PutRecord, Action.STREAM_PUT)
async def put_record(call: AwsCall[PutRecord]) -> PutRecordResult:
    """Append one record."""
    request = call.request
    stream = await stream_of(call, request.stream_name, request.stream_arn)
    if request.sequence_number_for_ordering is not None:
        await _check_ordering(call, stream, request.sequence_number_for_ordering)
    entry = PutRecordsEntry(request.data, request.explicit_hash_key, request.partition_key)
    [result] = await _put(call, stream, [entry], bool(request.dry_run), "")
    if isinstance(result, AwsError):
        raise result
    if isinstance(result, MillstreamError):
        raise translate(result)
    call.metrics.confirmed(1, 0)
    number = number_of(await _with_current_shards(call, stream, [result]), result)
    return PutRecordResult(shard_id(result.shard), number, encryption_of(stream))


def _is_typical(request: PutRecords) -> bool:
    """Return whether this is a typical valid call, which needs no check of its constraints.

    Every record has data, a key of valid length, and no explicit hash key.
    """
    records = request.records
    if not records or len(records) > RECORDS_MAX or request.stream_arn is not None:
        return False
    if request.stream_name is None or not _NAME.fullmatch(request.stream_name):
        return False
    data, keys = [one.data for one in records], [one.partition_key for one in records]
    if not all(data) or not all(keys) or _has_hash_keys(records):
        return False
    return max(map(len, cast(list[str], keys))) <= KEY_CHARACTERS_MAX and request.stream_id is None


def _has_hash_keys(entries: Sequence[PutRecordsEntry]) -> bool:
    return [one.explicit_hash_key for one in entries].count(None) != len(entries)


@operations.add("PutRecords", PutRecords, Action.STREAM_PUT, fast_validate=_is_typical)
async def put_records(call: AwsCall[PutRecords]) -> PutRecordsResult:
    """Append up to 500 records; each has its own result."""
    request = call.request
    stream = await stream_of(call, request.stream_name, request.stream_arn)
    auto = _is_auto(stream)
    if (
        auto
        or request.dry_run
        or process_state(call).shard_limits.limited
        or _has_hash_keys(request.records or [])
    ):
        results = await _put(call, stream, request.records or [], bool(request.dry_run), _PATH)
        entries = result_entries(await _with_current_shards(call, stream, results), results)
    else:
        entries = await _put_columns(call, stream)
    failed = sum([one.error_code is not None for one in entries])
    call.metrics.confirmed(len(entries) - failed, 0)
    return PutRecordsResult(failed, entries, encryption_of(stream))


async def _put_columns(call: AwsCall[PutRecords], stream: Stream) -> list[PutRecordsResultEntry]:
    """Append the records of a typical call as columns, with keys alone."""
    columns = _extract_columns(call.request)
    count = len(columns)
    call.metrics.received(count, _check_sizes(stream, columns, _PATH))
    appending = call.storage.streams.append_columns(stream.name, columns)
    del columns  # packed by append_columns
    ranges = await appending
    return range_entries(await _with_current_shards(call, stream, ranges), ranges, count)


def _extract_columns(request: PutRecords) -> Columns:
    """Take the records out of the call, which no longer references them.

    Raises AwsError for a record without a key.
    """
    entries, request.records = request.records or [], None
    keys = [one.partition_key for one in entries]
    if not all(keys):
        _check_keys(entries, _PATH)
    return Columns([one.data or b"" for one in entries], cast(list[str], keys))


async def _put(
    call: AwsCall[PutRecord] | AwsCall[PutRecords],
    stream: Stream,
    entries: Sequence[PutRecordsEntry],
    dry: bool,
    path: str,
) -> Sequence[Result]:
    """Append the records; one result for each entry.

    Raises AwsError for entries that the stream would never accept.
    """
    auto = _is_auto(stream)
    if not auto:
        _check_keys(entries, path)
    records = _to_records(entries, auto)
    columns = Columns([one.data for one in records], [one.key for one in records])
    total = _check_sizes(stream, columns, path)
    if dry:
        raise dry_run()
    call.metrics.received(len(records), total)
    return await append_throttled(call, stream, records)


def _is_auto(stream: Stream) -> bool:
    """Return whether records go to any shard."""
    annotations = stream.spec.annotations
    return bool(annotations) and annotation(stream.spec, metadata.DISTRIBUTION) == AUTO


def _check_keys(entries: Sequence[PutRecordsEntry], path: str) -> None:
    for nth, entry in enumerate(entries, 1):
        if entry.partition_key is None:
            member = f"{path.format(nth)}partitionKey"
            refuse(
                VALIDATION,
                f"1 validation error detected: Value null at '{member}' failed to satisfy constraint: "
                "Member must not be null",
            )


def _check_sizes(stream: Stream, columns: Columns, path: str) -> int:
    """Return the bytes of all data.

    Raises AwsError when there are too many, or too many in one record.
    """
    most = stream.spec.record_bytes_max
    total = sum(map(len, columns.data))
    if (
        total <= min(most, limits.MIB) - limits.KIB
    ):  # no record is too large: a key has one kilobyte at most
        return total
    sizes = columns.sizes()
    for nth, size in enumerate(sizes, 1):
        if size > most:
            refuse(
                VALIDATION,
                f"1 validation error detected: Value at '{path.format(nth)}data' failed to satisfy "
                f"constraint: Member must have length less than or equal to {most}",
            )
    if len(sizes) > 1 and sum(sizes) > CALL_BYTES_MAX:
        refuse(INVALID_ARGUMENT, "Records size exceeds 10 MB limit")
    return total


def _to_records(entries: Sequence[PutRecordsEntry], auto: bool) -> list[Record]:
    """Convert the entries to records, with a hash key where the partition key does not decide."""
    if auto:
        keys = [(one.data or b"", one.partition_key or "") for one in entries]
        return [
            Record(data, key, hash_key=random.randrange(RING_SIZE))  # noqa: S311  any shard will do
            for data, key in keys
        ]
    if not _has_hash_keys(entries):
        return [Record(one.data or b"", one.partition_key or "") for one in entries]
    return [
        Record(
            one.data or b"",
            one.partition_key or "",
            hash_key=_parse_hash_key(one.explicit_hash_key),
        )
        for one in entries
    ]


def _parse_hash_key(explicit: str | None) -> int | None:
    if explicit is None:
        return None
    hash_key = int(explicit)
    if hash_key >= RING_SIZE:
        raise invalid(
            "Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. "
            f"Specified value was {explicit}"
        )
    return hash_key


async def _check_ordering(call: AwsCall[PutRecord], stream: Stream, number: str) -> None:
    """Raise AwsError unless the sequence number could have been issued by now.

    The offsets of a shard are in order anyway.
    """
    parsed = read_number(number)
    if parsed is None or parsed.arrival_s > now_ms(call) // limits.SECOND_MS + 1:
        raise invalid(
            f"ExclusiveMinimumSequenceNumber {number} used in PutRecord on stream {stream.name.name} "
            f"under account {await call.account_id()} is invalid."
        )


async def _with_current_shards(
    call: AwsCall[PutRecord] | AwsCall[PutRecords],
    stream: Stream,
    results: Sequence[Result] | Sequence[AppendedRange],
) -> Stream:
    """Return the stream as it was when the records were appended.

    A concurrent reshard may have created shards. Raises OutcomeUnknown if the stream cannot be read now: the records exist, so
    "nothing happened" would be wrong.
    """
    used = {one.shard for one in results if isinstance(one, Appended | AppendedRange)} - {-1}
    if used <= {shard.index for shard in stream.shards}:
        return stream
    try:
        return await call.storage.catalog.fresh_stream(stream.name)
    except (StorageUnavailable, StorageBusy):
        raise OutcomeUnknown from None
