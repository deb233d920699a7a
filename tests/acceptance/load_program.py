"""A program beside a deployment: writers of numbered records and messages, each repeated until it is acknowledged.

python -m tests.acceptance.load_program URL NAME     until its standard input ends; then it prints what was acknowledged
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import httpx
import msgspec

from tests.acceptance.writers import insist, write
from tests.conditions import PATIENCE_S

WRITERS = 2
QUEUE, STREAM = "/queues/orders", "/streams/clicks"


class Acknowledged(msgspec.Struct):
    """Bodies of messages, and how many records of each key, from 0 on."""

    sent: list[str] = msgspec.field(default_factory=list)
    written: dict[str, int] = msgspec.field(default_factory=dict)


class LoadProgram:
    """A running program; `acknowledged` is known when it has ended."""

    def __init__(self) -> None:
        self.acknowledged = Acknowledged()


@contextmanager
def running_load(url: str, name: str) -> Iterator[LoadProgram]:
    """Run the program while the block runs."""
    words = [sys.executable, "-m", "tests.acceptance.load_program", url, name]
    program = LoadProgram()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield program
            printed, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
            program.acknowledged = msgspec.json.decode(printed, type=Acknowledged)
        finally:
            process.kill()


def client(url: str) -> httpx.AsyncClient:
    """Return a client of the native API."""
    return httpx.AsyncClient(base_url=f"{url}/v1", timeout=30)


async def load(url: str, name: str) -> Acknowledged:
    """Write and send until the standard input ends, and at least one of each."""
    done = asyncio.Event()
    acknowledged = Acknowledged()
    async with client(url) as http, asyncio.TaskGroup() as group:
        (await http.put(QUEUE, json={})).raise_for_status()
        (await http.put(STREAM, json={"shards": 2})).raise_for_status()
        keys = [f"{name}-{number}" for number in range(WRITERS)]
        writers = [group.create_task(write(http, STREAM, key, done)) for key in keys]
        for key in keys:
            group.create_task(send(http, key, done, acknowledged.sent))
        await asyncio.to_thread(sys.stdin.read)
        done.set()
    acknowledged.written = dict(task.result() for task in writers)
    return acknowledged


async def send(http: httpx.AsyncClient, key: str, done: asyncio.Event, sent: list[str]) -> None:
    """Send numbered messages with idempotency keys."""
    for number in count():
        body = f"{key} {number}"
        headers = {"idempotency-key": f"{key}-{number}"}
        await insist(http, f"{QUEUE}/messages", {"body": body}, headers)
        sent.append(body)
        if done.is_set():
            return


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(load(*sys.argv[1:3]))))
