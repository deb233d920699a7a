"""Group commit of concurrent calls: batching, limits, and per-caller answers."""

import asyncio
from collections.abc import Sequence

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


async def test_all_cancelled_calls_send_nothing(server):
    together = Batcher[int, int](server.flush)
    tasks = [asyncio.create_task(together.submit(number)) for number in range(3)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    server.may_go.set()
    await together.finish()

    assert server.flushes == []
    assert await together.submit(4) == 8


async def test_full_backlog_error_names_subject(server):
    together = Batcher[int, int](server.flush, backlog_max=1, subject="the quota")
    first = asyncio.create_task(together.submit(1))
    await asyncio.sleep(0)

    with pytest.raises(StorageBusy, match="the quota"):
        await together.submit(2)

    server.may_go.set()
    assert await first == 2


async def test_weights_limit_batch_and_large_item_goes_alone(server):
    together = Batcher[int, int](server.flush, batch_max=5, weigh=lambda number: number)
    server.may_go.set()

    await asyncio.gather(*(together.submit(number) for number in (2, 3, 9, 4, 1)))

    assert server.flushes == [[2, 3], [9], [4, 1]]


async def test_added_items_keep_order_in_one_flush_at_a_time(server):
    together = Batcher[int, int](server.flush)
    await together.add(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for number in (2, 3):
        await together.add(number)
    assert server.flushes == [[1]]

    server.may_go.set()
    await together.finish()

    assert server.flushes == [[1], [2, 3]]


async def test_add_waits_while_backlog_is_full(server):
    together = Batcher[int, int](server.flush, backlog_max=2)
    await together.add(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await together.add(2)
    await together.add(3)
    waiting = asyncio.create_task(together.add(4))
    await asyncio.sleep(0)
    assert not waiting.done()

    server.may_go.set()
    await waiting
    await together.finish()

    assert server.flushes == [[1], [2, 3], [4]]


async def test_failed_flush_of_added_items_is_logged(server, caplog):
    async def flush(asked: Sequence[int]) -> Sequence[int]:
        raise RuntimeError("bug")

    together = Batcher[int, int](flush)
    await together.add(1)
    await together.finish()

    assert caplog.messages == ["batch_failed"]


async def test_linger_collects_items_until_finish(server):
    together = Batcher[int, int](server.flush, linger_s=60.0)
    server.may_go.set()
    together.put(1)
    await asyncio.sleep(0.01)
    together.put(2)
    assert server.flushes == []

    await together.finish()

    assert server.flushes == [[1, 2]]


async def test_items_added_during_flush_linger_too(server):
    """Under traffic there was always an item waiting, and flushes followed one another."""
    together = Batcher[int, int](server.flush, linger_s=0.05)
    together.put(1)
    await asyncio.sleep(0.1)
    together.put(2)
    server.may_go.set()
    await asyncio.sleep(0.01)
    together.put(3)
    flushed_at_once = list(server.flushes)
    await together.finish()

    assert flushed_at_once == [[1]]
    assert server.flushes == [[1], [2, 3]]


async def test_linger_ends_by_itself(server):
    together = Batcher[int, int](server.flush, linger_s=0.01)
    server.may_go.set()

    results = await asyncio.gather(*(together.submit(number) for number in (1, 2)))

    assert results == [2, 4]
    assert server.flushes == [[1, 2]]


async def test_flush_with_wrong_result_count_fails_callers():
    async def flush(asked: Sequence[int]) -> Sequence[int]:
        return asked[1:]

    together = Batcher[int, int](flush)

    with pytest.raises(ValueError, match="results"):
        await together.submit(1)
