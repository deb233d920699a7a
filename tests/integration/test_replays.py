"""Replays over real stores, sent by the task that Spark runs, without Spark (R1)."""

import asyncio
from collections import Counter

import pytest

from spark_worker.sending import TaskEnd, _ToStream
from storage.domain.batches import Record
from storage.domain.clock import SystemClock
from storage.domain.errors import (
    BookmarkNotFound,
    JobNotFound,
    JobRefused,
    OutcomeUnknown,
    ShardNotFound,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.groups import GroupSpec
from storage.domain.jobs import JobState
from storage.domain.limits import HOUR_MS
from storage.domain.messages import NewMessage, SettleAction, Settlement
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.pacing import Pacing, Rhythm
from storage.domain.queues import QueueSpec, QueueType
from storage.domain.replays import Bound, Order, ShardMode, Target
from storage.domain.rising import Risen
from storage.domain.selections import Condition, Filter, Sample
from storage.domain.streams import RING_SIZE, StreamSpec, Tier
from storage.lifespan import open_storage
from storage.redis.keys import LogAddress
from storage.settings import StorageSettings
from tests.archiving import archive
from tests.replaying import SOURCE, TARGET, WORK, begin, everything, replay, send, wanted

pytestmark = pytest.mark.one_store

KEYS = ["", *(f"key {number}" for number in range(12))]
KEEP = StreamSpec(retention_ms=1_000 * HOUR_MS, shards=2)


@pytest.fixture
async def storage(engines):
    await engines.catalog.put_stream(SOURCE, KEEP)
    await engines.catalog.put_stream(TARGET, KEEP)
    await engines.catalog.put_queue(WORK, QueueSpec())
    return engines


async def fill(storage, count: int, first: int = 0) -> list[Record]:
    """Records whose bodies are JSON, with keys in turn."""
    records = [
        Record(b'{"n": %d, "odd": %s}' % (n, b"true" if n % 2 else b"false"), KEYS[n % len(KEYS)])
        for n in range(first, first + count)
    ]
    for nth in range(0, count, 100):
        await storage.streams.append(SOURCE, records[nth : nth + 100])
    return records


def bodies(found) -> list[bytes]:
    return [one.record.data for one in found]


@pytest.mark.parametrize("order", list(Order))
async def test_a_replay_sends_every_record_once_and_each_key_in_its_order(storage, order):
    records = await fill(storage, 300)

    parts = await replay(storage, wanted(order=order))

    found = await everything(storage)
    assert Counter(bodies(found)) == Counter(one.data for one in records)
    for one in KEYS[1:]:
        sent = [record.data for record in records if record.key == one]
        assert [at.record.data for at in found if at.record.key == one] == sent
    assert sum(part.sent for part in parts) == 300
    assert all(part.done for part in parts)


async def test_a_record_says_where_it_came_from(storage):
    [appended] = await storage.streams.append(
        SOURCE,
        [Record(b"x", "k", (("trace", "", b"t"), (":content_type", "", b"text/plain")), 12_345)],
    )
    [source] = await everything(storage, SOURCE)

    await replay(storage, wanted(), "again")

    [found] = await everything(storage)
    headers = {name: value for name, _, value in found.record.headers}
    assert headers == {
        "trace": b"t",
        ":content_type": b"text/plain",
        ":replay_id": b"again",
        ":source_stream": b"source",
        ":source_shard": b"%d" % appended.shard,
        ":source_offset": b"0",
        ":source_time": b"%d" % source.arrival_ms,
    }
    assert (found.record.key, found.record.event_time_ms) == ("k", 12_345)


async def test_the_window_is_fixed_when_the_replay_begins(storage):
    records = await fill(storage, 10)
    await storage.replays.submit("default", wanted())
    await fill(storage, 5, first=10)
    job, spec, parts = await begin(storage)
    await fill(storage, 5, first=15)

    await send(storage, job, spec)

    assert sum(part.reach.end - part.reach.first for part in parts) == 15
    assert len(await everything(storage)) == 15
    assert len(records) == 10


async def test_a_window_by_time_offsets_and_bookmark(storage, clock):
    await fill(storage, 20)
    group = GroupName("readers")
    await storage.groups.put(group, GroupSpec(stream="source"))
    tips = {state.shard.index: state.next for state in await storage.streams.shards(SOURCE)}
    await storage.groups.save_bookmark(group, "noon", tips)
    clock.advance(ms=HOUR_MS)
    noon = clock.now_ms()
    await fill(storage, 10, first=20)

    windows = {
        "time": wanted(start=Bound(time_ms=noon)),
        "offsets": wanted(start=Bound(offsets=tuple(tips.items()))),
        "bookmark": wanted(start=Bound(bookmark=("readers", "noon"))),
        "before": wanted(end=Bound(time_ms=noon), max_records=7),
        "until": wanted(end=Bound(bookmark=("readers", "noon")), shards=(1,)),
    }
    counts = {}
    for name, request in windows.items():
        parts = await replay(storage, request)
        counts[name] = sum(part.sent for part in parts)

    assert counts == {"time": 10, "offsets": 10, "bookmark": 10, "before": 7, "until": tips[1]}


async def test_a_filter_selects_by_key_header_body_and_lot(storage):
    await fill(storage, 200)
    tagged = Record(b"{}", "other", (("kind", "", b"a"),))
    await storage.streams.append(SOURCE, [tagged])
    odd = Condition(path="/odd", equals=True)

    filters = {
        "keys": Filter(keys=("key 1", "key 2")),
        "headers": Filter(headers={"kind": "a"}),
        "body": Filter(body=(odd,)),
        "all": Filter(keys=("key 1",), body=(odd,)),
        "lot": Filter(sample=Sample(0.5)),
    }
    counts = {}
    for name, filter_ in filters.items():
        parts = await replay(storage, wanted(filter=filter_))
        counts[name] = sum(part.sent for part in parts)
        assert sum(part.read for part in parts) == 201

    in_keys = sum(KEYS[n % len(KEYS)] in ("key 1", "key 2") for n in range(200))
    in_both = sum(KEYS[n % len(KEYS)] == "key 1" and n % 2 for n in range(200))
    assert (counts["keys"], counts["headers"], counts["body"]) == (in_keys, 1, 100)
    assert counts["all"] == in_both
    assert 60 < counts["lot"] < 140


@pytest.mark.parametrize("order", list(Order))
async def test_an_attempt_that_begins_anywhere_again_adds_nothing_twice(
    storage, order, monkeypatch
):
    """R1: the worker is gone between what it sent and what it noted, again and again."""
    monkeypatch.setattr("storage.domain.limits.REPLAY_RANGE_RECORDS", 40)
    monkeypatch.setattr("storage.domain.limits.REPLAY_BATCH_RECORDS", 7)
    records = await fill(storage, 300)
    await storage.replays.submit("default", wanted(order=order), "r")
    job, spec, _ = await begin(storage)
    append = storage.streams.append_rising_together
    calls = 0

    async def dies(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            await append(*args, **kwargs)
            raise StreamNotFound("the worker is gone")
        return await append(*args, **kwargs)

    monkeypatch.setattr(storage.streams, "append_rising_together", dies)
    for _ in range(200):
        ended = await send(storage, job, spec)
        if ended == TaskEnd():
            break
        [shard, *_] = await storage.streams.shards(TARGET)
        if shard.shard.is_open and calls > 20:
            await storage.streams.split(TARGET, 0, RING_SIZE // 4)
    assert ended == TaskEnd()

    found = await everything(storage)
    assert Counter(bodies(found)) == Counter(one.data for one in records)
    for one in KEYS[1:]:
        if order is not Order.NONE:
            sent = [record.data for record in records if record.key == one]
            assert [at.record.data for at in found if at.record.key == one] == sent


async def test_two_attempts_at_once_send_each_record_once(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_BATCH_RECORDS", 9)
    records = await fill(storage, 400)
    await storage.replays.submit("default", wanted())
    job, spec, _ = await begin(storage)

    ends = await asyncio.gather(send(storage, job, spec), send(storage, job, spec))

    assert [*ends] == [TaskEnd(), TaskEnd()]
    assert Counter(bodies(await everything(storage))) == Counter(one.data for one in records)


async def test_what_an_attempt_sends_after_the_replay_is_over_is_refused(storage):
    await fill(storage, 20)
    await storage.replays.submit("default", wanted())
    job, spec, _ = await begin(storage)
    await storage.replays.forget(job, spec)

    ended = await send(storage, job, spec)

    assert not ended.retry
    assert "over" in ended.failure
    assert await everything(storage) == []


async def test_another_attempt_stops_the_one_before(storage, clock):
    await fill(storage, 20)
    await storage.replays.submit("default", wanted())
    job, spec, _ = await begin(storage)
    await storage.jobs.give_back(job.claim)
    again, _, _ = await begin(storage, "other")

    assert await send(storage, job, spec) == TaskEnd(halted=True)
    assert await send(storage, again, spec) == TaskEnd()
    assert len(await everything(storage)) == 20


async def _some_are_there(storage) -> None:
    for _ in range(250):
        if await everything(storage):
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(("word", "state"), [("pause", "paused"), ("cancel", "cancelled")])
async def test_a_task_stops_when_the_owner_wishes_and_has_noted_how_far_it_is(
    storage, word, state, monkeypatch
):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    await fill(storage, 200)
    asked = await storage.replays.submit(
        "default", wanted(pacing=Pacing(records_per_second=100)), "slow"
    )
    job, spec, _ = await begin(storage)
    sending = asyncio.create_task(send(storage, job, spec))
    await _some_are_there(storage)

    told = await getattr(storage.replays, word)("default", "slow")
    ended = await asyncio.wait_for(sending, 5)

    assert told.job.wish == word
    assert ended == TaskEnd(halted=True)
    parts = await storage.replays.parts(asked.job.job_id)
    assert sum(part.sent for part in parts) == len(await everything(storage)) < 200
    assert await storage.jobs.give_back(job.claim) == JobState(state)


async def test_what_a_part_is_sending_when_another_one_halts_counts(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    await fill(storage, 200)
    asked = await storage.replays.submit(
        "default", wanted(pacing=Pacing(records_per_second=1)), "slow"
    )
    job, spec, _ = await begin(storage)
    append, is_there, answered = _ToStream.__call__, asyncio.Event(), asyncio.Event()

    async def answered_late(self, records) -> Risen:
        risen = await append(self, records)
        is_there.set()
        await answered.wait()
        return risen

    monkeypatch.setattr(_ToStream, "__call__", answered_late)
    sending = asyncio.create_task(send(storage, job, spec))
    await asyncio.wait_for(is_there.wait(), 5)
    await storage.replays.cancel("default", "slow")
    await asyncio.sleep(0.3)  # the other part, which waits for its turn, hears that it is to stop
    answered.set()

    assert await asyncio.wait_for(sending, 5) == TaskEnd(halted=True)
    parts = await storage.replays.parts(asked.job.job_id)
    assert sum(part.sent for part in parts) == len(await everything(storage)) > 0


async def test_what_a_part_is_sending_when_another_one_fails_counts(storage, monkeypatch):
    await fill(storage, 20)
    asked = await storage.replays.submit("default", wanted(), "short")
    job, spec, _ = await begin(storage)
    append, is_there, has_failed = _ToStream.__call__, asyncio.Event(), asyncio.Event()
    calls: list[int] = []

    async def one_of_two(self, records) -> Risen:
        calls.append(len(records))
        if len(calls) > 1:
            await is_there.wait()
            has_failed.set()
            raise StreamNotFound("There is no stream 'target'.")
        risen = await append(self, records)
        is_there.set()
        await has_failed.wait()
        await asyncio.sleep(0.1)
        return risen

    monkeypatch.setattr(_ToStream, "__call__", one_of_two)
    ended = await asyncio.wait_for(send(storage, job, spec), 5)

    assert "no stream" in ended.failure
    parts = await storage.replays.parts(asked.job.job_id)
    assert sum(part.sent for part in parts) == len(await everything(storage)) == calls[0]


async def test_a_rate_is_one_for_all_parts(storage):
    await fill(storage, 60)
    loop = asyncio.get_running_loop()
    begun = loop.time()

    await replay(storage, wanted(pacing=Pacing(records_per_second=60)))

    assert 0.6 < loop.time() - begun < 3


async def test_a_speed_gives_the_records_their_rhythm_back(storage, clock):
    for n in range(3):
        await fill(storage, 2, first=2 * n)
        clock.advance(ms=HOUR_MS)
    await storage.replays.submit("default", wanted(pacing=Pacing(speed=3600 * 10)))
    job, spec, parts = await begin(storage)
    oldest = await storage.replays.oldest_arrival("default", spec, parts)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    rhythm = Rhythm(oldest, SystemClock().now_ms(), 3600 * 10)
    assert await send(storage, job, spec, rhythm=rhythm) == TaskEnd()

    assert 0.15 < loop.time() - begun < 60  # and not the two hours that lie between them
    assert len(await everything(storage)) == 6


async def test_a_replay_waits_for_readers_who_are_behind(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    monkeypatch.setattr("storage.domain.limits.REPLAY_BATCH_RECORDS", 10)
    await fill(storage, 100)
    request = wanted(target=Target(queue="work"), pacing=Pacing(lag_records_max=0))
    await storage.queues.send(WORK, [NewMessage(b"before")])
    await storage.replays.submit("default", request)
    job, spec, _ = await begin(storage)
    sending = asyncio.create_task(send(storage, job, spec))
    await asyncio.sleep(0.4)
    assert (await storage.queues.stats(WORK)).ready == 1

    while not sending.done():
        await storage.queues.purge(WORK)
        await asyncio.sleep(0.05)

    assert sending.result() == TaskEnd()


async def test_a_group_of_the_target_that_is_behind_is_waited_for(storage):
    await fill(storage, 5)
    await storage.groups.put(GroupName("slow"), GroupSpec(stream="target"))
    await storage.streams.append(TARGET, [Record(b"unread")] * 3)
    await storage.replays.submit("default", wanted(pacing=Pacing(lag_records_max=2)))
    _, spec, _ = await begin(storage)

    assert await storage.replays.is_lagging("default", spec)
    await storage.groups.delete(GroupName("slow"))
    assert not await storage.replays.is_lagging("default", spec)


@pytest.mark.parametrize("kind", list(QueueType))
async def test_a_queue_gets_each_record_once(storage, kind):
    name = WORK if kind is QueueType.STANDARD else QueueName("line.fifo")
    await storage.catalog.put_queue(name, QueueSpec(type=kind))
    records = await fill(storage, 50)
    request = wanted(target=Target(queue=name.name))

    await replay(storage, request)

    found = []
    while some := await storage.queues.receive(name, messages_max=100):
        found += some
        if kind is QueueType.FIFO:
            acks = [Settlement(one.receipt_handle, SettleAction.ACK) for one in some]
            await storage.queues.settle(name, acks)
    assert Counter(one.body for one in found) == Counter(one.data for one in records)
    assert {name for name, _, _ in found[0].system} >= {":replay_id", ":source_offset"}
    groups = {one.group for one in found}
    assert groups == ({*KEYS} if kind is QueueType.STANDARD else {*KEYS[1:], *_shards(found)})


def _shards(found) -> set[str]:
    return {one.group for one in found if one.group.startswith("shard ")}


async def test_a_target_may_keep_the_shards_of_its_source(storage):
    await fill(storage, 100)

    await replay(storage, wanted(target=Target(stream="target", shard_mode=ShardMode.KEEP)))

    for shard in (0, 1):
        reads = [
            (await storage.streams.read_shards(name, {shard: 0}))[0] for name in (SOURCE, TARGET)
        ]
        assert bodies(reads[0].records) == bodies(reads[1].records)


async def test_by_key_children_go_after_their_parents(storage):
    records = await fill(storage, 100)
    await storage.streams.split(SOURCE, 0, RING_SIZE // 4)
    records += await fill(storage, 100, first=100)
    await storage.streams.merge(SOURCE, 3, 1)
    records += await fill(storage, 100, first=200)

    await replay(storage, wanted(order=Order.KEY))

    found = await everything(storage)
    for one in KEYS[1:]:
        sent = [record.data for record in records if record.key == one]
        assert [at.record.data for at in found if at.record.key == one] == sent


async def test_by_time_one_shard_gets_what_arrived_in_its_order(storage, clock):
    await storage.catalog.put_stream(StreamName("one"), StreamSpec())
    for n in range(30):
        await fill(storage, 1, first=n)
        clock.advance(ms=10)

    await replay(storage, wanted(order=Order.TIME, target=Target(stream="one")))

    found = await everything(storage, StreamName("one"))
    assert bodies(found) == [
        b'{"n": %d, "odd": %s}' % (n, b"true" if n % 2 else b"false") for n in range(30)
    ]


async def test_what_expired_in_the_window_is_told(storage):
    await fill(storage, 100)
    [first, _] = await storage.streams.shards(SOURCE)
    await storage.replays.submit("default", wanted(start=Bound(offsets=((0, 0),))))
    job, spec, _ = await begin(storage)
    await storage.streams.truncate(SOURCE, 0, 10)

    assert await send(storage, job, spec) == TaskEnd()

    parts = await storage.replays.parts(job.job_id)
    assert [part.expired for part in parts] == [10, 0]
    assert sum(part.sent for part in parts) == 90
    assert first.next > 10


async def test_a_plan_counts_what_it_knows_and_says_what_it_guesses(storage):
    await fill(storage, 1_000)
    odd = Filter(body=(Condition(path="/odd", equals=True),))

    whole = await storage.replays.plan("default", wanted())
    guess = await storage.replays.plan("default", wanted(filter=odd))
    exact = await storage.replays.plan("default", wanted(filter=odd), exact=True)
    paced = await storage.replays.plan(
        "default", wanted(pacing=Pacing(records_per_second=10), max_records=50)
    )

    assert (whole.records.count, whole.records.exact, whole.bytes.exact) == (1_000, True, False)
    assert not guess.records.exact
    assert 300 < guess.records.count < 700
    assert (exact.records.count, exact.records.exact, exact.bytes.exact) == (500, True, True)
    assert (paced.records.count, paced.seconds) == (50, 5.0)
    assert len(whole.sample) == 20
    assert await everything(storage) == []


async def test_a_small_window_is_known_whole(storage):
    records = await fill(storage, 30)

    plan = await storage.replays.plan("default", wanted(filter=Filter(keys=("key 1",))))

    meant = [one for one in records if one.key == "key 1"]
    assert (plan.records.count, plan.records.exact) == (len(meant), True)
    assert (plan.bytes.count, plan.bytes.exact) == (sum(one.size_bytes for one in meant), True)


async def test_a_plan_that_would_read_too_much_is_refused(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SCAN_RECORDS_MAX", 10)
    await fill(storage, 30)

    with pytest.raises(ValidationFailed):
        await storage.replays.plan("default", wanted(filter=Filter(keys=("a",))), exact=True)


async def test_asking_again_with_the_same_id_gives_the_same_replay(storage):
    first = await storage.replays.submit("default", wanted(), "one")

    again = await storage.replays.submit("default", wanted(), "one")

    assert again.job.job_id == first.job.job_id
    with pytest.raises(JobRefused):
        await storage.replays.submit("default", wanted(order=Order.TIME), "one")
    assert len(await storage.replays.page("default")) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (wanted(stream="none"), StreamNotFound),
        (wanted(target=Target(stream="none")), StreamNotFound),
        (wanted(target=Target(stream="source")), ValidationFailed),
        (wanted(target=Target()), ValidationFailed),
        (wanted(target=Target(queue="work", shard_mode=ShardMode.KEEP)), ValidationFailed),
        (wanted(shards=(7,)), ShardNotFound),
        (wanted(start=Bound(offsets=((7, 0),))), ShardNotFound),
        (wanted(start=Bound()), ValidationFailed),
        (wanted(start=Bound(bookmark=("readers", "none"))), BookmarkNotFound),
        (wanted(end=Bound(bookmark=("elsewhere", "none"))), ValidationFailed),
        (wanted(pacing=Pacing(speed=0)), ValidationFailed),
        (wanted(filter=Filter(sample=Sample(1.5))), ValidationFailed),
        (wanted(filter=Filter(body=(Condition(path="x", exists=True),))), ValidationFailed),
        (wanted(max_records=0), ValidationFailed),
    ],
)
async def test_a_replay_that_could_not_be_done_is_refused_when_it_is_asked_for(
    storage, request_, error
):
    await storage.groups.put(GroupName("readers"), GroupSpec(stream="source"))
    await storage.groups.put(GroupName("elsewhere"), GroupSpec(stream="target"))

    with pytest.raises(error):
        await storage.replays.submit("default", request_)
    with pytest.raises(error):
        await storage.replays.plan("default", request_)
    assert await storage.replays.page("default") == []


async def test_onto_its_own_stream_only_when_that_is_said(storage):
    await fill(storage, 10)
    onto = wanted(target=Target(stream="source"), allow_same_stream=True)

    parts = await replay(storage, onto)

    assert sum(part.sent for part in parts) == 10
    assert len(await everything(storage, SOURCE)) == 20


async def test_a_target_that_was_made_anew_is_another_one(storage):
    await fill(storage, 10)
    await storage.replays.submit("default", wanted())
    await storage.catalog.delete_stream(TARGET)
    await storage.catalog.put_stream(TARGET, KEEP)

    with pytest.raises(StreamNotFound):
        await begin(storage)


async def test_a_target_that_is_made_anew_in_the_middle_gets_nothing_more(storage):
    await fill(storage, 10)
    await storage.replays.submit("default", wanted())
    job, spec, _ = await begin(storage)
    await storage.catalog.delete_stream(TARGET)
    await storage.catalog.put_stream(TARGET, KEEP)

    ended = await send(storage, job, spec)

    assert (ended.retry, "anew" in ended.failure) == (False, True)
    assert await everything(storage) == []


async def test_a_replay_that_is_cancelled_before_it_began_leaves_nothing(storage):
    await storage.replays.submit("default", wanted(), "gone")

    cancelled = await storage.replays.cancel("default", "gone")

    assert cancelled.job.state is JobState.CANCELLED
    with pytest.raises(JobNotFound):
        await storage.replays.get("default", "none")


async def test_a_sweep_has_targets_forget_what_ended_without_a_worker(
    storage,
):
    await fill(storage, 10)
    await storage.replays.submit("default", wanted(), "r")
    job, spec, _ = await begin(storage)
    await send(storage, job, spec)
    await storage.replays.pause("default", "r")
    await storage.jobs.give_back(job.claim)
    await storage.jobs.cancel(job.job_id)

    assert await storage.replays.tidy() == 1
    assert await storage.replays.tidy() == 0  # once is enough

    risen = [await storage.streams._rising.known(at) for at in await _logs(storage)]
    assert {known for known, _ in risen} == {False}


async def _logs(storage) -> list[LogAddress]:
    stream = await storage.catalog.stream(TARGET)
    return [LogAddress("default", shard.log_id) for shard in stream.shards]


async def test_a_lost_answer_is_asked_for_again(storage, monkeypatch):
    await fill(storage, 100)
    append = storage.streams.append_rising_together
    lost = iter([True, False, True] + [False] * 100)

    async def loses(*args, **kwargs) -> Risen:
        risen: Risen = await append(*args, **kwargs)
        if next(lost):
            raise OutcomeUnknown
        return risen

    monkeypatch.setattr(storage.streams, "append_rising_together", loses)
    parts = await replay(storage, wanted())

    assert len(await everything(storage)) == 100
    assert sum(part.sent + part.duplicates for part in parts) == 100


async def test_a_record_that_the_target_does_not_take_ends_the_replay_with_a_reason(storage):
    await storage.catalog.put_stream(
        TARGET, StreamSpec(shards=2, record_bytes_max=5), if_match=None
    )
    await fill(storage, 10)
    await storage.replays.submit("default", wanted())
    job, spec, _ = await begin(storage)

    ended = await send(storage, job, spec)

    assert not ended.retry
    assert "takes 5" in ended.failure


async def test_what_has_left_the_hot_store_is_replayed_from_the_archive(
    redis_url, database_url, clock, tmp_path
):
    settings = StorageSettings(
        redis_url=redis_url, database_url=database_url, archive_url=f"file://{tmp_path}/archive"
    )
    async with open_storage(settings, clock=clock) as storage:
        cold = StreamSpec(shards=2, retention_ms=1_000 * HOUR_MS, hot_retention_ms=0)
        await storage.catalog.put_stream(SOURCE, cold)
        await storage.catalog.put_stream(TARGET, KEEP)
        records = await fill(storage, 150)
        await archive(storage, settings, SOURCE)
        await storage.streams.trim(SOURCE, 10_000)
        [read] = await storage.streams.read_shards(SOURCE, {0: 0})
        assert read.tier is Tier.ARCHIVE
        records += await fill(storage, 50, first=150)

        parts = await replay(storage, wanted(order=Order.TIME))

        found = await everything(storage)
        assert Counter(bodies(found)) == Counter(one.data for one in records)
        assert sum(part.expired for part in parts) == 0
