"""Closed shards expire with their records, children after their parents."""

import pytest

from storage.domain import limits
from storage.domain.errors import ShardNotFound
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import AppendCondition, Producer, ReadFrom, StreamSpec
from tests.integration.streams.records import CLICKS, DAY_MS, HALF, KEYS, append, read_everything


async def test_closed_shard_expires_with_its_records(engines, streams, reader, clock):
    await append(streams)
    await streams.resharder.split(CLICKS, 0, HALF)
    early = await streams.expire_shards(CLICKS)
    clock.advance(ms=DAY_MS)
    await append(streams)
    full = await streams.expire_shards(CLICKS)
    await streams.trim(CLICKS, 1_000)

    gone = await streams.expire_shards(CLICKS)

    assert (early, full, gone) == (0, 0, 1)
    assert [state.shard.index for state in await reader.shards(CLICKS)] == [1, 2]
    with pytest.raises(ShardNotFound):
        await reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
    assert len(await read_everything(reader, CLICKS)) == len(KEYS)
    assert await engines.catalog.deleted_logs(0) != []
    lost = await reader.read(CLICKS, {0: 5})
    assert [(shard.shard, shard.gap.reason) for shard in lost.shards if shard.gap] == [
        (0, "expired")
    ]
    clock.advance(ms=600_000)
    await engines.maintenance.tombstone_deleted()
    assert await engines.catalog.deleted_logs(0) == []
    assert (await streams.resharder.split(CLICKS, 1, HALF // 2)).shards[-1].index == 4


async def test_child_stays_until_its_parents_expire(streams, clock):
    await append(streams)
    await streams.resharder.split(CLICKS, 0, HALF)
    await streams.resharder.merge(CLICKS, 1, 2)
    clock.advance(ms=DAY_MS + 5_000)

    held = await streams.expire_shards(CLICKS)
    await streams.trim(CLICKS, 1_000)
    gone = await streams.expire_shards(CLICKS)

    assert (held, gone) == (0, 3)


async def test_idempotency_key_is_honored_when_merged_parent_expired(
    engines, streams, reader, clock
):
    brief = StreamName("brief")
    await engines.catalog.put_stream(brief, StreamSpec(shards=3, retention_ms=60_000))
    producer = AppendCondition(Producer("p", 0, 0))
    await streams.append_to_shard(brief, 1, [Record(b"x")], producer)  # so it is kept for a day
    await streams.resharder.merge(brief, 0, 1)
    await streams.resharder.merge(brief, 3, 2)
    clock.advance(ms=limits.IDEMPOTENCY_LOOKUP_MS - 1)
    await streams.trim(brief, 1_000)
    early = await streams.expire_shards(brief)
    clock.advance(ms=1)
    gone = await streams.expire_shards(brief)
    clock.advance(ms=-1_000)  # the clock of another process

    first = await append(streams, brief, idempotency_key="k")
    again = await append(streams, brief, idempotency_key="k")

    assert (early, gone) == (0, 1)
    assert [state.shard.index for state in await reader.shards(brief)] == [1, 2, 3, 4]
    assert {one.shard for one in first} == {4}
    assert [one.duplicate for one in again] == [True] * len(KEYS)
