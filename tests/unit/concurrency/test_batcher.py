"""Group commit of concurrent calls: batching, limits, and per-caller answers."""

import asyncio

import pytest

from storage.concurrency.batcher import Batcher
from storage.domain.errors import MillstreamError, ShardNotFound, StorageBusy, StorageUnavailable


class Server:
    """Double numbers, one flush at a time, when released."""

    def __init__(self) -> None:
        self.flushes: list[list[int]] = []
        self.may_go = asyncio.Event()
        self.broken = False

    async def flush(self, asked: list[int]) -> list[int | MillstreamError]:
        self.flushes.append(list(asked))
        await self.may_go.wait()
        if self.broken:
            raise StorageUnavailable
        return [ShardNotFound() if request < 0 else 2 * request for request in asked]


@pytest.fixture
def server() -> Server:
    return Server()


async def test_calls_during_flush_are_batched(server):
    together = Batcher[int, int](server.flush)
    first = asyncio.create_task(together.submit(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(together.submit(number)) for number in (2, 3, 4)]
    await asyncio.sleep(0)

    server.may_go.set()

    assert await asyncio.gather(first, *others) == [2, 4, 6, 8]
    assert server.flushes == [[1], [2, 3, 4]]


async def test_each_caller_gets_its_own_answer(server):
    together = Batcher[int, int](server.flush)
    server.may_go.set()

    good, bad = await asyncio.gather(
        together.submit(1), together.submit(-1), return_exceptions=True
    )

    assert good == 2
    assert isinstance(bad, ShardNotFound)


async def test_failed_flush_fails_only_its_own_callers(server):
    together = Batcher[int, int](server.flush)
    server.broken = True
    server.may_go.set()
    failed = await asyncio.gather(together.submit(1), together.submit(2), return_exceptions=True)
    server.broken = False

    assert all(isinstance(caller, StorageUnavailable) for caller in failed)
    assert await together.submit(3) == 6


async def test_call_cancelled_before_flush_is_not_sent(server):
    together = Batcher[int, int](server.flush)
    first = asyncio.create_task(together.submit(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second, third = asyncio.create_task(together.submit(2)), asyncio.create_task(together.submit(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)

    server.may_go.set()
    await asyncio.gather(first, third)

    assert server.flushes == [[1], [3]]


async def test_flush_size_and_backlog_are_limited(server):
    idle: list[bool] = []
    together = Batcher[int, int](
        server.flush, batch_max=2, backlog_max=3, when_idle=lambda: idle.append(True)
    )
    tasks = [asyncio.create_task(together.submit(number)) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(StorageBusy):
        await together.submit(9)

    server.may_go.set()
    await asyncio.gather(*tasks)
    await asyncio.sleep(0)

    assert server.flushes == [[0, 1], [2]]
    assert idle == [True]


async def test_closing_cancels_waiting_callers(server):
    together = Batcher[int, int](server.flush)
    tasks = [asyncio.create_task(together.submit(number)) for number in range(3)]
    await asyncio.sleep(0)

    await together.close()

    assert all(
        isinstance(result, asyncio.CancelledError)
        for result in await asyncio.gather(*tasks, return_exceptions=True)
    )
