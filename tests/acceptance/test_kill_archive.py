"""kill -9 of the stores during archiving: nothing is lost, duplicated or reordered."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.acceptance.writers import read_everything, write

WRITERS = 4
STREAM = "/streams/clicks"
BETWEEN_KILLS_S = 3.0
ARCHIVED_S = 200.0


@pytest.fixture
async def client(millstream) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{millstream.url}/v1", timeout=30) as client:
        yield client


async def test_records_are_read_once_and_in_order_from_both_tiers(millstream, client):
    """Records are archived every second and not kept hot, so most reads are from files."""
    spec = {"shards": 2, "archive_lag_seconds": 1, "hot_retention_seconds": 0}
    (await client.put(STREAM, json=spec)).raise_for_status()
    done = asyncio.Event()
    writers = [asyncio.create_task(write(client, STREAM, f"w{n}", done)) for n in range(WRITERS)]
    first = await archived(client, at_least=1)

    for victim in ("valkey", "postgres"):
        os.kill(millstream.children()[victim], signal.SIGKILL)
        await asyncio.sleep(BETWEEN_KILLS_S)
    last = await archived(client, at_least=first + 1)
    done.set()
    written = dict(await asyncio.gather(*writers))
    records = await read_everything(client, STREAM)

    assert last > first
    assert records == {key: [*range(acknowledged)] for key, acknowledged in written.items()}
    oldest = (await client.get(f"{STREAM}/shards/0/records", params={"limit": 1})).json()
    assert (oldest["tier"], oldest["start"]) == ("archive", 0)


async def archived(client: httpx.AsyncClient, at_least: int) -> int:
    """Return the number of archived records, once it reaches the minimum."""
    deadline = time.monotonic() + ARCHIVED_S
    while time.monotonic() < deadline:
        try:
            answer = await client.get("/archives/clicks")
            if answer.is_success:
                records = sum(shard["records"] for shard in answer.json()["shards"])
                if records >= at_least:
                    return int(records)
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.2)
    raise AssertionError("nothing more was archived")
