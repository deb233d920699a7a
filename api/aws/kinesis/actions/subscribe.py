"""SubscribeToShard: pushes records in a streaming response that lasts five minutes.

initial-response ▶ an event immediately ▶ an event for each read, at least every 5 s ▶ the end:
after 5 minutes · at the end of a closed shard · with an exception, when another call takes over
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

import msgspec
from msgspec import field

from api.aws.kinesis.call_helpers import now_ms, process_state, shard_id, shard_of
from api.aws.kinesis.errors import RESOURCE_IN_USE, dry_run, refuse, translate
from api.aws.kinesis.records.positions import offset_at, read_on
from api.aws.kinesis.records.record import record_page
from api.aws.kinesis.records.sequence_numbers import number_before, sequence_number
from api.aws.kinesis.resources.consumer_views import consumer_named
from api.aws.kinesis.shapes import (
    ChildShard,
    ConsumerArnIn,
    KinesisRecordOut,
    ShardIdIn,
    StartingPosition,
    StreamIdIn,
)
from api.aws.kinesis.shards import child_shard
from api.aws.kinesis.state.subscriptions import LIFETIME_S, ShardSubscription
from api.aws.kinesis.state.throttles import READ_BYTES
from api.aws.protocol.codecs.event_stream import EventStream
from api.aws.protocol.constraints import REQUIRED
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError
from storage.domain.streams.stream import Shard, ShardRead, Stream

operations = Operations()

BEAT_S = 4.5  # without records: clients may time out after five seconds without an event
EVENT_BYTES_MAX = 1 * limits.MIB  # of data; a larger record is sent alone


class SubscribeToShard(Input):
    """A consumer, the shard to subscribe to, and the start position."""

    consumer_arn: Annotated[ConsumerArnIn, REQUIRED] = field(name="ConsumerARN", default=None)
    shard_id: Annotated[ShardIdIn, REQUIRED] = None
    starting_position: Annotated[StartingPosition | None, REQUIRED] = None
    stream_id: StreamIdIn = None
    dry_run: bool | None = None


class SubscribeToShardEvent(OperationOutput):
    """Records, and the sequence number after which to continue, also if there were none.

    The last event of a closed shard has no records and no such number, and names the children instead: that is how clients
    detect the end of the shard.
    """

    records: list[KinesisRecordOut]
    millis_behind_latest: int
    continuation_sequence_number: str | None = None
    child_shards: list[ChildShard] | None = None


@operations.add("SubscribeToShard", SubscribeToShard, Action.STREAM_READ)
async def subscribe_to_shard(call: AwsCall[SubscribeToShard]) -> EventStream:
    """Push a shard's records to a registered consumer."""
    request = call.request
    where = request.starting_position or StartingPosition()
    stream, consumer = await consumer_named(call, str(request.consumer_arn))
    shard = await shard_of(call, stream, str(request.shard_id))
    offset = await offset_at(
        call,
        stream=stream,
        shard=shard,
        kind=str(where.type),
        number=where.sequence_number,
        timestamp=where.timestamp,
    )
    if request.dry_run:
        raise dry_run()
    key = (stream.stream_id, consumer.name, shard.index)
    subscription = process_state(call).subscriptions.open(key, asyncio.get_running_loop().time())
    return EventStream("SubscribeToShardEvent", _events(call, stream, shard, offset, subscription))


async def _events(
    call: AwsCall[SubscribeToShard],
    stream: Stream,
    shard: Shard,
    offset: int,
    subscription: ShardSubscription,
) -> AsyncGenerator[msgspec.Struct]:
    clock = asyncio.get_running_loop().time
    ends_s, arrival_ms, wait_s = clock() + LIFETIME_S, 0, 0.0
    try:
        while clock() < ends_s:
            shard_read = await _read_until_superseded(
                call,
                stream=stream,
                shard=shard,
                offset=offset,
                wait_s=wait_s,
                subscription=subscription,
            )
            converted = record_page(stream, shard, shard_read.records)
            offset = (
                shard_read.next_offset if converted.next_offset is None else converted.next_offset
            )
            if shard_read.records:
                arrival_ms = shard_read.records[-1].arrival_ms
            ended = shard_read.ended and converted.next_offset is None
            call.metrics.read(len(converted.records))
            if converted.records or not ended:
                number = _continuation(shard, offset, arrival_ms or now_ms(call))
                yield SubscribeToShardEvent(converted.records, shard_read.behind_ms, number)
            if ended:
                children = [child_shard(child) for child in shard_read.children]
                yield SubscribeToShardEvent([], shard_read.behind_ms, None, children)
                return
            if process_state(call).shard_limits.limited and converted.size_bytes:
                await asyncio.sleep(converted.size_bytes / READ_BYTES)
            wait_s = min(BEAT_S, max(0.0, ends_s - clock()))
    except MillstreamError as error:
        raise translate(error) from None
    finally:
        subscription.ended = True  # stays in the registry until SETTLED_S has passed


async def _read_until_superseded(
    call: AwsCall[SubscribeToShard],
    *,
    stream: Stream,
    shard: Shard,
    offset: int,
    wait_s: float,
    subscription: ShardSubscription,
) -> ShardRead:
    """Wait for records.

    Raises AwsError: ResourceInUse if another call has taken over the subscription.
    """
    reading = asyncio.create_task(
        read_on(
            call.storage.record_reader,
            stream,
            shard.index,
            offset,
            bytes_max=EVENT_BYTES_MAX,
            wait_ms=round(wait_s * limits.SECOND_MS),
        )
    )
    takeover = asyncio.create_task(subscription.superseded.wait())
    try:
        await asyncio.wait([reading, takeover], return_when=asyncio.FIRST_COMPLETED)
        if takeover.done():
            refuse(
                RESOURCE_IN_USE,
                f"The subscription to {shard_id(shard.index)} was taken over or its consumer was deleted.",
            )
        return reading.result()
    finally:
        for task in (reading, takeover):
            task.cancel()
        await asyncio.gather(reading, takeover, return_exceptions=True)


def _continuation(shard: Shard, offset: int, arrival_ms: int) -> str:
    """Return the sequence number after which to continue: the record before `offset`."""
    if offset == 0:
        return number_before(shard.opened_at_ms, shard.index)
    return sequence_number(shard.opened_at_ms, shard.index, offset - 1, arrival_ms)
