"""kill -9 of the service under SDK workers and subscribers: nothing is lost or skipped."""

import asyncio
import os
import signal
from pathlib import Path

from millstream_client import AsyncMillstream, AsyncQueue, AsyncStream
from tests.javascript import compile_typescript

TYPESCRIPT = Path(__file__).parents[2] / "openapi" / "sdk" / "typescript"
MESSAGES = 300


def kill_api(millstream):
    os.kill(millstream.children()["api"], signal.SIGKILL)


async def test_workers_survive_killed_service(millstream):
    done: list[str] = []
    killed = asyncio.Event()

    async def handle(message):
        done.append(message.text)
        if len(done) == MESSAGES // 3:
            kill_api(millstream)
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
    """Wait until all are acknowledged; lost deliveries return after their lease."""
    for _ in range(600):
        if (await queue.stats()).acknowledged == MESSAGES:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("some messages were never acknowledged")


async def test_python_and_typescript_workers_survive_killed_service(millstream):
    compile_typescript(TYPESCRIPT)
    in_python: list[str] = []

    async def handle(message):
        in_python.append(message.text)
        await asyncio.sleep(0.02)

    async with AsyncMillstream(millstream.url) as client:
        queue = client.queue("shared")
        await queue.create(visibility_timeout_seconds=5)
        worker = queue.worker(handle, concurrency=2, lease_seconds=5)
        working = asyncio.create_task(worker.run(signals=False))
        command = ["--no-warnings", "examples/worker.mjs", queue.name]
        node = await asyncio.create_subprocess_exec(
            "node", *command, millstream.url, cwd=TYPESCRIPT, stdout=asyncio.subprocess.PIPE
        )
        for number in range(MESSAGES):
            await queue.send(str(number))
            if number == MESSAGES // 2:
                kill_api(millstream)
        await all_acknowledged(queue)
        worker.stop()
        node.terminate()
        output, _ = await node.communicate()
        await working

    in_typescript = output.decode().split()
    assert {str(number) for number in range(MESSAGES)} == {*in_python, *in_typescript}
    assert in_python
    assert in_typescript
    assert node.returncode == 0


async def test_subscriber_resumes_in_order_after_killed_service(millstream):
    """The session ends with the process: reading continues after the last record."""
    async with AsyncMillstream(millstream.url) as client:
        stream = client.stream("heard")
        await stream.create(shards=2)
        heard: list[tuple[str, int]] = []
        async with stream.subscribe() as subscription, asyncio.timeout(60):
            putting = asyncio.create_task(put_all(stream))
            while len(heard) < MESSAGES:
                record = await anext(subscription)
                heard.append((record.key, int(record.text)))
                if len(heard) == MESSAGES // 2:
                    kill_api(millstream)
            await putting

    for key in ("a", "b"):
        numbers = [number for own, number in heard if own == key]
        assert numbers == [number for number in range(MESSAGES) if "ab"[number % 2] == key]


async def put_all(stream: AsyncStream) -> None:
    for number in range(MESSAGES):
        await stream.put(str(number), key="ab"[number % 2])
