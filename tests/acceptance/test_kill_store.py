"""kill -9 of the primary of replicated stores, under load: nothing acknowledged is lost or repeated."""

import asyncio
import json
import os
import shutil
import signal
import time
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.deployment import deployed
from tests.acceptance.test_documentation import session
from tests.acceptance.writers import insist, read_everything, write
from tests.conditions import eventually
from tests.documentation import DOCS

STORES = 3
KILLS = 3
KILLS_MANY = 25  # in each of two tests: a test may take five minutes
WRITERS = 2
SENDERS = 6
SWITCH_OVERS = 5
RESUME_S = 10.0  # two or three on a quiet machine
NO_SPARK = {"MILLSTREAM_SPARK": "off"}


@pytest.mark.parametrize(
    "kills",
    [
        KILLS,
        *(pytest.param(KILLS_MANY, id=f"many-{run}", marks=pytest.mark.chaos) for run in (1, 2)),
    ],
)
async def test_killed_primary_loses_and_repeats_nothing(kills, tmp_path):
    """A deployment of one store becomes replicated; then its primary is killed again and again.

    The first time its data directory is removed as well.
    """
    log, data = tmp_path / "log", tmp_path / "data"
    with deployed(log, "--data", str(data), environment=NO_SPARK) as single:
        before = Load(single.url, "before")
        await before.open()
        await before.run_until(lambda: asyncio.sleep(0))

    with deployed(log, "--data", str(data), "--replicas", "2", environment=NO_SPARK) as first:
        assert "replicated: 3 stores on this machine" in first.announcement
        after = Load(first.url, "after")
        pauses = await after.run_until(lambda: kill_primaries(first.url, data, kills))
        sent = sorted(before.sent | after.sent)
        written = {**before.written, **after.written, "kill": list(range(kills))}

        assert max(pauses) < RESUME_S
        assert await records(first.url) == written
        assert await messages(first.url) == sent

    with deployed(log, "--data", str(data), environment=NO_SPARK) as second:
        assert "--replicas is not needed again" in second.announcement
        assert await records(second.url) == written


async def test_page_of_replication_runs_and_switch_over_fails_no_call(tmp_path):
    """Ten of 5200 calls had an unknown outcome: connections with unconfirmed flushes were dropped."""
    data = str(tmp_path / "data")
    options = ("--data", data, "--replicas", "2")
    with deployed(tmp_path / "log", *options, environment=NO_SPARK) as replicated:
        page = DOCS / "how-to" / "replicate.md"
        printed = await asyncio.to_thread(session, page, tmp_path, replicated.url)
        statuses = await statuses_during_switch_overs(replicated.url)
        acknowledged = await acknowledged_by_primary(replicated.url)
        lowered = await status_after_lower_count(replicated.url)

    assert statuses == {201}
    assert acknowledged == [(201, "primary"), (201, "primary"), (200, "primary"), (422, None)]
    assert lowered == 201
    assert "durability replicated: 3 of 3 stores in sync, 2 required" in printed
    assert '"duplicate":false' in printed
    assert "Primary 127.0.0.1:" in printed


async def acknowledged_by_primary(url: str) -> list[tuple[int, str | None]]:
    """Status and header of a message, raw and as JSON, a record, and an invalid request."""
    header = "millstream-acknowledge"
    queue, stream = "/queues/replicated/messages", "/streams/acknowledged"
    async with client(url) as http:
        (await http.put(stream, json={})).raise_for_status()
        answers = [
            await http.post(queue, content=b"raw", headers={header: "primary"}),
            await http.post(queue, json={"body": "json"}, headers={header: "primary"}),
            await http.post(
                f"{stream}/records", json={"records": [{"data": "x"}]}, headers={header: "primary"}
            ),
            await http.post(queue, content=b"raw", headers={header: "nobody"}),
        ]
    return [(answer.status_code, answer.headers.get(header)) for answer in answers]


async def status_after_lower_count(url: str) -> int:
    """Status of a send after the count of members was raised and lowered again."""
    async with client(url) as http:
        for count in (3, 2):
            await eventually(lambda: insync(http), STORES)
            answer = await http.patch("/stores", json={"min_insync_replicas": count})
            answer.raise_for_status()
        return (await http.post("/queues/replicated/messages", json={"body": "x"})).status_code


async def statuses_during_switch_overs(url: str) -> set[int]:
    """Statuses of sends without repetition, while the primary changes again and again."""
    statuses: set[int] = set()
    done = asyncio.Event()

    async def send(http: httpx.AsyncClient) -> None:
        while not done.is_set():
            answer = await http.post("/queues/replicated/messages", json={"body": "once"})
            statuses.add(answer.status_code)

    async with client(url) as http, asyncio.TaskGroup() as group:
        for _ in range(SENDERS):
            group.create_task(send(http))
        try:
            for _ in range(SWITCH_OVERS):
                await eventually(lambda: insync(http), STORES)
                (await http.post("/stores/switch-over", json={})).raise_for_status()
        finally:
            done.set()
    return statuses


class Load:
    """Writers of numbered records and messages, each repeated until it is acknowledged."""

    def __init__(self, url: str, name: str) -> None:
        self.sent: set[str] = set()
        self.written: dict[str, list[int]] = {}
        self._name = name
        self._url = url

    async def open(self) -> None:
        """Create the queue and the stream."""
        async with client(self._url) as http:
            (await http.put("/queues/orders", json={})).raise_for_status()
            (await http.put("/streams/clicks", json={"shards": 2})).raise_for_status()

    async def run_until(self, work: Any) -> Any:
        """Write while the work runs, and return its result."""
        done = asyncio.Event()
        async with client(self._url) as http, asyncio.TaskGroup() as group:
            keys = [f"{self._name}-{number}" for number in range(WRITERS)]
            writers = [group.create_task(write(http, "/streams/clicks", key, done)) for key in keys]
            senders = [group.create_task(self._send(http, key, done)) for key in keys]
            try:
                result = await work()
            finally:
                done.set()
            await asyncio.gather(*writers, *senders)
        self.written = {
            key: list(range(number)) for key, number in (task.result() for task in writers)
        }
        return result

    async def _send(self, http: httpx.AsyncClient, key: str, done: asyncio.Event) -> None:
        for number in count():
            body = f"{key} {number}"
            headers = {"idempotency-key": f"{key}-{number}"}
            await insist(http, "/queues/orders/messages", {"body": body}, headers)
            self.sent.add(body)
            if done.is_set():
                return


async def kill_primaries(url: str, data: Path, kills: int) -> list[float]:
    """Kill the primary so many times; return how long sends waited each time, in seconds."""
    pauses = []
    async with client(url) as http:
        await eventually(lambda: insync(http), STORES)
        for number in range(kills):
            primary = await primary_of(http)
            os.kill(primary["pid"], signal.SIGKILL)
            if number == 0:
                shutil.rmtree(store_directory(data, primary["address"]), ignore_errors=True)
            began = time.monotonic()
            headers = {"idempotency-key": f"kill-{number}"}
            record = {"data": str(number), "key": "kill"}
            await insist(http, "/streams/clicks/records", record, headers)
            pauses.append(time.monotonic() - began)
            await eventually(lambda: insync(http), STORES, within_s=60)
            assert (await primary_of(http))["address"] != primary["address"]
        ready = await http.get(httpx.URL(url).join("/readyz"))
    assert ready.json()["checks"]["redis"] == "ok"
    return pauses


def client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"{url}/v1", timeout=30)


async def stores(http: httpx.AsyncClient) -> dict[str, Any]:
    return dict((await http.get("/stores")).raise_for_status().json())


async def insync(http: httpx.AsyncClient) -> int:
    return int((await stores(http))["insync_replicas"])


async def primary_of(http: httpx.AsyncClient) -> dict[str, Any]:
    members = (await stores(http))["members"]
    return next(member for member in members if member["role"] == "primary")


def store_directory(data: Path, address: str) -> Path:
    ports = json.loads((data / "stores.json").read_text())["ports"]
    number = ports.index(int(address.rpartition(":")[2])) + 1
    return data / ("valkey" if number == 1 else f"valkey-{number}")


async def records(url: str) -> dict[str, list[int]]:
    """The numbers of each writer's records, in the order of a reader."""
    async with client(url) as http:
        return dict(await read_everything(http, "/streams/clicks"))


async def messages(url: str) -> list[str]:
    """The bodies of all messages; none is in flight, so each is received once."""
    bodies: list[str] = []
    async with client(url) as http:
        while received := await receive(http):
            bodies += received
    return sorted(bodies)


async def receive(http: httpx.AsyncClient) -> list[str]:
    answer = await http.post("/queues/orders/receive", json={"messages_max": 1000})
    return [message["body"] for message in answer.raise_for_status().json()["messages"]]
