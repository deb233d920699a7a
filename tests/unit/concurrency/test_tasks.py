"""Cancellation of tasks that do not end at the first request."""

import asyncio

from storage.concurrency.tasks import end


async def test_task_that_swallows_cancellation_is_cancelled_again(monkeypatch):
    monkeypatch.setattr("storage.concurrency.tasks._PATIENCE_S", 0.01)
    heard = 0

    async def hard_of_hearing() -> None:
        nonlocal heard
        while heard < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                heard += 1

    task = asyncio.create_task(hard_of_hearing())
    await asyncio.sleep(0)

    await asyncio.wait_for(end(task), 5)

    assert task.done()
    assert heard == 2


async def test_ending_finished_task_has_no_effect():
    task = asyncio.create_task(asyncio.sleep(0))
    await task

    await end(task)
