"""Replays over real stores, sent by the task that Spark runs, without Spark (R1)."""

from collections import Counter

import pytest

from spark_worker.jobs.replay_sender import TaskEnd
from storage.bootstrap import open_storage
from storage.domain.errors import (
    BookmarkNotFound,
    JobNotFound,
    JobRefused,
    ShardNotFound,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.groups.group import GroupSpec
from storage.domain.jobs import JobState
from storage.domain.limits import HOUR_MS
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.message import SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.replays.pacing import Pacing
from storage.domain.replays.replay import Bound, Order, ShardMode, Target
from storage.domain.streams.record_filter import Condition, Filter, Sample
from storage.domain.streams.stream import RING_SIZE, StreamSpec, Tier
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream
from tests.replay_steps import (
    KEEP,
    KEYS,
    SOURCE,
    TARGET,
    WORK,
    bodies,
    create_source_and_targets,
    everything,
    fill,
    replay,
    replay_request,
    send_parts_in_waves,
    start_replay,
)

pytestmark = pytest.mark.one_store


@pytest.fixture
async def storage(engines):
    await create_source_and_targets(engines)
    return engines


@pytest.mark.parametrize("order", list(Order))
async def test_replay_sends_every_record_once_in_key_order(storage, order):
    records = await fill(storage, 300)

    parts = await replay(storage, replay_request(order=order))

    actual_records = await everything(storage)
    assert Counter(bodies(actual_records)) == Counter(one.data for one in records)
    for one in KEYS[1:]:
        sent = [record.data for record in records if record.key == one]
        assert [at.record.data for at in actual_records if at.record.key == one] == sent
    assert sum(part.sent for part in parts) == 300
    assert all(part.done for part in parts)


async def test_replayed_record_names_its_source(storage):
    [appended] = await storage.streams.append(
        SOURCE,
        [Record(b"x", "k", (("trace", "", b"t"), (":content_type", "", b"text/plain")), 12_345)],
    )
    [source] = await everything(storage, SOURCE)

    await replay(storage, replay_request(), "again")

    [record] = await everything(storage)
    headers = {name: value for name, _, value in record.record.headers}
    assert headers == {
        "trace": b"t",
        ":content_type": b"text/plain",
        ":replay_id": b"again",
        ":source_stream": b"source",
        ":source_shard": b"%d" % appended.shard,
        ":source_offset": b"0",
        ":source_time": b"%d" % source.arrival_ms,
    }
    assert (record.record.key, record.record.event_time_ms) == ("k", 12_345)


async def test_window_is_fixed_when_replay_starts(storage):
    records = await fill(storage, 10)
    await storage.replays.submit("default", replay_request())
    await fill(storage, 5, first=10)
    job, spec, parts = await start_replay(storage)
    await fill(storage, 5, first=15)

    await send_parts_in_waves(storage, job, spec)

    assert sum(part.reach.end - part.reach.first for part in parts) == 15
    assert len(await everything(storage)) == 15
    assert len(records) == 10


async def test_window_accepts_time_offsets_and_bookmark(storage, clock):
    await fill(storage, 20)
    group = GroupName("readers")
    await storage.groups.put(group, GroupSpec(stream="source"))
    tips = {state.shard.index: state.next for state in await storage.record_reader.shards(SOURCE)}
    await storage.groups.positions.save_bookmark(group, "noon", tips)
    clock.advance(ms=HOUR_MS)
    noon = clock.now_ms()
    await fill(storage, 10, first=20)

    windows = {
        "time": replay_request(start=Bound(time_ms=noon)),
        "offsets": replay_request(start=Bound(offsets=tuple(tips.items()))),
        "bookmark": replay_request(start=Bound(bookmark=("readers", "noon"))),
        "before": replay_request(end=Bound(time_ms=noon), max_records=7),
        "until": replay_request(end=Bound(bookmark=("readers", "noon")), shards=(1,)),
    }
    counts = {}
    for name, request in windows.items():
        parts = await replay(storage, request)
        counts[name] = sum(part.sent for part in parts)

    assert counts == {"time": 10, "offsets": 10, "bookmark": 10, "before": 7, "until": tips[1]}


async def test_filter_selects_by_key_header_body_and_sample(storage):
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
        parts = await replay(storage, replay_request(filter=filter_))
        counts[name] = sum(part.sent for part in parts)
        assert sum(part.read for part in parts) == 201

    in_keys = sum(KEYS[n % len(KEYS)] in ("key 1", "key 2") for n in range(200))
    in_both = sum(KEYS[n % len(KEYS)] == "key 1" and n % 2 for n in range(200))
    assert (counts["keys"], counts["headers"], counts["body"]) == (in_keys, 1, 100)
    assert counts["all"] == in_both
    assert 60 < counts["lot"] < 140


@pytest.mark.parametrize("kind", list(QueueType))
async def test_queue_target_gets_each_record_once(storage, kind):
    name = WORK if kind is QueueType.STANDARD else QueueName("line.fifo")
    await storage.catalog.put_queue(name, QueueSpec(type=kind))
    records = await fill(storage, 50)
    request = replay_request(target=Target(queue=name.name))

    await replay(storage, request)

    actual_messages = []
    while messages := await storage.queues.receive(name, messages_max=100):
        actual_messages += messages
        if kind is QueueType.FIFO:
            acks = [Settlement(one.receipt_handle, SettleAction.ACK) for one in messages]
            await storage.queues.settle(name, acks)
    assert Counter(one.body for one in actual_messages) == Counter(one.data for one in records)
    assert {name for name, _, _ in actual_messages[0].system} >= {":replay_id", ":source_offset"}
    groups = {one.group for one in actual_messages}
    assert groups == (
        {*KEYS} if kind is QueueType.STANDARD else {*KEYS[1:], *_shards(actual_messages)}
    )


def _shards(found) -> set[str]:
    return {result.group for result in found if result.group.startswith("shard ")}


async def test_target_can_keep_shards_of_source(storage):
    await fill(storage, 100)

    await replay(storage, replay_request(target=Target(stream="target", shard_mode=ShardMode.KEEP)))

    for shard in (0, 1):
        reads = [
            (await storage.record_reader.read_shards(name, {shard: 0}))[0]
            for name in (SOURCE, TARGET)
        ]
        assert bodies(reads[0].records) == bodies(reads[1].records)


async def test_children_follow_their_parents_in_key_order(storage):
    records = await fill(storage, 100)
    await storage.streams.resharder.split(SOURCE, 0, RING_SIZE // 4)
    records += await fill(storage, 100, first=100)
    await storage.streams.resharder.merge(SOURCE, 3, 1)
    records += await fill(storage, 100, first=200)

    await replay(storage, replay_request(order=Order.KEY))

    actual_records = await everything(storage)
    for key in KEYS[1:]:
        sent = [record.data for record in records if record.key == key]
        assert [at.record.data for at in actual_records if at.record.key == key] == sent


async def test_time_order_fills_one_shard_by_arrival(storage, clock):
    await storage.catalog.put_stream(StreamName("one"), StreamSpec())
    for n in range(30):
        await fill(storage, 1, first=n)
        clock.advance(ms=10)

    await replay(storage, replay_request(order=Order.TIME, target=Target(stream="one")))

    records = await everything(storage, StreamName("one"))
    assert bodies(records) == [
        b'{"n": %d, "odd": %s}' % (n, b"true" if n % 2 else b"false") for n in range(30)
    ]


async def test_expired_records_of_window_are_reported(storage):
    await fill(storage, 100)
    [first, _] = await storage.record_reader.shards(SOURCE)
    await storage.replays.submit("default", replay_request(start=Bound(offsets=((0, 0),))))
    job, spec, _ = await start_replay(storage)
    await storage.streams.truncate(SOURCE, 0, 10)

    assert await send_parts_in_waves(storage, job, spec) == TaskEnd()

    parts = await storage.replays.parts(job.job_id)
    assert [part.expired for part in parts] == [10, 0]
    assert sum(part.sent for part in parts) == 90
    assert first.next > 10


async def test_plan_distinguishes_counts_from_estimates(storage):
    await fill(storage, 1_000)
    odd = Filter(body=(Condition(path="/odd", equals=True),))

    whole = await storage.replays.plan("default", replay_request())
    guess = await storage.replays.plan("default", replay_request(filter=odd))
    exact = await storage.replays.plan("default", replay_request(filter=odd), exact=True)
    paced = await storage.replays.plan(
        "default", replay_request(pacing=Pacing(records_per_second=10), max_records=50)
    )

    assert (whole.records.count, whole.records.exact, whole.bytes.exact) == (1_000, True, False)
    assert not guess.records.exact
    assert 300 < guess.records.count < 700
    assert (exact.records.count, exact.records.exact, exact.bytes.exact) == (500, True, True)
    assert (paced.records.count, paced.seconds) == (50, 5.0)
    assert len(whole.sample) == 20
    assert await everything(storage) == []


async def test_plan_of_small_window_is_exact(storage):
    records = await fill(storage, 30)

    plan = await storage.replays.plan("default", replay_request(filter=Filter(keys=("key 1",))))

    meant = [one for one in records if one.key == "key 1"]
    assert (plan.records.count, plan.records.exact) == (len(meant), True)
    assert (plan.bytes.count, plan.bytes.exact) == (sum(one.size_bytes for one in meant), True)


async def test_plan_that_reads_too_much_is_rejected(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SCAN_RECORDS_MAX", 10)
    await fill(storage, 30)

    with pytest.raises(ValidationFailed):
        await storage.replays.plan(
            "default", replay_request(filter=Filter(keys=("a",))), exact=True
        )


async def test_submit_with_same_id_returns_same_replay(storage):
    first = await storage.replays.submit("default", replay_request(), "one")

    again = await storage.replays.submit("default", replay_request(), "one")

    assert again.job.job_id == first.job.job_id
    with pytest.raises(JobRefused):
        await storage.replays.submit("default", replay_request(order=Order.TIME), "one")
    assert len(await storage.replays.page("default")) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (replay_request(stream="none"), StreamNotFound),
        (replay_request(target=Target(stream="none")), StreamNotFound),
        (replay_request(target=Target(stream="source")), ValidationFailed),
        (replay_request(target=Target()), ValidationFailed),
        (replay_request(target=Target(queue="work", shard_mode=ShardMode.KEEP)), ValidationFailed),
        (replay_request(shards=(7,)), ShardNotFound),
        (replay_request(start=Bound(offsets=((7, 0),))), ShardNotFound),
        (replay_request(start=Bound()), ValidationFailed),
        (replay_request(start=Bound(offsets=((0, 1),))), ValidationFailed),
        (replay_request(start=Bound(time_ms=2), end=Bound(time_ms=1)), ValidationFailed),
        (replay_request(start=Bound(bookmark=("readers", "none"))), BookmarkNotFound),
        (replay_request(end=Bound(bookmark=("elsewhere", "none"))), ValidationFailed),
        (replay_request(pacing=Pacing(speed=0)), ValidationFailed),
        (replay_request(filter=Filter(sample=Sample(1.5))), ValidationFailed),
        (replay_request(filter=Filter(body=(Condition(path="x", exists=True),))), ValidationFailed),
        (replay_request(max_records=0), ValidationFailed),
    ],
)
async def test_impossible_replay_is_rejected_at_submission(storage, request_, error):
    await storage.groups.put(GroupName("readers"), GroupSpec(stream="source"))
    await storage.groups.put(GroupName("elsewhere"), GroupSpec(stream="target"))

    with pytest.raises(error):
        await storage.replays.submit("default", request_)
    with pytest.raises(error):
        await storage.replays.plan("default", request_)
    assert await storage.replays.page("default") == []


async def test_replay_onto_source_stream_requires_opt_in(storage):
    await fill(storage, 10)
    onto = replay_request(target=Target(stream="source"), allow_same_stream=True)

    parts = await replay(storage, onto)

    assert sum(part.sent for part in parts) == 10
    assert len(await everything(storage, SOURCE)) == 20


async def test_recreated_target_is_not_found(storage):
    await fill(storage, 10)
    await storage.replays.submit("default", replay_request())
    await storage.catalog.delete_stream(TARGET)
    await storage.catalog.put_stream(TARGET, KEEP)

    with pytest.raises(StreamNotFound):
        await start_replay(storage)


async def test_cancelled_queued_replay_leaves_nothing(storage):
    await storage.replays.submit("default", replay_request(), "gone")

    cancelled = await storage.replays.cancel("default", "gone")

    assert cancelled.job.state is JobState.CANCELLED
    with pytest.raises(JobNotFound):
        await storage.replays.get("default", "none")


async def test_maintenance_forgets_producers_of_ended_replays(
    storage,
):
    await fill(storage, 10)
    await storage.replays.submit("default", replay_request(), "r")
    job, spec, _ = await start_replay(storage)
    await send_parts_in_waves(storage, job, spec)
    await storage.replays.pause("default", "r")
    await storage.jobs.release(job.claim)
    await storage.jobs.cancel(job.job_id)

    assert await storage.replays.sweep() == 1
    assert await storage.replays.sweep() == 0  # once is enough

    states = [
        await storage.streams._idempotent_appender.writer_state(at) for at in await _logs(storage)
    ]
    assert {known for known, _ in states} == {False}


async def _logs(storage) -> list[LogAddress]:
    stream = await storage.catalog.stream(TARGET)
    return [LogAddress("default", shard.log_id) for shard in stream.shards]


async def test_records_missing_from_hot_store_come_from_archive(
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
        await archive_stream(storage, settings, SOURCE)
        await storage.streams.trim(SOURCE, 10_000)
        [read] = await storage.record_reader.read_shards(SOURCE, {0: 0})
        assert read.tier is Tier.ARCHIVE
        records += await fill(storage, 50, first=150)

        parts = await replay(storage, replay_request(order=Order.TIME))

        actual_records = await everything(storage)
        assert Counter(bodies(actual_records)) == Counter(record.data for record in records)
        assert sum(part.expired for part in parts) == 0
