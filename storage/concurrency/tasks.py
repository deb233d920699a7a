"""Reliable cancellation of background tasks, and completion of futures."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

from storage.domain.errors import StorageBusy, StorageFull, StorageUnavailable

Answer = TypeVar("Answer")
Item = TypeVar("Item")

_PATIENCE_S = 1.0  # longer than a task needs to clean up: another cancellation would interrupt that


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks and wait until they have ended, however they end, or had ended before.

    A library may swallow a cancellation that arrives at the wrong moment (one that turns it into an error of
    its own, which a loop then survives), so cancellation is repeated until it takes effect.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_PATIENCE_S)
    for task in tasks:
        # Retrieved, or asyncio logs it as lost. A cancelled task would keep the frames of its error, and be one of their cycle.
        with suppress(asyncio.CancelledError):
            task.exception()


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, object], name: str) -> AsyncGenerator[None]:
    """Run `work` as a task while the block runs."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await end(task)


@contextmanager
def finally_call(work: Callable[[Answer], object], argument: Answer) -> Iterator[None]:
    """Call `work` at the end of the block, also if it failed, unless the store refused it.

    Then nothing happened; what is cached must outlive an outage in which somebody tries to change it.
    """
    try:
        yield
    except (StorageUnavailable, StorageBusy, StorageFull):
        raise
    except BaseException:
        work(argument)
        raise
    else:
        work(argument)


def give(done: "asyncio.Future[Answer]", answer: Answer | Exception) -> None:
    """Complete a future with a result or an error, unless its caller has given up."""
    if done.done():
        return
    if isinstance(answer, Exception):
        done.set_exception(answer)
    else:
        done.set_result(answer)


async def in_batches(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Answer]], batch_max: int
) -> list[Answer]:
    """Apply `work` to all items, a batch at a time; return the results in the items' order.

    Calls of a batch share flushes. Raises the first error of a batch, once all of it has ended.
    """
    waiting, results = iter(list(items)), list[Answer]()
    while batch := list(islice(waiting, batch_max)):
        results += await gather_all(map(work, batch))
    return results


async def gather_all(work: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """Wait for all awaitables, then return their results or raise the first error.

    Nothing is left running after an error.
    """
    done = await asyncio.gather(*work, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException):
            raise result
    return [result for result in done if not isinstance(result, BaseException)]
