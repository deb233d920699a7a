"""GetShardIterator and GetRecords."""

from typing import Annotated, Any

from msgspec import field

from api.aws.kinesis.call_helpers import (
    kept,
    now_ms,
    secret,
    shard_id,
    shard_of,
    stream_named,
    stream_of,
)
from api.aws.kinesis.errors import EXPIRED_ITERATOR, dry_run, invalid, no_such_stream, refuse
from api.aws.kinesis.records.positions import offset_at, read_on
from api.aws.kinesis.records.record import told_records
from api.aws.kinesis.shapes import (
    ChildShard,
    PageIn,
    PositionIn,
    RecordOut,
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
from api.aws.protocol.service import Call, Operations
from api.aws.protocol.shapes import Input, Output
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


class GetShardIteratorResult(Output):
    """The position, for five minutes."""

    shard_iterator: str


class GetRecords(Input):
    """A position, and how many records to read from it."""

    shard_iterator: Annotated[str | None, bounds(1, 512), REQUIRED] = None
    limit: PageIn = None
    stream_arn: StreamArnIn = field(name="StreamARN", default=None)
    stream_id: StreamIdIn = None
    dry_run: bool | None = None


class GetRecordsResult(Output):
    """Records, and where to go on; nowhere at the end of a closed shard."""

    records: list[RecordOut]
    millis_behind_latest: int
    next_shard_iterator: str | None = None
    child_shards: list[ChildShard] | None = None


@operations.add("GetShardIterator", GetShardIterator, Action.STREAM_READ)
async def get_shard_iterator(call: Call[GetShardIterator]) -> GetShardIteratorResult:
    """Give a position, without reading."""
    asked = call.asked
    stream = await stream_of(call, asked.stream_name, asked.stream_arn)
    shard = await shard_of(call, stream, str(asked.shard_id))
    now_s = now_ms(call) / 1_000
    kept(call).pace.iterator((stream.stream_id, shard.index), shard_id(shard.index), now_s)
    offset = await offset_at(
        call,
        stream,
        shard,
        str(asked.shard_iterator_type),
        asked.starting_sequence_number,
        asked.timestamp,
    )
    if asked.dry_run:
        raise dry_run()
    return GetShardIteratorResult(await _iterator(call, stream, shard, offset))


async def _iterator(call: Call[Any], stream: Stream, shard: Shard, offset: int) -> str:
    name = stream.name
    position = ShardIterator(
        name.namespace, name.name, stream.stream_id, shard.index, offset, now_ms(call)
    )
    return seal(position, await secret(call))


@operations.add("GetRecords", GetRecords, Action.STREAM_READ)
async def get_records(call: Call[GetRecords]) -> GetRecordsResult:
    """Read from a position. The same call again gives the same records."""
    asked = call.asked
    position = await _position(call, str(asked.shard_iterator))
    stream, shard = await _place(call, position)
    key, now_s = (stream.stream_id, shard.index), now_ms(call) / 1_000
    pace = kept(call).pace
    pace.read(key, f"shard {shard_id(shard.index)} in stream {stream.name.name}", now_s)
    if asked.dry_run:
        raise dry_run()
    limit = asked.limit or limits.READ_RECORDS_MAX
    found = await read_on(
        call.storage.streams, stream.name, shard.index, position.offset, records_max=limit
    )
    return await _told(call, stream, shard, found)


async def _told(
    call: Call[GetRecords], stream: Stream, shard: Shard, found: ShardRead
) -> GetRecordsResult:
    told = told_records(stream, shard, found.records)
    now = now_ms(call)
    kept(call).pace.was_read((stream.stream_id, shard.index), told.size_bytes, now / 1_000)
    call.metrics.read(len(told.records))
    if found.ended and told.next_offset is None:
        children = [child_shard(child) for child in found.children]
        return GetRecordsResult(told.records, 0, None, children)
    if told.next_offset is None:
        behind_ms, next_offset = found.behind_ms, found.next_offset
    else:  # more was read than fits: the first that waits stands for the age of what waits
        last = next(one for one in reversed(found.records) if one.offset < told.next_offset)
        behind_ms, next_offset = max(0, now - last.arrival_ms), told.next_offset
    iterator = await _iterator(call, stream, shard, next_offset)
    return GetRecordsResult(told.records, behind_ms, iterator)


async def _position(call: Call[GetRecords], text: str) -> ShardIterator:
    """What the iterator says; also one in quotes, as shells hand on what the command line printed.

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


async def _place(call: Call[GetRecords], position: ShardIterator) -> tuple[Stream, Shard]:
    """The shard, if it is still that of the same stream. Raises AwsError: ResourceNotFound."""
    asked = call.asked
    if asked.stream_arn is None:
        stream = await stream_named(call, position.stream)
    else:
        stream = await stream_of(call, position.stream, asked.stream_arn)
    if stream.stream_id != position.stream_id:  # the iterator's stream is gone, this one is another
        raise no_such_stream(position.stream, await call.account_id())
    return stream, await shard_of(call, stream, str(position.shard))
