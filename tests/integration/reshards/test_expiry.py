"""Closed shards go with their records, children after their parents."""

import pytest

from storage.domain.errors import ShardNotFound
from storage.domain.streams import ReadFrom
from tests.integration.reshards.records import CLICKS, DAY_MS, HALF, KEYS, append, read_everything


async def test_a_closed_shard_expires_with_its_records(engines, streams, clock):
    await append(streams)
    await streams.split(CLICKS, 0, HALF)
    early = await streams.expire_shards(CLICKS)
    clock.advance(ms=DAY_MS)
    await append(streams)
    full = await streams.expire_shards(CLICKS)
    await streams.trim(CLICKS, 1_000)

    gone = await streams.expire_shards(CLICKS)

    assert (early, full, gone) == (0, 0, 1)
    assert [state.shard.index for state in await streams.shards(CLICKS)] == [1, 2]
    with pytest.raises(ShardNotFound):
        await streams.read_shard(CLICKS, 0, ReadFrom(offset=0))
    assert len(await read_everything(streams, CLICKS)) == len(KEYS)
    assert await engines.catalog.deleted_logs(0) != []
    lost = await streams.read(CLICKS, {0: 5})
    assert [(one.shard, one.gap.reason) for one in lost.shards if one.gap] == [(0, "expired")]
    clock.advance(ms=600_000)
    await engines.upkeep.bury_deleted()
    assert await engines.catalog.deleted_logs(0) == []
    assert (await streams.split(CLICKS, 1, HALF // 2)).shards[-1].index == 4


async def test_a_child_stays_until_its_parents_have_gone(streams, clock):
    await append(streams)
    await streams.split(CLICKS, 0, HALF)
    await streams.merge(CLICKS, 1, 2)
    clock.advance(ms=DAY_MS + 5_000)

    held = await streams.expire_shards(CLICKS)
    await streams.trim(CLICKS, 1_000)
    gone = await streams.expire_shards(CLICKS)

    assert (held, gone) == (0, 3)
