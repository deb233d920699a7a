"""kill -9 of the stores during a replay: each record once, each key in order [R1]."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.acceptance.writers import insist, read_everything

RECORDS = 4_000
KEYS = 8
A_SECOND = 200
ENDED_S = 240.0
BETWEEN_KILLS_S = 4.0


@pytest.fixture
async def client(millstream) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{millstream.url}/v1", timeout=30) as client:
        yield client


@pytest.mark.chaos
async def test_replay_survives_killed_stores_without_duplicates(millstream, client):
    for stream, shards in (("orders", 2), ("again", 3)):
        (await client.put(f"/streams/{stream}", json={"shards": shards})).raise_for_status()
    for first in range(0, RECORDS, 500):
        batch = [
            {"data": str(number // KEYS), "key": f"k{number % KEYS}"}
            for number in range(first, first + 500)
        ]
        await insist(client, "/streams/orders/records", {"records": batch}, {})
    request = {
        "id": "again",
        "stream": "orders",
        "target": {"stream": "again"},
        "order": "key",
        "pacing": {"records_per_second": A_SECOND},
    }
    (await client.post("/replays", json=request)).raise_for_status()

    await until(client, lambda told: told["progress"]["sent"] > 0)
    for victim in ("valkey", "postgres"):
        os.kill(millstream.children()[victim], signal.SIGKILL)
        await asyncio.sleep(BETWEEN_KILLS_S)
    over = await until(client, lambda told: told["state"] in ("done", "failed"))

    assert over["state"] == "done", over["failure"]
    expected = {f"k{key}": [*range(RECORDS // KEYS)] for key in range(KEYS)}
    assert await read_everything(client, "/streams/again") == expected


async def until(client, holds):
    """Return the replay once the condition holds."""
    deadline = time.monotonic() + ENDED_S
    while time.monotonic() < deadline:
        try:
            answer = await client.get("/replays/again")
            if answer.is_success and holds(answer.json()):
                return answer.json()
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.2)
    raise AssertionError("it did not come to that")
