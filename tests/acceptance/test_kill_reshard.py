"""kill -9 in the middle of a reshard, under load: it is finished, nothing is lost or doubled, order is kept."""

import asyncio
import os
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from itertools import count

import httpx
import pytest

from tests.acceptance.deployment import Deployment, deployed

WRITERS = 4
SHARDS = 64
BEFORE_KILL_S = 0.3  # of a reshard that takes longer
FINISHED_S = 60.0
PAUSE_S = 0.05


@pytest.fixture(scope="module")
def millstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    place = tmp_path_factory.mktemp("kill")
    with deployed(place / "log", "--data", str(place / "data")) as deployment:
        yield deployment


@pytest.fixture
async def client(millstream: Deployment) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{millstream.url}/v1/streams", timeout=30) as client:
        yield client


@pytest.mark.parametrize("victim", ["api", "postgres", "valkey"])
async def test_a_reshard_is_finished_after_a_kill_and_no_record_is_lost_or_doubled(
    millstream, client, victim
):
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


async def write(
    client: httpx.AsyncClient, stream: str, key: str, done: asyncio.Event
) -> tuple[str, int]:
    """Append numbers, each until it is acknowledged, with an idempotency key; how many."""
    for number in count():
        if done.is_set():
            return key, number
        record = {"data": str(number), "key": key}
        headers = {"idempotency-key": f"{key}-{number}"}
        await insist(client, f"{stream}/records", record, headers)
    raise AssertionError


async def insist(
    client: httpx.AsyncClient, path: str, body: dict[str, str], headers: dict[str, str]
) -> None:
    for _ in count():
        if await succeeds(client, path, body, headers):
            return
        await asyncio.sleep(PAUSE_S)


async def succeeds(
    client: httpx.AsyncClient, path: str, body: dict[str, str], headers: dict[str, str]
) -> bool:
    try:
        answer = await client.post(path, json=body, headers=headers)
    except httpx.TransportError:
        return False
    assert answer.status_code < 400 or answer.status_code in {503, 504}, answer.text
    return answer.is_success


async def try_to_reshard(client: httpx.AsyncClient, stream: str) -> None:
    """Ask once; what becomes of it is seen later."""
    try:
        answer = await client.post(f"{stream}/reshard", json={"shards": SHARDS})
    except httpx.TransportError:
        return
    assert answer.is_success or answer.status_code in {503, 504}, answer.text


async def until_finished(client: httpx.AsyncClient, stream: str) -> None:
    """Wait for the sweep; a reshard that never began is asked for again."""
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


async def read_everything(client: httpx.AsyncClient, stream: str) -> dict[str, list[int]]:
    """The numbers of each key, in the order in which a reader of the stream meets them."""
    found: dict[str, list[int]] = defaultdict(list)
    cursor = ""
    while True:
        answer = await client.get(f"{stream}/records", params={"cursor": cursor, "limit": 1000})
        page = answer.raise_for_status().json()
        for record in page["records"]:
            found[record["key"]].append(int(record["data"]))
        if page["next_cursor"] == cursor:
            return found
        cursor = page["next_cursor"]
