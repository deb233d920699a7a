"""Periodic work: its interval, failures, wake-ups and end."""

import asyncio

import pytest

from storage.concurrency.periodic import JITTER, pause_seconds, periodic
from storage.concurrency.tasks import end
from storage.domain.errors import StorageUnavailable
from tests.conditions import PATIENCE_S


class Work:
    """Count runs and fail on request."""

    def __init__(self) -> None:
        self.runs = 0
        self.ran = asyncio.Event()
        self.error: Exception | None = None

    async def run(self) -> None:
        self.runs += 1
        self.ran.set()
        if self.error is not None:
            raise self.error

    async def next_run(self) -> None:
        self.ran.clear()
        async with asyncio.timeout(PATIENCE_S):
            await self.ran.wait()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The pauses that were requested; each ends at once."""
    seconds: list[float] = []
    sleep = asyncio.sleep

    async def pause(delay: float) -> None:
        seconds.append(delay)
        await sleep(0)

    monkeypatch.setattr("storage.concurrency.periodic.asyncio.sleep", pause)
    return seconds


async def test_work_runs_at_once_and_after_each_interval(work, pauses):
    task = asyncio.create_task(periodic(10.0, work.run, "sample"))
    await work.next_run()
    await work.next_run()
    await end(task)

    assert work.runs >= 2
    assert all(10.0 * (1 - JITTER) <= pause_s <= 10.0 for pause_s in pauses)


async def test_first_run_waits_when_delayed(work, pauses):
    task = asyncio.create_task(periodic(10.0, work.run, "sample", delay_first=True))
    await asyncio.sleep(0)
    assert work.runs == 0
    await work.next_run()
    await end(task)


@pytest.mark.parametrize("interval_s", [1.0, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("into_second_s", [0.0, 0.02, 0.09])
def test_pause_ends_at_full_second_if_one_is_near(interval_s, into_second_s):
    now_s = 5000.0 + into_second_s

    assert now_s + pause_seconds(interval_s, now_s) == pytest.approx(5000 + interval_s)


def test_pauses_of_loops_begun_at_any_time_come_to_end_together():
    now_s = {1.0: 70.31, 3.0: 70.52, 5.0: 70.94}
    for interval_s, began_s in now_s.items():
        at_s = began_s
        while at_s < 200:
            at_s += 0.004 + pause_seconds(interval_s, at_s)  # each run takes a moment
        now_s[interval_s] = at_s

    assert [at_s % 1 for at_s in now_s.values()] == pytest.approx([0.004] * 3)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_other_pauses_are_shortened_at_random(chance):
    assert pause_seconds(0.5, 70.1, lambda: chance) == 0.5 * (1 - JITTER * chance)
    assert pause_seconds(1.0, 70.5, lambda: chance) == 1.0 * (1 - JITTER * chance)


async def test_failures_are_logged_by_kind_and_end_nothing(work, pauses, caplog):
    work.error = StorageUnavailable("Postgres is away.")
    task = asyncio.create_task(periodic(10.0, work.run, "sample"))
    await work.next_run()
    await work.next_run()
    await work.next_run()
    work.error = RuntimeError("bug")
    await work.next_run()
    await end(task)

    events = [(record.getMessage(), record.work) for record in caplog.records]
    assert events[:2] == [("periodic_work_deferred", "sample"), ("periodic_work_failed", "sample")]


async def test_retry_interval_follows_failure(work, pauses):
    work.error = StorageUnavailable()
    task = asyncio.create_task(periodic(10.0, work.run, "sample", retry_s=1.0))
    await work.next_run()
    work.error = None
    await work.next_run()
    await work.next_run()
    await end(task)

    assert pauses[0] <= 1.0
    assert pauses[-1] >= 10.0 * (1 - JITTER)


async def test_wake_event_starts_next_run(work):
    wake = asyncio.Event()
    task = asyncio.create_task(periodic(60.0, work.run, "sample", wake=wake))
    await work.next_run()
    wake.set()
    await work.next_run()
    await end(task)

    assert work.runs == 2
    assert not wake.is_set()


async def test_cancellation_ends_work_in_progress():
    started = asyncio.Event()

    async def forever() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(periodic(60.0, forever, "sample"))
    await started.wait()
    await end(task)

    assert task.cancelled()


async def test_loop_ends_though_its_work_swallows_the_cancellation():
    """A task group cancels its tasks once: a sweeper that was stopped hung for ever."""
    working = asyncio.Event()

    async def work() -> None:
        working.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise StorageUnavailable from None

    loop = asyncio.create_task(periodic(0.01, work, "work"))
    await working.wait()

    loop.cancel()
    await asyncio.wait([loop], timeout=5)

    assert loop.cancelled()
