"""kill -9 of each process in turn, under load: no acknowledged message is lost."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import httpx
import pytest

from storage.operations.health import AWAY
from tests.acceptance.deployment import MARKS, Deployment

SENDERS = 4
SENDS = 400  # acknowledged, in total
SENDS_BEFORE_KILL = 100
LOAD_S = 30.0
RESTART_S = 60.0
PAUSE_S = 0.05


@pytest.fixture
async def client(millstream: Deployment) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{millstream.url}/v1/queues", timeout=30) as client:
        yield client


@pytest.mark.parametrize("victim", MARKS)
async def test_killed_process_restarts_without_losing_messages(millstream, client, victim):
    queue = f"load-{victim}"
    (await client.put(f"/{queue}", json={})).raise_for_status()
    before = millstream.children()[victim]
    load = Load(client, queue)

    acknowledged = await load.run(when_warm=lambda: os.kill(before, signal.SIGKILL))
    after = await new_process(millstream, victim, before)
    await ready(millstream, client)
    received = await drain(client, queue)

    assert len(acknowledged) >= SENDS, (
        f"refused: {load.refusals}\n{millstream.log.read_text()[-4_000:]}"
    )
    assert acknowledged <= received
    assert received <= load.tried
    assert after != before


class Load:
    """Concurrent senders of unique bodies; failed sends are not retried."""

    def __init__(self, client: httpx.AsyncClient, queue: str) -> None:
        self.tried: set[str] = set()
        self.refusals = 0
        self._acknowledged: set[str] = set()
        self._warm = asyncio.Event()
        self._client = client
        self._queue = queue
        self._numbers = count()

    async def run(self, when_warm) -> set[str]:
        """Send until enough is acknowledged or the deadline passes; call `when_warm` on the way."""
        senders = [asyncio.create_task(self._send_many()) for _ in range(SENDERS)]
        await asyncio.wait_for(self._warm.wait(), LOAD_S)
        when_warm()
        await asyncio.gather(*senders)
        return self._acknowledged

    async def _send_many(self) -> None:
        deadline = time.monotonic() + LOAD_S
        while len(self._acknowledged) < SENDS and time.monotonic() < deadline:
            body = f"message {next(self._numbers)}"
            self.tried.add(body)
            if await self._send(body):
                self._acknowledged.add(body)
                if len(self._acknowledged) == SENDS_BEFORE_KILL:
                    self._warm.set()
            else:
                self.refusals += 1
                await asyncio.sleep(PAUSE_S)

    async def _send(self, body: str) -> bool:
        try:
            answer = await self._client.post(f"/{self._queue}/messages", json={"body": body})
        except httpx.TransportError:
            return False
        assert answer.status_code < 400 or answer.status_code in {503, 504}, answer.text
        return answer.is_success


async def drain(client: httpx.AsyncClient, queue: str) -> set[str]:
    """Receive and acknowledge until the queue stays empty for a second; check for duplicates."""
    bodies: list[str] = []
    while messages := await receive(client, queue):
        bodies += [message["body"] for message in messages]
        acks = [
            {"receipt_handle": message["receipt_handle"], "action": "ack"} for message in messages
        ]
        (await client.post(f"/{queue}/settle", json={"settlements": acks})).raise_for_status()
    assert len(bodies) == len(set(bodies))
    return set(bodies)


async def receive(client: httpx.AsyncClient, queue: str) -> list[dict[str, Any]]:
    answer = await client.post(f"/{queue}/receive", json={"messages_max": 100, "wait_seconds": 1})
    answer.raise_for_status()
    return list(answer.json()["messages"])


async def new_process(millstream: Deployment, name: str, before: int) -> int:
    """Return the process id of the child that replaced `before`."""
    deadline = time.monotonic() + RESTART_S
    while (found := millstream.children().get(name, before)) == before:
        assert time.monotonic() < deadline, f"{name} was not started again"
        await asyncio.sleep(0.1)
    return found


async def ready(millstream: Deployment, client: httpx.AsyncClient) -> None:
    """Wait for readiness with both stores: a restarted one may have a log to load."""
    deadline = time.monotonic() + RESTART_S
    while (answer := await client.get(f"{millstream.url}/readyz")).is_error or AWAY in answer.text:
        assert time.monotonic() < deadline, answer.text
        await asyncio.sleep(0.1)
