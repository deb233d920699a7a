"""kill -9 during a reshard under load: it completes, nothing is lost, order is kept."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.acceptance.writers import read_everything, write

WRITERS = 4
SHARDS = 64
BEFORE_KILL_S = 0.3  # a reshard takes longer
FINISHED_S = 120.0


@pytest.fixture
async def client(millstream) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{millstream.url}/v1/streams", timeout=30) as client:
        yield client


@pytest.mark.parametrize("victim", ["api", "postgres", "valkey"])
async def test_reshard_completes_after_kill_without_loss(millstream, client, victim):
    stream = f"/clicks-{victim}"
    (await client.put(stream, json={"shards": 2})).raise_for_status()
    done = asyncio.Event()
    writers = [asyncio.create_task(write(client, stream, f"w{n}", done)) for n in range(WRITERS)]
    await asyncio.sleep(BEFORE_KILL_S)

    reshard = asyncio.create_task(try_to_reshard(client, stream))
    await asyncio.sleep(BEFORE_KILL_S)
    os.kill(millstream.children()[victim], signal.SIGKILL)
    await reshard
    await until_finished(client, stream)
    done.set()
    written = dict(await asyncio.gather(*writers))

    assert min(written.values()) > 0
    assert await read_everything(client, stream) == {
        key: list(range(acknowledged)) for key, acknowledged in written.items()
    }


async def try_to_reshard(client: httpx.AsyncClient, stream: str) -> None:
    """Request a reshard once; its outcome is checked later. 409: an earlier one continues."""
    try:
        answer = await client.post(f"{stream}/reshard", json={"shards": SHARDS})
    except httpx.TransportError:
        return
    assert answer.is_success or answer.status_code in {409, 503, 504}, answer.text


async def until_finished(client: httpx.AsyncClient, stream: str) -> None:
    """Wait for the sweeper; request the reshard again if it never began."""
    deadline = time.monotonic() + FINISHED_S
    while time.monotonic() < deadline:
        try:
            shown = (await client.get(stream)).json()
            if shown.get("open_shards") == SHARDS:
                return
            if shown.get("version") == 1:
                await try_to_reshard(client, stream)
        except httpx.TransportError:
            pass
        await asyncio.sleep(1)
    raise AssertionError(f"not finished: {shown}")
