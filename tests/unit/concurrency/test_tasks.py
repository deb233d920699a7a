"""Cancellation of tasks that do not end at the first request."""

import asyncio
import gc
import weakref

import pytest

from storage.concurrency.tasks import end, in_batches
from tests.conditions import PATIENCE_S


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

    await asyncio.wait_for(end(task), PATIENCE_S)

    assert task.done()
    assert heard == 2


async def test_cleanup_of_ended_task_is_not_interrupted():
    """A mirror that was stopped under load left connections to its origin open."""
    steps: list[str] = []

    async def closing_connections() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for name in ("first", "second"):
                await asyncio.sleep(0.05)
                steps.append(name)

    task = asyncio.create_task(closing_connections())
    await asyncio.sleep(0)

    await end(task)

    assert steps == ["first", "second"]


async def test_ended_task_leaves_no_cycle():
    """The error of its cancellation has the frame of a method, and that its object."""

    class Worker:
        def __init__(self) -> None:
            self.task = asyncio.create_task(self.run())

        async def run(self) -> None:
            await asyncio.sleep(60)

    worker = Worker()
    reference = weakref.ref(worker)
    await asyncio.sleep(0)
    gc.disable()
    try:
        await end(worker.task)
        del worker
        assert reference() is None
    finally:
        gc.enable()


async def test_ending_finished_task_has_no_effect():
    task = asyncio.create_task(asyncio.sleep(0))
    await task

    await end(task)


async def test_error_of_ended_task_is_not_logged_as_lost():
    """A controller whose lease ended as it failed left a traceback in the log."""
    lost: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: lost.append(context["message"])
    )

    async def fail() -> None:
        raise ValueError("lost")

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    await end(task)
    del task
    gc.collect()

    assert lost == []


async def test_batches_keep_order_and_limit():
    running = most = 0

    async def double(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (number % 3))
        running -= 1
        return 2 * number

    assert await in_batches(range(10), double, 4) == [2 * number for number in range(10)]
    assert most == 4


async def test_failed_batch_ends_before_its_error_is_raised():
    visited = []

    async def visit(number: int) -> None:
        if number == 1:
            raise LookupError
        await asyncio.sleep(0.01)
        visited.append(number)

    with pytest.raises(LookupError):
        await in_batches(range(6), visit, 3)

    assert visited == [0, 2]
