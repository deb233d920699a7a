"""Workers of the Python SDK."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager

import pytest

from millstream_client import AsyncMillstream, NotFound, Reject, Retry
from tests.conditions import PATIENCE_S
from tests.contract.sdk.conftest import BOTH
from tests.contract.sdk.lossy_proxy import running_lossy_proxy


async def until(fact) -> None:
    """Wait until a fact is true; fails after a time limit."""
    for _ in range(1_500):
        if fact():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never became so")


@asynccontextmanager
async def running(worker):
    """Run a worker for the duration of the block, then stop it."""
    task = asyncio.create_task(worker.run(signals=False))
    try:
        yield task
    finally:
        worker.stop()
        async with asyncio.timeout(PATIENCE_S):
            await task


@BOTH
async def test_message_is_acknowledged_when_handler_returns(asynchronous, orders):
    done: list[str] = []

    async def handle(message):
        done.append(message.text)

    orders.send_many(["a", "b", "c"])
    async with running(asynchronous.queue(orders.name).worker(handle, concurrency=2)):
        await until(lambda: orders.stats().acknowledged == 3)

    assert sorted(done) == ["a", "b", "c"]


@BOTH
async def test_exception_of_handler_selects_settlement(asynchronous, orders):
    seen: list[str] = []

    async def handle(message):
        seen.append(message.text)
        if message.text == "reject":
            try:
                dict[str, str]()["id"]
            except KeyError as error:
                raise Reject("no such customer") from error
        if message.text == "retry" and message.receive_count == 1:
            raise Retry(0)
        if message.text == "broken":
            raise LookupError("no page")
        if message.text == "own":
            await message.reject("its own verdict")

    orders.change(attempts_max=2, backoff={"delays_seconds": [0]})
    orders.send_many(["reject", "retry", "broken", "own"])
    async with running(asynchronous.queue(orders.name).worker(handle, concurrency=4)):
        await until(lambda: orders.stats().acknowledged + orders.stats().dead_lettered == 4)

    letters = list(orders.dead_letters())
    reasons = {letter.body: letter.reason for letter in letters}
    details = {letter.body: letter.details for letter in letters}
    assert seen.count("retry") == seen.count("broken") == 2
    assert seen.count("reject") == seen.count("own") == 1
    assert reasons["reject"] == "no such customer"
    assert reasons["own"] == "its own verdict"
    assert reasons["broken"].startswith("LookupError: no page")
    assert details["broken"].startswith("Traceback")
    assert "millstream_client" not in details["broken"]
    assert details["broken"].endswith("LookupError: no page\n")
    assert 'raise LookupError("no page")' in details["broken"]
    assert details["reject"].endswith("KeyError: 'id'\n")
    assert orders.stats().acknowledged == 1


@BOTH
async def test_message_stays_hidden_while_in_progress(asynchronous, orders):
    seen: list[int] = []
    go = asyncio.Event()

    async def handle(message):
        seen.append(message.receive_count)
        await go.wait()

    orders.send("slow")
    worker = asynchronous.queue(orders.name).worker(handle, concurrency=2, lease_seconds=0.6)
    async with running(worker):
        await until(lambda: seen)
        await asyncio.sleep(1.5)  # more than two leases
        go.set()
        await until(lambda: orders.stats().acknowledged == 1)

    assert seen == [1]


@BOTH
async def test_worker_concurrency_is_limited(asynchronous, orders):
    inside, most = 0, 0
    go = asyncio.Event()

    async def handle(message):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await go.wait()
        inside -= 1

    orders.send_many(str(number) for number in range(9))
    async with running(asynchronous.queue(orders.name).worker(handle, concurrency=3)):
        await until(lambda: inside == 3)
        assert orders.stats().in_flight == 3
        go.set()
        await until(lambda: orders.stats().acknowledged == 9)

    assert most == 3


@BOTH
async def test_stopping_worker_finishes_messages_and_receives_no_more(asynchronous, orders):
    started = asyncio.Event()
    go = asyncio.Event()

    async def handle(message):
        started.set()
        await go.wait()

    orders.send_many(["a", "b"])
    worker = asynchronous.queue(orders.name).worker(handle)
    async with running(worker) as task:
        await started.wait()
        worker.stop()
        await asyncio.sleep(0.05)
        assert not task.done()
        go.set()

    assert (orders.stats().acknowledged, orders.stats().ready) == (1, 1)


@BOTH
async def test_unfinished_message_is_released_after_grace_period(asynchronous, orders):
    started = asyncio.Event()

    async def handle(message):
        started.set()
        await asyncio.sleep(3600)

    orders.send("slow")
    async with running(asynchronous.queue(orders.name).worker(handle, grace_seconds=0.05)):
        await started.wait()

    assert (orders.stats().ready, orders.stats().in_flight) == (1, 0)


@BOTH
async def test_idle_worker_stops_immediately_and_holds_nothing(asynchronous, orders):
    async def handle(message):
        raise AssertionError("nothing came")

    worker = asynchronous.queue(orders.name).worker(handle)
    async with running(worker):
        await asyncio.sleep(0.2)
        stopped_at = time.monotonic()
    assert time.monotonic() - stopped_at < 5

    orders.send("hello")
    assert orders.receive()[0].receive_count == 1


@BOTH
async def test_worker_of_unknown_queue_ends_with_error(asynchronous, name):
    async def handle(message):
        pass

    with pytest.raises(NotFound):
        await asynchronous.queue(name).work(handle, signals=False)


async def test_worker_continues_through_broken_network(service_url, orders):
    """Connections are cut and responses lost: nothing is lost, and nothing stays in flight."""
    done: list[str] = []

    async def handle(message):
        done.append(message.text)
        await asyncio.sleep(0.01)

    with running_lossy_proxy(service_url) as proxy:
        async with AsyncMillstream(proxy.url) as client:
            worker = client.queue(orders.name).worker(handle, concurrency=4, lease_seconds=2)
            async with running(worker):
                for number in range(40):
                    orders.send(str(number))
                    if number % 10 == 5:
                        proxy.lose = 1
                    if number % 10 == 9:
                        proxy.cut()
                    await asyncio.sleep(0.01)
                await until(lambda: orders.stats().acknowledged == 40)

    assert {str(number) for number in range(40)} == set(done)
    assert orders.stats().in_flight == 0


@BOTH
def test_worker_runs_handlers_in_threads(millstream, orders):
    done: set[tuple[str, str]] = set()
    together = threading.Barrier(3)

    def handle(message):
        together.wait(PATIENCE_S)  # three concurrently, or never
        done.add((message.text, threading.current_thread().name))

    orders.send_many(["a", "b", "c"])
    worker = orders.worker(handle, concurrency=3)
    thread = threading.Thread(target=worker.run)
    thread.start()
    while orders.stats().acknowledged < 3:
        time.sleep(0.01)
    worker.stop()
    thread.join(10)

    assert not thread.is_alive()
    assert {text for text, _ in done} == {"a", "b", "c"}
    assert len({name for _, name in done}) == 3


@BOTH
def test_worker_stopped_before_start_ends_immediately(orders):
    worker = orders.worker(lambda message: None)

    worker.stop()
    worker.run()


PROGRAM = """
import sys, time
from millstream_client import Millstream

def handle(message):
    print(message.text, flush=True)
    time.sleep(0.5)

Millstream().queue(sys.argv[1]).work(handle)
print("stopped")
"""


def test_terminated_process_finishes_its_message(service_url, orders):
    orders.send("hello")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, orders.name],
        env={**os.environ, "MILLSTREAM_URL": service_url},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "hello\n"
        process.send_signal(signal.SIGTERM)

        assert process.stdout.read() == "stopped\n"
        assert process.wait(PATIENCE_S) == 0

    assert orders.stats().acknowledged == 1
