"""Start positions of readers: the five kinds, as offsets.

TRIM_HORIZON is offset 0, since a reader of a trimmed offset is moved to the oldest record.
"""

from functools import partial
from typing import Any, cast

from api.aws.kinesis.call_helpers import now_ms, shard_id
from api.aws.kinesis.errors import invalid
from api.aws.kinesis.records.sequence_numbers import OFFSET_MAX, SECOND_MS, read_number
from api.aws.kinesis.timestamps import moment_ms
from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall
from storage.domain import limits
from storage.domain.errors import OffsetOutOfRange
from storage.domain.streams.stream import ReadFrom, Shard, ShardRead, Stream
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource
from storage.streams.seek import offset_since

_OF_NUMBERS = ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")


async def offset_at(
    call: AwsCall[Any],
    *,
    stream: Stream,
    shard: Shard,
    kind: str,
    number: str | None,
    timestamp: float | None,
) -> int:
    """Return the offset of a position. Raises AwsError: InvalidArgument."""
    _check_parameters(kind, number, timestamp)
    reader = call.storage.record_reader
    match kind:
        case "TRIM_HORIZON":
            return 0
        case "LATEST":
            return await _tip(reader, stream, shard)
        case "AT_TIMESTAMP":
            return await _first_since(call, stream, shard, cast(float, timestamp))
        case _:
            behind = kind == "AFTER_SEQUENCE_NUMBER"
            return await _at_number(call, stream, shard, cast(str, number), behind)


def _check_parameters(kind: str, number: str | None, timestamp: float | None) -> None:
    if (kind in _OF_NUMBERS) is not (number is not None):
        raise invalid(_parameter_message(kind, "startingSequenceNumber", number is None))
    if (kind == "AT_TIMESTAMP") is not (timestamp is not None):
        raise invalid(_parameter_message(kind, "timestampInMillis", timestamp is None))


def _parameter_message(kind: str, parameter: str, missing: bool) -> str:
    if missing:
        return (
            f"Must either specify {parameter} parameter for iterator of type {kind}. "
            f"Current request has no {parameter} parameter."
        )
    return (
        f"Request for {kind} iterator must not specify {parameter} parameter. "
        f"Current request has a {parameter} parameter."
    )


async def _tip(reader: RecordReader, stream: Stream, shard: Shard) -> int:
    read = await reader.read_shard(
        stream.name, shard.index, ReadFrom(tail=0), stream_id=stream.stream_id
    )
    return read.tip


async def _first_since(call: AwsCall[Any], stream: Stream, shard: Shard, timestamp: float) -> int:
    at_ms, now = moment_ms(timestamp), now_ms(call)
    if at_ms > now:
        raise invalid(
            "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
            f"timestampInMillis: {at_ms}, currentTimestampInMillis: {now}"
        )
    return await offset_since(
        call.storage.record_reader, stream.name, shard.index, at_ms, stream.stream_id
    )


async def _at_number(
    call: AwsCall[Any], stream: Stream, shard: Shard, number: str, behind: bool
) -> int:
    parsed = read_number(number)
    opened_s = shard.opened_at_ms // SECOND_MS
    if parsed is None:
        raise await _foreign(call, stream, shard, number)
    if parsed.shard != shard.index:
        raise invalid(
            f"Invalid StartingSequenceNumber. It encodes {shard_id(parsed.shard)}, "
            f"while it was used in a call to a shard with {shard_id(shard.index)}"
        )
    if parsed.offset == OFFSET_MAX and parsed.opened_s == opened_s - 1:
        return 0  # the position before the first record: `number_before`
    if parsed.offset == 0 and parsed.opened_s == opened_s and parsed.arrival_s < opened_s:
        return 0  # where the shard starts: `starting_number`
    tip = await _tip(call.storage.record_reader, stream, shard)
    if parsed.offset == OFFSET_MAX and not shard.is_open:
        return tip
    if parsed.opened_s != opened_s or parsed.offset > tip:
        raise await _foreign(call, stream, shard, number)
    return min(tip, parsed.offset + behind)


async def _foreign(call: AwsCall[Any], stream: Stream, shard: Shard, number: str) -> AwsError:
    return invalid(
        f"StartingSequenceNumber {number} used in GetShardIterator on shard {shard_id(shard.index)} "
        f"in stream {stream.name.name} under account {await call.account_id()} "
        "is invalid because it did not come from this stream."
    )


async def read_on(
    reader: RecordReader,
    stream: Stream,
    shard: int,
    offset: int,
    *,
    records_max: int = limits.READ_RECORDS_MAX,
    bytes_max: int = limits.READ_BYTES_MAX,
    wait_ms: int = 0,
) -> ShardRead:
    """Read from an offset; at a trimmed one, from the oldest record, as at Amazon."""
    source = RecordSource(reader, stream.name, stream.stream_id)
    read = partial(source.read, shard, records_max=records_max, bytes_max=bytes_max)
    try:
        return await read(offset, wait_ms=wait_ms)
    except OffsetOutOfRange as beyond:  # offsets were lost with a store, and will be assigned again
        return await read(int(beyond.facts["next_offset"]), wait_ms=wait_ms)
