"""GetShardIterator and GetRecords."""

from typing import Annotated, Any

from msgspec import field

from api.aws.kinesis.call_helpers import (
    now_ms,
    process_state,
    secret,
    shard_id,
    shard_of,
    stream_named,
    stream_of,
)
from api.aws.kinesis.errors import EXPIRED_ITERATOR, dry_run, invalid, no_such_stream, refuse
from api.aws.kinesis.records.positions import offset_at, read_on
from api.aws.kinesis.records.record import record_page
from api.aws.kinesis.shapes import (
    ChildShard,
    KinesisRecordOut,
    PageIn,
    PositionIn,
    SecondsIn,
    SequenceNumberIn,
    ShardIdIn,
    StreamArnIn,
    StreamIdentity,
    StreamIdIn,
)
from api.aws.kinesis.shards import child_shard
from api.aws.kinesis.timestamps import java_date
from api.aws.kinesis.tokens import LIFETIME_MS, NotOurs, ShardIterator, seal, unseal
from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import Shard, ShardRead, Stream

operations = Operations()


class GetShardIterator(StreamIdentity):
    """A position in a shard."""

    shard_id: Annotated[ShardIdIn, REQUIRED] = None
    shard_iterator_type: PositionIn = None
    starting_sequence_number: SequenceNumberIn = None
    timestamp: SecondsIn = None
    dry_run: bool | None = None


class GetShardIteratorResult(OperationOutput):
    """The position, for five minutes."""

    shard_iterator: str


class GetRecords(Input):
    """A position, and the maximum number of records to read from it."""

    shard_iterator: Annotated[str | None, bounds(1, 512), REQUIRED] = None
    limit: PageIn = None
    stream_arn: StreamArnIn = field(name="StreamARN", default=None)
    stream_id: StreamIdIn = None
    dry_run: bool | None = None


class GetRecordsResult(OperationOutput):
    """Records and the next iterator, which is missing at the end of a closed shard."""

    records: list[KinesisRecordOut]
    millis_behind_latest: int
    next_shard_iterator: str | None = None
    child_shards: list[ChildShard] | None = None


@operations.add("GetShardIterator", GetShardIterator, Action.STREAM_READ)
async def get_shard_iterator(call: AwsCall[GetShardIterator]) -> GetShardIteratorResult:
    """Return an iterator for a position, without reading."""
    request = call.request
    stream = await stream_of(call, request.stream_name, request.stream_arn)
    shard = await shard_of(call, stream, str(request.shard_id))
    now_s = now_ms(call) / 1_000
    process_state(call).shard_limits.iterator(
        (stream.stream_id, shard.index), shard_id(shard.index), now_s
    )
    offset = await offset_at(
        call,
        stream=stream,
        shard=shard,
        kind=str(request.shard_iterator_type),
        number=request.starting_sequence_number,
        timestamp=request.timestamp,
    )
    if request.dry_run:
        raise dry_run()
    return GetShardIteratorResult(await _iterator(call, stream, shard, offset))


async def _iterator(call: AwsCall[Any], stream: Stream, shard: Shard, offset: int) -> str:
    name = stream.name
    position = ShardIterator(
        name.namespace, name.name, stream.stream_id, shard.index, offset, now_ms(call)
    )
    return seal(position, await secret(call))


@operations.add("GetRecords", GetRecords, Action.STREAM_READ)
async def get_records(call: AwsCall[GetRecords]) -> GetRecordsResult:
    """Read from a position. Repeating the call returns the same records."""
    request = call.request
    position = await _position(call, str(request.shard_iterator))
    stream, shard = await _shard_of_iterator(call, position)
    key, now_s = (stream.stream_id, shard.index), now_ms(call) / 1_000
    shard_limits = process_state(call).shard_limits
    shard_limits.read(key, f"shard {shard_id(shard.index)} in stream {stream.name.name}", now_s)
    if request.dry_run:
        raise dry_run()
    limit = request.limit or limits.READ_RECORDS_MAX
    shard_read = await read_on(
        call.storage.record_reader, stream, shard.index, position.offset, records_max=limit
    )
    return await _records_result(call, stream, shard, shard_read)


async def _records_result(
    call: AwsCall[GetRecords], stream: Stream, shard: Shard, shard_read: ShardRead
) -> GetRecordsResult:
    converted = record_page(stream, shard, shard_read.records)
    now = now_ms(call)
    process_state(call).shard_limits.was_read(
        (stream.stream_id, shard.index), converted.size_bytes, now / 1_000
    )
    call.metrics.read(len(converted.records))
    if shard_read.ended and converted.next_offset is None:
        children = [child_shard(child) for child in shard_read.children]
        return GetRecordsResult(converted.records, 0, None, children)
    if converted.next_offset is None:
        behind_ms, next_offset = shard_read.behind_ms, shard_read.next_offset
    else:  # not everything fits: the last record returned gives the age
        last = next(
            one for one in reversed(shard_read.records) if one.offset < converted.next_offset
        )
        behind_ms, next_offset = max(0, now - last.arrival_ms), converted.next_offset
    iterator = await _iterator(call, stream, shard, next_offset)
    return GetRecordsResult(converted.records, behind_ms, iterator)


async def _position(call: AwsCall[GetRecords], text: str) -> ShardIterator:
    """Decode a shard iterator, also in quotes, as shells pass on the command line's output.

    Raises AwsError: InvalidArgument, ExpiredIterator.
    """
    try:
        position = unseal(text.strip('"'), ShardIterator, await secret(call))
    except NotOurs:
        raise invalid("Invalid ShardIterator.") from None
    if position.namespace != call.principal.namespace:
        raise invalid("Invalid ShardIterator.")
    now = now_ms(call)
    if now > position.issued_ms + LIFETIME_MS:
        refuse(
            EXPIRED_ITERATOR,
            f"Iterator expired. The iterator was created at time {java_date(position.issued_ms)} "
            f"while right now it is {java_date(now)} which is further in the future than the "
            f"tolerated delay of {LIFETIME_MS} milliseconds.",
        )
    return position


async def _shard_of_iterator(
    call: AwsCall[GetRecords], position: ShardIterator
) -> tuple[Stream, Shard]:
    """Return the iterator's shard, unless the stream was recreated.

    Raises AwsError: ResourceNotFound.
    """
    request = call.request
    if request.stream_arn is None:
        stream = await stream_named(call, position.stream)
    else:
        stream = await stream_of(call, position.stream, request.stream_arn)
    if stream.stream_id != position.stream_id:  # the iterator's stream was deleted, and recreated
        raise no_such_stream(position.stream, await call.account_id())
    return stream, await shard_of(call, stream, str(position.shard))
