"""Splits and merges while records are written and read, and after a crash at every step."""

import asyncio
import itertools
import random
from collections import defaultdict

import pytest
import redis

from consumers.sweeper import finish_reshards
from storage.domain.batches import Record
from storage.domain.errors import (
    IdempotencyKeyReused,
    OutcomeUnknown,
    ShardClosed,
    ShardNotFound,
    StorageBusy,
    StorageUnavailable,
    StreamBusy,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.limits import IDEMPOTENCY_WINDOW_MS
from storage.domain.names import StreamName
from storage.domain.streams import (
    RING_SIZE,
    AppendCondition,
    Appended,
    Producer,
    ReadFrom,
    StreamSpec,
    hash_key,
)
from storage.lifespan import open_storage
from storage.postgres.duties import alone
from storage.redis.keys import STORE_KEY, every_key
from storage.settings import StorageSettings

CLICKS = StreamName("clicks")
WIDE = StreamName("wide")
HALF = RING_SIZE // 2
DAY_MS = 86_400_000
KEYS = [f"key {number}" for number in range(20)]


@pytest.fixture
async def streams(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=DAY_MS))
    await engines.catalog.put_stream(WIDE, StreamSpec(shards=4))
    return engines.streams


async def append(streams, name=CLICKS, data=b"x"):
    appended = await streams.append(name, [Record(data, key) for key in KEYS])
    assert all(isinstance(one, Appended) for one in appended), appended
    return appended


async def read_everything(streams, name) -> list[tuple[int, int, Record]]:
    """(shard, offset, record) of all records, in the order a reader meets them."""
    positions: dict[int, int] = {}
    found = []
    while True:
        read = await streams.read(name, positions, records_max=7)
        found += [
            (shard.shard, one.offset, one.record) for shard in read.shards for one in shard.records
        ]
        if read.positions == positions:
            return found
        positions = read.positions


def by_key(found) -> dict[str, list[bytes]]:
    order: dict[str, list[bytes]] = defaultdict(list)
    for _, _, record in found:
        order[record.key].append(record.data)
    return order


async def test_a_split_shard_takes_no_more_and_its_halves_do(streams):
    await append(streams)

    stream = await streams.split(CLICKS, 0, HALF)

    closed, low, high = stream.shards
    assert closed.closed_at_ms is not None
    assert (low.parents, high.parents) == ((0,), (0,))
    assert (low.first_hash_key, low.last_hash_key) == (0, HALF - 1)
    assert (high.first_hash_key, high.last_hash_key) == (HALF, RING_SIZE - 1)
    assert stream.open_shards == (low, high)
    assert stream.children_of(0) == (low, high)
    appended = await append(streams)
    for key, one in zip(KEYS, appended, strict=True):
        assert one.shard == (1 if hash_key(key) < HALF else 2)


async def test_two_neighbours_become_one(streams):
    await append(streams, WIDE)

    stream = await streams.merge(WIDE, 2, 1)

    merged = stream.shard(4)
    assert merged.parents == (2, 1)
    assert [shard.index for shard in stream.open_shards] == [0, 4, 3]
    assert {one.shard for one in await append(streams, WIDE)} == {0, 4, 3}


async def test_a_stream_reaches_any_number_of_shards(streams):
    for count in (3, 1, 8, 5):
        await append(streams)
        stream = await streams.set_shard_count(CLICKS, count)
        assert len(stream.open_shards) == count
        assert stream.shards_target is None
    await append(streams)

    found = await read_everything(streams, CLICKS)

    assert len(found) == 5 * len(KEYS)


async def test_a_child_opens_in_a_later_second_than_its_parents(streams):
    stream = await streams.set_shard_count(CLICKS, 4)

    for shard in stream.shards:
        for parent in stream.parents_of(shard):
            assert shard.opened_at_ms // 1_000 > parent.opened_at_ms // 1_000


async def test_what_cannot_be_changed_is_refused(streams):
    await streams.split(CLICKS, 0, HALF)

    with pytest.raises(ValidationFailed):
        await streams.split(CLICKS, 0, HALF)
    with pytest.raises(ValidationFailed):
        await streams.split(CLICKS, 1, HALF)
    with pytest.raises(ValidationFailed):
        await streams.merge(WIDE, 0, 2)
    with pytest.raises(ValidationFailed):
        await streams.set_shard_count(CLICKS, 0)
    with pytest.raises(ShardNotFound):
        await streams.merge(CLICKS, 1, 7)
    with pytest.raises(StreamNotFound):
        await streams.split(StreamName("nowhere"), 0, HALF)


async def test_an_append_to_a_closed_shard_is_told_the_way(streams):
    await streams.split(CLICKS, 0, HALF)

    with pytest.raises(ShardClosed) as closed:
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")])

    assert [child["shard"] for child in closed.value.facts["children"]] == [1, 2]
    assert closed.value.facts["children"][1]["first_hash_key"] == str(HALF)


async def test_a_process_with_an_old_definition_is_told_the_way(
    streams, redis_url, database_url, clock, monkeypatch
):
    """It hears of the change only later: its appends take the detour, through two generations."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as other:
        await append(other.streams)
        monkeypatch.setattr(other.catalog._streams.cache, "drop", lambda _: None)  # deaf
        await streams.set_shard_count(CLICKS, 4)
        await streams.merge(CLICKS, 3, 4)
        old = await other.catalog.stream(CLICKS)
        monkeypatch.setattr(other.catalog._streams.cache, "fresh", None)  # nor does it ask

        appended = await append(other.streams)

        assert len(old.shards) == 1
        assert {one.shard for one in appended} == {7, 5, 6}


async def test_a_process_with_an_old_definition_knows_a_child_by_its_number(
    engines, streams, monkeypatch
):
    """A client may bring the way that another process told it."""
    old = await engines.catalog.stream(CLICKS)
    await streams.split(CLICKS, 0, HALF)
    monkeypatch.setattr(engines.catalog._streams.cache, "peek", lambda _: old)

    appended = await streams.append_to_shard(CLICKS, 2, [Record(b"x")])

    read = await streams.read_shard(CLICKS, 2, ReadFrom(offset=0), wait_ms=1)
    await streams.set_fence(CLICKS, 1, "mine")
    assert [(one.shard, one.offset) for one in appended] == [(2, 0)]
    assert len(read.records) == 1
    with pytest.raises(ShardNotFound):
        await streams.append_to_shard(CLICKS, 3, [Record(b"x")])


@pytest.mark.one_server
async def test_an_append_costs_one_script_call_however_the_shards_came_to_be(
    streams, redis_url, clock
):
    def calls(store) -> int:
        return int(store.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])

    await append(streams)
    await streams.split(CLICKS, 0, HALF)
    record = Record(b"x", "k")
    [at] = await streams.append(CLICKS, [record])
    shard = 3 - at.shard
    for sequence in range(2):
        producer = AppendCondition(Producer("p", 0, sequence))
        await streams.append_to_shard(CLICKS, shard, [record], producer)
    clock.advance(ms=IDEMPOTENCY_WINDOW_MS + 60_000)
    counts = []
    with redis.Redis.from_url(redis_url) as store:
        for verb in (
            streams.append(CLICKS, [record]),
            streams.append(CLICKS, [record], idempotency_key="k"),
            streams.append_to_shard(CLICKS, shard, [record]),
            streams.append_to_shard(CLICKS, shard, [record], AppendCondition(Producer("p", 0, 2))),
        ):
            before = calls(store)
            await verb
            counts.append(calls(store) - before)

    assert counts == [1, 1, 1, 1]


async def test_the_end_of_a_closed_shard_is_told_with_its_children(streams):
    await append(streams)
    count = len(KEYS)
    before = await streams.read_shard(CLICKS, 0, ReadFrom(offset=0))
    await streams.split(CLICKS, 0, HALF)

    half = await streams.read_shard(CLICKS, 0, ReadFrom(offset=0), records_max=3)
    rest = await streams.read_shard(CLICKS, 0, ReadFrom(offset=3))
    end = await streams.read_shard(CLICKS, 0, ReadFrom(offset=count), wait_ms=20_000)

    assert (before.ended, before.children) == (False, ())
    assert (half.ended, half.children) == (False, ())
    assert rest.ended
    assert [child.index for child in rest.children] == [1, 2]
    assert end.ended


async def test_a_reader_that_waits_is_woken_by_the_end_of_its_shard(streams):
    await streams.shards(CLICKS)
    waiting = asyncio.create_task(streams.read_shard(CLICKS, 0, ReadFrom(offset=0), wait_ms=20_000))
    await asyncio.sleep(0.1)

    await streams.split(CLICKS, 0, HALF)

    assert (await asyncio.wait_for(waiting, 5)).ended


async def test_a_reader_of_the_stream_that_waits_goes_on_with_the_children(streams):
    waiting = asyncio.create_task(streams.read(CLICKS, {}, wait_ms=20_000))
    await asyncio.sleep(0.1)
    await streams.split(CLICKS, 0, HALF)
    await asyncio.sleep(0.1)

    [one] = await streams.append(CLICKS, [Record(b"late", "k")])

    read = await asyncio.wait_for(waiting, 5)
    assert [
        (shard.shard, [r.record.data for r in shard.records])
        for shard in read.shards
        if shard.records
    ] == [(one.shard, [b"late"])]


async def test_children_are_read_after_all_their_parents(streams):
    await append(streams, WIDE, b"1")
    await streams.merge(WIDE, 0, 1)
    await append(streams, WIDE, b"2")

    found = await read_everything(streams, WIDE)

    assert all(order == [b"1", b"2"] for order in by_key(found).values())
    assert len(found) == 2 * len(KEYS)


async def test_one_reshard_at_a_time(engines, streams):
    stream = await engines.catalog.stream(CLICKS)
    database = streams._resharder._database

    async with alone(database, f"reshard:{stream.stream_id}") as mine:
        assert mine
        with pytest.raises(StreamBusy):
            await streams.split(CLICKS, 0, HALF)
    await streams.split(CLICKS, 0, HALF)


async def test_a_reshard_changes_the_version_and_an_equal_specification_still_fits(
    engines, streams
):
    before = await engines.catalog.stream(CLICKS)

    after = await streams.split(CLICKS, 0, HALF)

    stored, _ = await engines.catalog.put_stream(CLICKS, before.spec)
    assert after.version == before.version + 1
    assert stored == after


STEPS = ["_make_logs", "_close_logs", "close_parents"]


def break_at(monkeypatch, engines, step: str, *, half: bool = False):
    """The process dies before this step, or in the middle of closing two parents."""
    resharder = engines.streams._resharder
    target = engines.catalog if step == "close_parents" else resharder

    async def die(*_):
        if half:
            stream = await engines.catalog.fresh_stream(WIDE)
            await resharder._close_family(stream, (0,))
        raise StorageUnavailable("died")

    monkeypatch.setattr(target, step, die)


@pytest.mark.parametrize("step", STEPS)
async def test_a_sweep_finishes_a_split_that_broke_off(engines, streams, monkeypatch, step):
    await append(streams, data=b"1")
    with monkeypatch.context() as broken:
        break_at(broken, engines, step)
        with pytest.raises(OutcomeUnknown):
            await streams.split(CLICKS, 0, HALF)
    between = await append(streams, data=b"2")

    assert await finish_reshards(engines) == 1

    stream = await engines.catalog.fresh_stream(CLICKS)
    assert [shard.index for shard in stream.open_shards] == [1, 2]
    assert {one.shard for one in between} == ({1, 2} if step == "close_parents" else {0})
    await append(streams, data=b"3")
    found = by_key(await read_everything(streams, CLICKS))
    assert all(found[key] == [b"1", b"2", b"3"] for key in KEYS)
    assert await finish_reshards(engines) == 0


async def test_a_shard_that_is_opening_is_read_by_its_number(engines, streams, monkeypatch):
    """Its parents' logs were closed and their rows were not: a group's member that had finished them was given the
    children, and read nothing of them."""
    with monkeypatch.context() as broken:
        break_at(broken, engines, "close_parents")
        with pytest.raises(OutcomeUnknown):
            await streams.split(CLICKS, 0, HALF)
    sent = await append(streams)

    reads = await streams.read_shards(CLICKS, {1: None, 2: None})

    assert [read.shard for read in reads] == [1, 2]
    assert sum(len(read.records) for read in reads) == len(sent)


async def test_a_merge_that_broke_off_between_its_parents_keeps_the_order(
    engines, streams, monkeypatch
):
    await append(streams, WIDE, b"1")
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs", half=True)
        with pytest.raises(OutcomeUnknown):
            await streams.merge(WIDE, 0, 1)
    between = await append(streams, WIDE, b"2")
    early = await read_everything(streams, WIDE)

    await finish_reshards(engines)

    await append(streams, WIDE, b"3")
    found = by_key(await read_everything(streams, WIDE))
    assert {one.shard for one in between} == {1, 2, 3, 4}
    assert all(order in ([b"1", b"2"], [b"1"]) for order in by_key(early).values())
    assert all(found[key] == [b"1", b"2", b"3"] for key in KEYS)


async def test_a_retry_of_a_call_that_half_failed_in_a_half_done_merge_adds_what_is_missing(
    engines, streams, monkeypatch
):
    """One parent was closed and its records went to the child; the other's append failed, and then it was
    closed as well. The child knew the key with half of the call's records, and refused the whole."""
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs", half=True)
        with pytest.raises(OutcomeUnknown):
            await streams.merge(WIDE, 0, 1)
    records = [Record(b"%d" % number, key) for number, key in enumerate(KEYS)]
    put = streams._appending._append_part

    async def fail_for_one(stream, shard, part):
        if shard.index == 1:
            raise StorageBusy
        return await put(stream, shard, part)

    with monkeypatch.context() as busy:
        busy.setattr(streams._appending, "_append_part", fail_for_one)
        first = await streams.append(WIDE, records, idempotency_key="k")
    await finish_reshards(engines)

    second = await streams.append(WIDE, records, idempotency_key="k")
    third = await streams.append(WIDE, records, idempotency_key="k")
    with pytest.raises(IdempotencyKeyReused):
        raise (await streams.append(WIDE, records[::-1], idempotency_key="k"))[0]

    assert {type(one) for one in first} == {Appended, StorageBusy}
    for was, now, then in zip(first, second, third, strict=True):
        assert now.duplicate is isinstance(was, Appended)
        assert (then.shard, then.offset, then.duplicate) == (now.shard, now.offset, True)
    found = [record.data for _, _, record in await read_everything(streams, WIDE)]
    assert sorted(found) == sorted(record.data for record in records)


async def test_the_next_reshard_finishes_what_the_last_one_left(engines, streams, monkeypatch):
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs")
        with pytest.raises(OutcomeUnknown):
            await streams.split(CLICKS, 0, HALF)

    stream = await streams.merge(CLICKS, 1, 2)

    assert [shard.index for shard in stream.open_shards] == [3]


async def test_a_sweep_goes_on_to_the_number_that_was_asked_for(engines, streams, monkeypatch):
    with monkeypatch.context() as broken:
        break_at(broken, engines, "close_parents")
        with pytest.raises(OutcomeUnknown):
            await streams.set_shard_count(CLICKS, 5)

    await finish_reshards(engines)

    stream = await engines.catalog.fresh_stream(CLICKS)
    assert len(stream.open_shards) == 5
    assert stream.shards_target is None


async def test_a_stream_that_is_deleted_in_the_middle_leaves_nothing(engines, streams, monkeypatch):
    with monkeypatch.context() as broken:
        break_at(broken, engines, "_close_logs")
        with pytest.raises(OutcomeUnknown):
            await streams.split(CLICKS, 0, HALF)

    await engines.catalog.delete_stream(CLICKS)

    assert await finish_reshards(engines) == 0
    logs = await engines.catalog.deleted_logs(0)
    assert len(logs) == 3
    with pytest.raises(StreamNotFound):
        await streams.append(CLICKS, [Record(b"x")])


@pytest.mark.parametrize("copied", [False, True])
async def test_a_store_that_forgot_that_a_shard_is_closed_is_told_again(streams, redis_url, copied):
    """It lost everything, or came back as the copy that was taken before the split."""
    await append(streams)
    stream = await streams._catalog.stream(CLICKS)
    keys = every_key("default", stream.shards[0].log_id)
    with redis.Redis.from_url(redis_url) as store:
        copy = {key: dump for key in keys if (dump := store.dump(key))}
        await streams.split(CLICKS, 0, HALF)
        store.delete(*keys)
        store.delete(STORE_KEY)
        for key, dump in copy.items() if copied else ():
            store.restore(key, 0, dump)
    streams._keeper._epoch._run_id = ""
    await streams._keeper._epoch.check()

    first = await streams.read_shard(CLICKS, 0, ReadFrom(offset=0 if copied else 10_000))
    rest = await streams.read_shard(CLICKS, 0, ReadFrom(offset=first.next_offset))

    assert len(first.records) == (len(KEYS) if copied else 0)
    assert (rest.records, rest.ended) == ([], True)
    with pytest.raises(ShardClosed):
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")])
    assert {one.shard for one in await append(streams)} == {1, 2}


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


async def test_nothing_is_lost_and_no_key_loses_its_order_under_load(
    streams, redis_url, database_url
):
    """Two processes write and one reads while the shards are split, merged and counted anew."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    written: dict[str, int] = dict.fromkeys(KEYS, 0)
    found: dict[str, list[int]] = {key: [] for key in KEYS}
    done = asyncio.Event()

    async def write(engine, keys) -> None:
        while not done.is_set():
            records = [Record(b"%d" % written[key], key) for key in keys]
            answers = await engine.append(CLICKS, records)
            assert all(isinstance(one, Appended) for one in answers), answers
            for key in keys:
                written[key] += 1

    async def read(engine) -> None:
        positions: dict[int, int] = {}
        while True:
            last = done.is_set()
            got = await engine.read(CLICKS, positions, records_max=500, wait_ms=50)
            for shard in got.shards:
                for one in shard.records:
                    found[one.record.key].append(int(one.record.data))
            if last and not any(shard.records for shard in got.shards):
                return
            positions = got.positions

    async def reshard(engine) -> None:
        chance = random.Random(7)
        for count in (2, 7, 3, 1, 4):
            stream = await engine.set_shard_count(CLICKS, count)
            shard = chance.choice(stream.open_shards)
            middle = (shard.first_hash_key + shard.last_hash_key) // 2
            stream = await engine.split(CLICKS, shard.index, middle)
            low, high = stream.open_shards[:2]
            await engine.merge(CLICKS, low.index, high.index)
        done.set()

    async with (
        open_storage(settings) as one,
        open_storage(settings) as two,
        asyncio.TaskGroup() as group,
    ):
        for nth, engine in enumerate([one, two] * 2):
            group.create_task(write(engine.streams, KEYS[nth::4]))
        group.create_task(read(two.streams))
        group.create_task(reshard(one.streams))

    assert min(written.values()) > 5
    for key in KEYS:
        assert found[key] == list(range(written[key])), key


async def reshard_for_a_while(streams, done: asyncio.Event) -> None:
    for count in (3, 1, 6, 2, 5, 1, 4):
        stream = await streams.set_shard_count(CLICKS, count)
        for low, high in itertools.pairwise(stream.open_shards[:4]):
            stream = await streams.merge(CLICKS, low.index, high.index)
            merged = stream.shards[-1]
            middle = (merged.first_hash_key + merged.last_hash_key) // 2
            stream = await streams.split(CLICKS, merged.index, middle)
            break
        await asyncio.sleep(0.02)
    done.set()


async def test_retries_add_nothing_while_shards_are_split_and_merged(
    streams, redis_url, database_url
):
    """Every call is made twice, by two processes; a call may find its shards half merged."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    done = asyncio.Event()
    written: list[bytes] = []

    async def write(writer: int, first, second) -> None:
        chance = random.Random(writer)
        for number in itertools.count():
            if done.is_set():
                return
            keys = chance.sample(KEYS, 5)
            records = [Record(f"{writer} {number} {key}".encode(), key) for key in keys]
            name = f"call {writer} {number}"
            once = await first.append(CLICKS, records, idempotency_key=name)
            assert all(isinstance(one, Appended) for one in once), once
            assert not any(one.duplicate for one in once)
            if chance.random() < 0.5:
                await asyncio.sleep(chance.random() / 20)
            again = await second.append(CLICKS, records, idempotency_key=name)
            assert again == [Appended(one.shard, one.offset, True) for one in once]
            written.extend(record.data for record in records)

    async with (
        open_storage(settings) as one,
        open_storage(settings) as two,
        asyncio.TaskGroup() as group,
    ):
        for writer in range(6):
            pair = (one, two) if writer % 2 else (two, one)
            group.create_task(write(writer, pair[0].streams, pair[1].streams))
        group.create_task(reshard_for_a_while(one.streams, done))

    found = [record.data for _, _, record in await read_everything(streams, CLICKS)]
    assert sorted(found) == sorted(written)
    assert len(written) > 100


async def test_a_producer_follows_its_shard_while_it_is_split_and_merged(
    streams, redis_url, database_url
):
    """It retries every batch at the address it used, goes on where that leads, and numbers on."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    done = asyncio.Event()
    written: list[bytes] = []

    async def produce(name: str, engine) -> None:
        shard, sequence = 0, 0
        for number in itertools.count():
            if done.is_set():
                return
            batch = [Record(f"{name} {number} {nth}".encode()) for nth in range(3)]
            condition = AppendCondition(Producer(name, 0, sequence))
            once = None
            while once is None:
                try:
                    once = await engine.append_to_shard(CLICKS, shard, batch, condition)
                except ShardClosed as closed:
                    shard = closed.facts["children"][0]["shard"]
            again = await engine.append_to_shard(CLICKS, shard, batch, condition)
            assert again == [Appended(one.shard, one.offset, True) for one in once]
            sequence += len(batch)
            written.extend(record.data for record in batch)

    async with (
        open_storage(settings) as one,
        open_storage(settings) as two,
        asyncio.TaskGroup() as group,
    ):
        for nth, engine in enumerate([one, two] * 2):
            group.create_task(produce(f"p{nth}", engine.streams))
        group.create_task(reshard_for_a_while(one.streams, done))

    found = [record.data for _, _, record in await read_everything(streams, CLICKS)]
    assert sorted(found) == sorted(written)
