"""A crash at every step of a reshard, and its completion."""

import pytest
import redis

from consumers.maintenance.tasks.reshards import finish_reshards
from storage.domain.errors import (
    IdempotencyKeyReused,
    OutcomeUnknown,
    ShardClosed,
    StorageBusy,
    StorageUnavailable,
    StreamNotFound,
)
from storage.domain.limits import RESERVATION_OFFSETS_MIN
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import Appended, ReadFrom
from storage.redis.keys import STORE_KEY, every_key
from tests.integration.streams.records import (
    CLICKS,
    HALF,
    KEYS,
    WIDE,
    append,
    by_key,
    read_everything,
)

STEPS = ["_make_logs", "_close_logs", "close_parents"]


def break_at(monkeypatch, engines, step: str, *, half: bool = False):
    """Crash before this step, or between closing two parents."""
    resharder = engines.streams.resharder
    target = engines.catalog if step == "close_parents" else resharder

    async def die(*_):
        if half:
            stream = await engines.catalog.fresh_stream(WIDE)
            await resharder._close_family(stream, (0,))
        raise StorageUnavailable("died")

    monkeypatch.setattr(target, step, die)


@pytest.mark.parametrize("step", STEPS)
async def test_maintenance_finishes_interrupted_split(engines, streams, reader, monkeypatch, step):
    await append(streams, data=b"1")
    with monkeypatch.context() as broken:
        break_at(broken, engines, step)
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.split(CLICKS, 0, HALF)
    between = await append(streams, data=b"2")

    assert await finish_reshards.work(engines) == 1

    stream = await engines.catalog.fresh_stream(CLICKS)
    assert [shard.index for shard in stream.open_shards] == [1, 2]
    assert {one.shard for one in between} == ({1, 2} if step == "close_parents" else {0})
    await append(streams, data=b"3")
    found = by_key(await read_everything(reader, CLICKS))
    assert all(found[key] == [b"1", b"2", b"3"] for key in KEYS)
    assert await finish_reshards.work(engines) == 0


async def test_opening_shard_is_readable_by_index(engines, streams, reader, monkeypatch):
    """Members got the children of a closed parent, and read nothing of them.

    The logs of the parents were closed and their rows were not.
    """
    with monkeypatch.context() as broken:
        break_at(broken, engines, "close_parents")
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.split(CLICKS, 0, HALF)
    sent = await append(streams)

    reads = await reader.read_shards(CLICKS, {1: None, 2: None})

    assert [read.shard for read in reads] == [1, 2]
    assert sum(len(read.records) for read in reads) == len(sent)


async def test_merge_interrupted_between_parents_keeps_order(engines, streams, reader, monkeypatch):
    await append(streams, WIDE, b"1")
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs", half=True)
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.merge(WIDE, 0, 1)
    between = await append(streams, WIDE, b"2")
    early = await read_everything(reader, WIDE)

    await finish_reshards.work(engines)

    await append(streams, WIDE, b"3")
    found = by_key(await read_everything(reader, WIDE))
    assert {one.shard for one in between} == {1, 2, 3, 4}
    assert all(order in ([b"1", b"2"], [b"1"]) for order in by_key(early).values())
    assert all(found[key] == [b"1", b"2", b"3"] for key in KEYS)


async def test_retry_of_partial_append_in_interrupted_merge_adds_rest(
    engines, streams, reader, monkeypatch
):
    """The child rejected the whole retry, because it knew the key with half of the records.

    One parent was closed and its records went to the child; the append to the other failed, and then
    it was closed as well.
    """
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs", half=True)
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.merge(WIDE, 0, 1)
    records = [Record(b"%d" % number, key) for number, key in enumerate(KEYS)]
    put = streams._appender._append_part

    async def fail_for_one(stream, shard, part):
        if shard.index == 1:
            raise StorageBusy
        return await put(stream, shard, part)

    with monkeypatch.context() as busy:
        busy.setattr(streams._appender, "_append_part", fail_for_one)
        first = await streams.append(WIDE, records, idempotency_key="k")
    await finish_reshards.work(engines)

    second = await streams.append(WIDE, records, idempotency_key="k")
    third = await streams.append(WIDE, records, idempotency_key="k")
    with pytest.raises(IdempotencyKeyReused):
        raise (await streams.append(WIDE, records[::-1], idempotency_key="k"))[0]

    assert {type(one) for one in first} == {Appended, StorageBusy}
    for was, now, then in zip(first, second, third, strict=True):
        assert now.duplicate is isinstance(was, Appended)
        assert (then.shard, then.offset, then.duplicate) == (now.shard, now.offset, True)
    data = [record.data for _, _, record in await read_everything(reader, WIDE)]
    assert sorted(data) == sorted(record.data for record in records)


async def test_next_reshard_finishes_interrupted_one(engines, streams, monkeypatch):
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs")
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.split(CLICKS, 0, HALF)

    stream = await streams.resharder.merge(CLICKS, 1, 2)

    assert [shard.index for shard in stream.open_shards] == [3]


async def test_maintenance_continues_to_target_shard_count(engines, streams, monkeypatch):
    with monkeypatch.context() as broken:
        break_at(broken, engines, "close_parents")
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.set_shard_count(CLICKS, 5)

    await finish_reshards.work(engines)

    stream = await engines.catalog.fresh_stream(CLICKS)
    assert len(stream.open_shards) == 5
    assert stream.shards_target is None


async def test_stream_deleted_during_reshard_leaves_nothing(engines, streams, monkeypatch):
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs")
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.split(CLICKS, 0, HALF)

    await engines.catalog.delete_stream(CLICKS)

    assert await finish_reshards.work(engines) == 0
    logs = await engines.catalog.deleted_logs(0)
    assert len(logs) == 3
    with pytest.raises(StreamNotFound):
        await streams.append(CLICKS, [Record(b"x")])


@pytest.mark.parametrize("copied", [False, True])
async def test_closed_shard_is_closed_again_after_store_loss(streams, reader, redis_url, copied):
    """The store lost everything, or is a copy from before the split."""
    await append(streams)
    stream = await streams._catalog.stream(CLICKS)
    keys = every_key("default", stream.shards[0].log_id)
    with redis.Redis.from_url(redis_url) as store:
        copy = {key: dump for key in keys if (dump := store.dump(key))}
        await streams.resharder.split(CLICKS, 0, HALF)
        store.delete(*keys)
        store.delete(STORE_KEY)
        for key, dump in copy.items() if copied else ():
            store.restore(key, 0, dump)
    streams._provisioner._epoch._run_id = ""
    await streams._provisioner._epoch.check()

    first = await reader.read_shard(
        CLICKS, 0, ReadFrom(offset=0 if copied else RESERVATION_OFFSETS_MIN)
    )
    rest = await reader.read_shard(CLICKS, 0, ReadFrom(offset=first.next_offset))

    assert len(first.records) == (len(KEYS) if copied else 0)
    assert (rest.records, rest.ended) == ([], True)
    with pytest.raises(ShardClosed):
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")])
    assert {one.shard for one in await append(streams)} == {1, 2}
