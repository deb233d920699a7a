"""kill -9 of the service under workers of the Python SDK: every message is worked on, and none is left."""

import asyncio
import os
import signal

from millstream_client import AsyncMillstream, AsyncQueue

MESSAGES = 300


async def test_workers_go_on_when_the_service_is_killed_and_comes_back(millstream):
    done: list[str] = []
    killed = asyncio.Event()

    async def handle(message):
        done.append(message.text)
        if len(done) == MESSAGES // 3:
            os.kill(millstream.children()["api"], signal.SIGKILL)
            killed.set()
        await asyncio.sleep(0.01)

    async with AsyncMillstream(millstream.url) as client:
        queue = client.queue("under-fire")
        await queue.create()
        workers = [queue.worker(handle, concurrency=8, lease_seconds=5) for _ in range(2)]
        running = [asyncio.create_task(worker.run(signals=False)) for worker in workers]
        for number in range(MESSAGES):
            await queue.send(str(number))
        await all_acknowledged(queue)
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
        stats = await queue.stats()

    assert killed.is_set()
    assert {str(number) for number in range(MESSAGES)} == set(done)
    assert (stats.sent, stats.in_flight, stats.ready, stats.dead_lettered) == (MESSAGES, 0, 0, 0)


async def all_acknowledged(queue: AsyncQueue) -> None:
    """What was claimed for an answer that nobody got comes back when its lease is over."""
    for _ in range(600):
        if (await queue.stats()).acknowledged == MESSAGES:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("some messages were never acknowledged")
