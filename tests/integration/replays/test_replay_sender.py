"""Sending tasks of a replay: interruptions, halts, pacing, changing targets (R1)."""

import asyncio
from collections import Counter

import pytest

from spark_worker.jobs.replay_sender import TaskEnd
from storage.domain.clock import SystemClock
from storage.domain.errors import (
    OutcomeUnknown,
    StreamNotFound,
)
from storage.domain.groups.group import GroupSpec
from storage.domain.jobs import JobState
from storage.domain.limits import HOUR_MS
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName
from storage.domain.queues.message import NewMessage, SettleAction
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.replays.pacing import Pacing, ReplaySpeed
from storage.domain.replays.replay import Order, Target
from storage.domain.streams.idempotence import AppendCounts
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.conditions import PATIENCE_S, eventually
from tests.queue_operations import settle
from tests.replay_steps import (
    KEEP,
    KEYS,
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
async def test_restarted_attempt_adds_nothing_twice(storage, order, monkeypatch):
    """R1: the worker repeatedly crashes between sending and saving its progress."""
    monkeypatch.setattr("storage.domain.limits.REPLAY_RANGE_RECORDS", 40)
    monkeypatch.setattr("storage.domain.limits.REPLAY_BATCH_RECORDS", 7)
    records = await fill(storage, 300)
    await storage.replays.submit("default", replay_request(order=order), "r")
    job, spec, _ = await start_replay(storage)
    append = storage.streams.append_idempotent_columns
    calls = 0

    async def dies(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            await append(*args, **kwargs)
            raise StreamNotFound("the worker is gone")
        return await append(*args, **kwargs)

    monkeypatch.setattr(storage.streams, "append_idempotent_columns", dies)
    for _ in range(200):
        ended = await send_parts_in_waves(storage, job, spec)
        if ended == TaskEnd():
            break
        [shard, *_] = await storage.record_reader.shards(TARGET)
        if shard.shard.is_open and calls > 20:
            await storage.streams.resharder.split(TARGET, 0, RING_SIZE // 4)
    assert ended == TaskEnd()

    actual_records = await everything(storage)
    assert Counter(bodies(actual_records)) == Counter(one.data for one in records)
    for one in KEYS[1:]:
        if order is not Order.NONE:
            sent = [record.data for record in records if record.key == one]
            assert [at.record.data for at in actual_records if at.record.key == one] == sent


async def test_concurrent_attempts_send_each_record_once(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_BATCH_RECORDS", 9)
    records = await fill(storage, 400)
    await storage.replays.submit("default", replay_request())
    job, spec, _ = await start_replay(storage)

    ends = await asyncio.gather(
        send_parts_in_waves(storage, job, spec), send_parts_in_waves(storage, job, spec)
    )

    assert [*ends] == [TaskEnd(), TaskEnd()]
    assert Counter(bodies(await everything(storage))) == Counter(record.data for record in records)


async def test_sends_after_end_of_replay_are_rejected(storage):
    await fill(storage, 20)
    await storage.replays.submit("default", replay_request())
    job, spec, _ = await start_replay(storage)
    await storage.replays.retire_producers(job, spec)

    ended = await send_parts_in_waves(storage, job, spec)

    assert not ended.retry
    assert "retired" in ended.failure
    assert await everything(storage) == []


async def test_new_attempt_stops_previous_one(storage, clock):
    await fill(storage, 20)
    await storage.replays.submit("default", replay_request())
    job, spec, _ = await start_replay(storage)
    await storage.jobs.release(job.claim)
    again, _, _ = await start_replay(storage, "other")

    assert await send_parts_in_waves(storage, job, spec) == TaskEnd(halted=True)
    assert await send_parts_in_waves(storage, again, spec) == TaskEnd()
    assert len(await everything(storage)) == 20


async def _some_are_there(storage) -> None:
    for _ in range(250):
        if await everything(storage):
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(("word", "state"), [("pause", "paused"), ("cancel", "cancelled")])
async def test_task_stops_on_request_and_saves_progress(storage, word, state, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    await fill(storage, 200)
    asked = await storage.replays.submit(
        "default", replay_request(pacing=Pacing(records_per_second=100)), "slow"
    )
    job, spec, _ = await start_replay(storage)
    sending = asyncio.create_task(send_parts_in_waves(storage, job, spec))
    await _some_are_there(storage)

    told = await getattr(storage.replays, word)("default", "slow")
    ended = await asyncio.wait_for(sending, PATIENCE_S)

    assert told.job.requested_state == word
    assert ended == TaskEnd(halted=True)
    parts = await storage.replays.parts(asked.job.job_id)
    assert sum(part.sent for part in parts) == len(await everything(storage)) < 200
    assert await storage.jobs.release(job.claim) == JobState(state)


async def test_sends_in_progress_count_when_another_part_halts(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    await fill(storage, 200)
    asked = await storage.replays.submit(
        "default", replay_request(pacing=Pacing(records_per_second=1)), "slow"
    )
    job, spec, _ = await start_replay(storage)
    append = storage.streams.append_idempotent_columns
    is_there, event = asyncio.Event(), asyncio.Event()

    async def answered_late(*args, **kwargs) -> AppendCounts:
        counts: AppendCounts = await append(*args, **kwargs)
        is_there.set()
        await event.wait()
        return counts

    monkeypatch.setattr(storage.streams, "append_idempotent_columns", answered_late)
    sending = asyncio.create_task(send_parts_in_waves(storage, job, spec))
    await asyncio.wait_for(is_there.wait(), PATIENCE_S)
    await storage.replays.cancel("default", "slow")
    await asyncio.sleep(0.3)  # the other part, which waits for its turn, is told to stop
    event.set()

    assert await asyncio.wait_for(sending, PATIENCE_S) == TaskEnd(halted=True)
    parts = await storage.replays.parts(asked.job.job_id)
    assert sum(part.sent for part in parts) == len(await everything(storage)) > 0


async def test_sends_in_progress_count_when_another_part_fails(storage, monkeypatch):
    await fill(storage, 20)
    asked = await storage.replays.submit("default", replay_request(), "short")
    job, spec, _ = await start_replay(storage)
    append = storage.streams.append_idempotent_columns
    is_there, has_failed = asyncio.Event(), asyncio.Event()
    calls: list[int] = []

    async def one_of_two(name, batch, columns, **kwargs) -> AppendCounts:
        calls.append(len(columns))
        if len(calls) > 1:
            await is_there.wait()
            has_failed.set()
            raise StreamNotFound("Stream 'target' does not exist.")
        counts: AppendCounts = await append(name, batch, columns, **kwargs)
        is_there.set()
        await has_failed.wait()
        await asyncio.sleep(0.1)
        return counts

    monkeypatch.setattr(storage.streams, "append_idempotent_columns", one_of_two)
    ended = await asyncio.wait_for(send_parts_in_waves(storage, job, spec), PATIENCE_S)

    assert "does not exist" in ended.failure
    parts = await storage.replays.parts(asked.job.job_id)
    assert sum(part.sent for part in parts) == len(await everything(storage)) == calls[0]


async def test_rate_is_shared_by_all_parts(storage):
    await fill(storage, 60)
    loop = asyncio.get_running_loop()
    begun = loop.time()

    await replay(storage, replay_request(pacing=Pacing(records_per_second=60)))

    assert 0.6 < loop.time() - begun < 3


async def test_speed_preserves_relative_timing(storage, clock):
    for n in range(3):
        await fill(storage, 2, first=2 * n)
        clock.advance(ms=HOUR_MS)
    await storage.replays.submit("default", replay_request(pacing=Pacing(speed=3600 * 10)))
    job, spec, parts = await start_replay(storage)
    oldest = await storage.replays.oldest_arrival("default", spec, parts)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    rhythm = ReplaySpeed(oldest, SystemClock().now_ms(), 3600 * 10)
    assert await send_parts_in_waves(storage, job, spec, rhythm=rhythm) == TaskEnd()

    assert 0.15 < loop.time() - begun < 60  # and not the two hours between them
    assert len(await everything(storage)) == 6


async def test_replay_waits_for_lagging_queue_consumers(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    monkeypatch.setattr("storage.domain.limits.REPLAY_BATCH_RECORDS", 10)
    await fill(storage, 100)
    request = replay_request(target=Target(queue="work"), pacing=Pacing(lag_records_max=0))
    await storage.queues.send(WORK, [NewMessage(b"before")])
    await storage.replays.submit("default", request)
    job, spec, _ = await start_replay(storage)
    sending = asyncio.create_task(send_parts_in_waves(storage, job, spec))
    await asyncio.sleep(0.4)
    assert (await storage.queues.stats(WORK)).ready == 1

    while not sending.done():
        await storage.queues.purge(WORK)
        await asyncio.sleep(0.05)

    assert sending.result() == TaskEnd()


@pytest.mark.parametrize(
    ("type_", "partitions"),
    [(QueueType.STANDARD, 1), (QueueType.STANDARD, 3), (QueueType.FIFO, 1)],
)
@pytest.mark.parametrize("places", [1, 7, 60])
async def test_queue_with_fewer_places_than_a_batch_gets_all(storage, places, type_, partitions):
    """Such a batch was refused as a whole, also while the queue was empty."""
    small = QueueName("small.fifo" if type_ is QueueType.FIFO else "small")
    settings = QueueSpec(type=type_, messages_max=places, partitions=partitions)
    await storage.catalog.put_queue(small, settings)
    records = await fill(storage, 60)
    await storage.replays.submit("default", replay_request(target=Target(queue=small.name)), "r")
    job, spec, _ = await start_replay(storage)
    sending = asyncio.create_task(send_parts_in_waves(storage, job, spec))

    received: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while not sending.done() or (await storage.queues.stats(small)).ready:
            for message in await storage.queues.receive(small, messages_max=100):
                await settle(storage.queues, small, message, SettleAction.ACK)
                received.append(message.body)
            await asyncio.sleep(0.01)

    assert sending.result() == TaskEnd()
    assert Counter(received) == Counter(record.data for record in records)
    parts = await storage.replays.parts(job.job_id)
    assert sum(part.sent + part.duplicates for part in parts) == 60
    if partitions == 1:  # a partition may take messages of a call that fails
        assert sum(part.duplicates for part in parts) == 0


async def test_messages_of_a_halted_batch_count(storage, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_SAVE_MS", 20)
    small = QueueName("small")
    await storage.catalog.put_queue(small, QueueSpec(messages_max=5))
    await fill(storage, 60)
    await storage.replays.submit("default", replay_request(target=Target(queue="small")), "r")
    job, spec, _ = await start_replay(storage)
    sending = asyncio.create_task(send_parts_in_waves(storage, job, spec))

    async def is_full() -> bool:
        ready: int = (await storage.queues.stats(small)).ready
        return ready == 5

    await eventually(is_full, True)
    await storage.replays.cancel("default", "r")

    assert await asyncio.wait_for(sending, PATIENCE_S) == TaskEnd(halted=True)
    parts = await storage.replays.parts(job.job_id)
    assert sum(part.sent for part in parts) == 5


async def test_replay_waits_for_lagging_group_of_target(storage):
    await fill(storage, 5)
    await storage.groups.put(GroupName("slow"), GroupSpec(stream="target"))
    await storage.streams.append(TARGET, [Record(b"unread")] * 3)
    await storage.replays.submit("default", replay_request(pacing=Pacing(lag_records_max=2)))
    _, spec, _ = await start_replay(storage)

    assert await storage.replays.is_lagging("default", spec)
    await storage.groups.delete(GroupName("slow"))
    assert not await storage.replays.is_lagging("default", spec)


async def test_target_recreated_during_replay_gets_nothing_more(storage):
    await fill(storage, 10)
    await storage.replays.submit("default", replay_request())
    job, spec, _ = await start_replay(storage)
    await storage.catalog.delete_stream(TARGET)
    await storage.catalog.put_stream(TARGET, KEEP)

    ended = await send_parts_in_waves(storage, job, spec)

    assert (ended.retry, "recreated" in ended.failure) == (False, True)
    assert await everything(storage) == []


async def test_unanswered_append_is_retried(storage, monkeypatch):
    await fill(storage, 100)
    append = storage.streams.append_idempotent_columns
    lost = iter([True, False, True] + [False] * 100)

    async def loses(*args, **kwargs) -> AppendCounts:
        counts: AppendCounts = await append(*args, **kwargs)
        if next(lost):
            raise OutcomeUnknown
        return counts

    monkeypatch.setattr(storage.streams, "append_idempotent_columns", loses)
    parts = await replay(storage, replay_request())

    assert len(await everything(storage)) == 100
    assert sum(part.sent + part.duplicates for part in parts) == 100


async def test_record_rejected_by_target_ends_replay_with_reason(storage):
    await storage.catalog.put_stream(
        TARGET, StreamSpec(shards=2, record_bytes_max=5), if_match=None
    )
    await fill(storage, 10)
    await storage.replays.submit("default", replay_request())
    job, spec, _ = await start_replay(storage)

    ended = await send_parts_in_waves(storage, job, spec)

    assert not ended.retry
    assert "allows 5" in ended.failure
