"""Replays on Spark: completion, control, and recovery from killed processes (R1)."""

import asyncio
import os
import random
import signal
from collections import Counter

import msgspec
import pytest

from spark_worker.main import HANDLERS
from storage.domain.jobs import WAITING_FOR, JobState
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.replays.pacing import Pacing
from storage.domain.replays.replay import Order, Target
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.conditions import SPARK_S, eventually
from tests.replay_steps import SOURCE, TARGET, everything, replay_request
from tests.spark.attempts import has_failed
from tests.spark.workers import ON_SPARK, worker_process

pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)

KEYS = [f"key {number}" for number in range(20)]
RECORDS = 6_000
KEEP = StreamSpec(shards=3)


@pytest.fixture
async def records(storage) -> list[Record]:
    """The records of the source stream."""
    for name in (SOURCE, TARGET):
        await storage.catalog.put_stream(name, KEEP)
    records = [Record(b"%d" % n, KEYS[n % len(KEYS)]) for n in range(RECORDS)]
    for nth in range(0, RECORDS, 1_000):
        await storage.streams.append(SOURCE, records[nth : nth + 1_000])
    return records


def check(found, records) -> None:
    """Check R1, and the order of each key."""
    assert Counter(one.record.data for one in found) == Counter(one.data for one in records)
    for key in KEYS:
        sent = [one.data for one in records if one.key == key]
        assert [one.record.data for one in found if one.record.key == key] == sent


@pytest.mark.parametrize(
    "order",
    [
        Order.TIME,
        pytest.param(Order.SHARD, marks=pytest.mark.chaos),
        pytest.param(Order.NONE, marks=pytest.mark.chaos),
    ],
)
async def test_every_record_is_sent_once(storage, working, ended, records, order):
    replay = await storage.replays.submit("default", replay_request(order=order))

    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(replay.job.job_id)

    assert over.state is JobState.DONE, over.failure
    assert (over.progress["sent"], over.progress["duplicates"]) == (RECORDS, 0)
    actual_records = await everything(storage)
    assert len(actual_records) == RECORDS
    if order is not Order.NONE:
        check(actual_records, records)


async def test_replay_to_queue_sends_filtered_records(storage, working, ended, records):
    await storage.catalog.put_queue(QueueName("work"), QueueSpec())
    request = replay_request(
        target=Target(queue="work"),
        filter=Filter(match={"filter": {"key": ["key 3"]}, "where": "size > 0"}),
        pacing=Pacing(speed=100_000),
        max_records=100,
    )
    replay = await storage.replays.submit("default", request)

    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(replay.job.job_id)

    assert over.state is JobState.DONE, over.failure
    assert (await storage.queues.stats(QueueName("work"))).sent == 100


async def test_replay_is_paused_resumed_and_cancelled(storage, working, ended, records):
    await storage.replays.submit(
        "default", replay_request(pacing=Pacing(records_per_second=500)), "slow"
    )
    job_id = "replay:default:slow"

    async with working(HANDLERS, limits=ON_SPARK):
        await some_are_sent(storage, job_id)
        await storage.replays.pause("default", "slow")
        await ended(job_id, JobState.PAUSED)
        paused = await storage.replays.get("default", "slow")
        there = len(await everything(storage))
        await storage.replays.resume("default", "slow")
        await more_are_sent(storage, there)
        await storage.replays.cancel("default", "slow")
        over = await ended(job_id)

    assert over.state is JobState.CANCELLED
    assert sum(part.sent for part in paused.parts) <= there < RECORDS
    actual_records = await everything(storage)
    assert (
        len({actual_record.record.data for actual_record in actual_records})
        == len(actual_records)
        < RECORDS
    )


async def test_replay_to_deleted_target_fails_with_reason(storage, working, ended, records):
    replay = await storage.replays.submit("default", replay_request())
    await storage.catalog.delete_stream(TARGET)

    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(replay.job.job_id)

    assert over.state is JobState.FAILED
    assert "target" in over.failure


async def test_waiting_replays_give_their_places_back(storage, working, ended, records):
    """Two replays into a queue that nobody read held both places: all other jobs stayed queued."""
    await storage.catalog.put_queue(QueueName("unread"), QueueSpec())
    await storage.queues.send(QueueName("unread"), [NewMessage(b"one")])
    idle = [
        await storage.replays.submit(
            "default",
            replay_request(target=Target(queue="unread"), pacing=Pacing(lag_records_max=0)),
        )
        for _ in range(2)
    ]

    async with working(HANDLERS, limits=ON_SPARK):
        await ended((await storage.archive_admin.flush(SOURCE)).job_id)
        replay = await storage.replays.submit("default", replay_request())
        over = await ended(replay.job.job_id)
        await eventually(lambda: states_of(storage, idle), ["queued readers"] * 2)
        await storage.catalog.delete_queue(QueueName("unread"))

    assert over.state is JobState.DONE, over.failure


async def states_of(storage, replays) -> list[str]:
    jobs = [await storage.jobs.get(replay.job.job_id) for replay in replays]
    return [f"{job.state.value} {job.progress.get(WAITING_FOR)}" for job in jobs]


async def test_replay_into_full_queue_gives_its_place_back(storage, working, ended, records):
    """A replay that has begun waits for room, and continues where it was."""
    await storage.catalog.put_queue(QueueName("full"), QueueSpec(messages_max=100))
    replay = await storage.replays.submit("default", replay_request(target=Target(queue="full")))

    async with working(HANDLERS, limits=ON_SPARK):
        await eventually(lambda: states_of(storage, [replay]), ["queued target"])
        await storage.catalog.change_queue(
            QueueName("full"), lambda spec: msgspec.structs.replace(spec, messages_max=None)
        )
        over = await ended(replay.job.job_id)

    assert over.state is JobState.DONE, over.failure
    assert (await storage.queues.stats(QueueName("full"))).sent == RECORDS


@pytest.mark.chaos
async def test_replay_survives_repeated_jvm_kills(
    storage, working, ended, records, spark_of_the_run
):
    chance = random.Random(7)
    request = replay_request(order=Order.KEY, pacing=Pacing(records_per_second=1_500))
    replay = await storage.replays.submit("default", request)
    job_id = replay.job.job_id

    async with working(HANDLERS, limits=ON_SPARK):
        for kill in range(3):
            await more_are_sent(storage, kill * 500)
            await asyncio.sleep(chance.random())
            await kill_jvm(spark_of_the_run)
            if kill == 1:
                await storage.streams.resharder.split(TARGET, 0, RING_SIZE // 6)
        over = await ended(job_id)

    assert over.state is JobState.DONE, over.failure
    assert over.attempt > 1
    check(await everything(storage), records)


@pytest.mark.chaos
async def test_replay_survives_repeated_worker_kills(
    storage, stores, working, ended, records, tmp_path
):
    chance = random.Random(11)
    replay = await storage.replays.submit(
        "default", replay_request(pacing=Pacing(records_per_second=800))
    )

    for kill in range(3):
        with worker_process(stores, tmp_path / "log", "real", ON_SPARK) as worker:
            await attempt_begins(storage, replay.job.job_id, kill + 1)
            await more_are_sent(storage, kill * 400)
            await asyncio.sleep(chance.random() * 1.5)
            worker.kill()
        if kill == 0:
            await storage.streams.resharder.split(TARGET, 1, RING_SIZE // 2)
    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(replay.job.job_id)

    assert over.state is JobState.DONE, over.failure
    assert over.attempt >= 3
    check(await everything(storage), records)


@pytest.mark.parametrize(
    "fault",
    [
        "replay.after_send",
        pytest.param("replay.prepared", marks=pytest.mark.chaos),
        pytest.param("replay.before_save", marks=pytest.mark.chaos),
        pytest.param("replay.after_forget", marks=pytest.mark.chaos),
    ],
)
async def test_next_attempt_completes_after_fault(
    storage, stores, working, ended, records, tmp_path, fault
):
    replay = await storage.replays.submit("default", replay_request())

    with worker_process(
        stores, tmp_path / "log", "real", ON_SPARK, MILLSTREAM_FAULT=fault
    ) as worker:
        await has_failed(storage, worker, replay.job.job_id)
    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(replay.job.job_id)

    assert over.state is JobState.DONE, over.failure
    check(await everything(storage), records)
    assert await remembered(storage) == set()


async def remembered(storage) -> set[bool]:
    """Return whether any log of the target still has producer state."""
    stream = await storage.catalog.stream(TARGET)
    logs = [LogAddress("default", shard.log_id) for shard in stream.shards]
    writer_states = [await storage.streams._idempotent_appender.writer_state(at) for at in logs]
    return {True for has, _ in writer_states if has}


async def kill_jvm(spark_of_the_run) -> None:
    """Kill the JVM, once there is one."""
    for _ in range(300):
        session = spark_of_the_run._session
        if session is not None and session.alive:
            os.kill(session.jvm_pid, signal.SIGKILL)
            return
        await asyncio.sleep(0.1)
    raise AssertionError("there is no JVM any more")


async def some_are_sent(storage, job_id) -> None:
    await more_are_sent(storage, 0)


async def attempt_begins(storage, job_id: str, attempt: int, within_s: float = SPARK_S) -> None:
    """Wait until a worker has begun this attempt of the job."""
    for _ in range(int(within_s / 0.1)):
        if (await storage.jobs.get(job_id)).attempt >= attempt:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"attempt {attempt} does not begin")


async def more_are_sent(storage, count: int, within_s: float = SPARK_S) -> None:
    """Wait until the target has more than this number of records."""
    for _ in range(int(within_s / 0.1)):
        states = await storage.record_reader.shards(TARGET)
        if sum(state.next for state in states) > count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("nothing is sent any more")
