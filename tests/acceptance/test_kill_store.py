"""kill -9 of the primary of replicated stores, under load: nothing acknowledged is lost or repeated."""

import asyncio
import faulthandler
import json
import os
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.deployment import command, deployed
from tests.acceptance.load_program import client, running_load
from tests.acceptance.store_watch import StoreWatch
from tests.acceptance.test_documentation import session
from tests.acceptance.writers import insist, read_everything
from tests.conditions import eventually
from tests.documentation import DOCS

STORES = 3
REQUIRED = 2
KILLS, KILLS_MANY = 3, 50
TEST_S = 1800
"""Limit of a test with many kills; others may take five minutes."""
SENDERS = 6
SWITCH_OVERS, SWITCH_OVERS_MANY = 5, 20
RESUME_S = 5.0  # two or three on a quiet machine
STOPPED_S = 14.0  # longer than readiness tolerates
REPLY_S = 5.0  # that a call waited for a Postgres which does not answer
NO_SPARK = {"MILLSTREAM_SPARK": "off"}


@pytest.fixture
def patience(tmp_path: Path) -> Iterator[None]:
    """Let the test take longer than pytest's own limit."""
    with (tmp_path / "hangs").open("w") as file:
        faulthandler.dump_traceback_later(TEST_S, exit=True, file=file)
        yield
        faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("kills", [KILLS, pytest.param(KILLS_MANY, marks=pytest.mark.chaos)])
@pytest.mark.usefixtures("patience")
async def test_killed_primary_loses_and_repeats_nothing(kills, tmp_path, capsys):
    """A deployment of one store becomes replicated; then its primary is killed again and again.

    The first time its data directory is removed as well. Then two stores stop answering for a while. At the end one store goes
    on alone.
    """
    log, data = tmp_path / "log", tmp_path / "data"
    with (
        deployed(log, "--data", str(data), environment=NO_SPARK) as single,
        running_load(single.url, "before") as before,
    ):
        await eventually(lambda: has_messages(single.url), True)

    with deployed(log, "--data", str(data), "--replicas", "2", environment=NO_SPARK) as first:
        assert "replicated: 3 stores on this machine" in first.announcement
        watch = StoreWatch(first.url, data, REQUIRED)
        with running_load(first.url, "after") as after:
            async with watch.running():
                pauses = await kill_primaries(first.url, data, kills, watch)
                if kills == KILLS_MANY:
                    await stop_replicas(first.url)
                    await eventually(watch.is_content, True)
        sent = sorted(before.acknowledged.sent + after.acknowledged.sent)
        counts = before.acknowledged.written | after.acknowledged.written | {"kill": kills}
        written = {key: list(range(number)) for key, number in counts.items()}
        with capsys.disabled():
            print(report(pauses, len(sent), sum(counts.values()), watch))  # noqa: T201

        assert max(pauses) < RESUME_S
        assert watch.untrue_readiness() == []
        assert watch.untrue_findings() == []
        if kills == KILLS_MANY:
            assert {told.is_ok for told in watch.told} >= {True, False}
            assert {answer.is_ready for answer in watch.readiness} == {True, False}
        assert await records(first.url) == written
        assert await messages(first.url) == sent

    with deployed(log, "--data", str(data), environment=NO_SPARK) as second:
        assert "--replicas is not needed again" in second.announcement
        assert await records(second.url) == written
        in_use = command("store", "replace", "--single", "--data", str(data))
        async with client(second.url) as http:
            await eventually(lambda: insync(http), STORES)

    alone = command("store", "replace", "--single", "--data", str(data))
    with deployed(log, "--data", str(data), environment=NO_SPARK) as third:
        assert "replicated" not in third.announcement
        assert await records(third.url) == written
        async with client(third.url) as http:
            assert (await stores(http))["replication_factor"] == 1
    assert "stop it first" in in_use.stderr
    assert (alone.returncode, "has one store now" in alone.stdout) == (0, True)
    assert not (data / "valkey-2").exists()


def report(pauses: list[float], sent: int, written: int, watch: StoreWatch) -> str:
    """Return the figures of a run."""
    return (
        f"\n{len(pauses)} kills: sends resumed after {statistics.median(pauses):.2f} s (median), at most {max(pauses):.2f} s;"
        f" {sent} messages, {written} records; {len(watch.readiness)} readings of /readyz, {len(watch.told)} of doctor"
    )


async def test_page_of_replication_runs_and_switch_over_fails_no_call(tmp_path):
    """Ten of 5200 calls had an unknown outcome: connections with unconfirmed flushes were dropped."""
    data = str(tmp_path / "data")
    options = ("--data", data, "--replicas", "2")
    with deployed(tmp_path / "log", *options, environment=NO_SPARK) as replicated:
        page = DOCS / "how-to" / "replicate.md"
        printed = await asyncio.to_thread(session, page, tmp_path, replicated.url)
        statuses = await statuses_during(
            replicated.url, lambda http: switch_over(http, SWITCH_OVERS)
        )
        acknowledged = await acknowledged_by_primary(replicated.url)
        lowered = await status_after_lower_count(replicated.url)

    assert statuses == {200, 201}
    assert acknowledged == [(201, "primary"), (201, "primary"), (200, "primary"), (422, None)]
    assert lowered == 201
    assert "durability replicated: 3 of 3 stores in sync, 2 required" in printed
    assert '"duplicate":false' in printed
    assert "Primary 127.0.0.1:" in printed


async def test_replicated_deployment_outlives_silent_postgres(tmp_path):
    """Calls that need no Postgres are answered while it accepts connections and answers nothing."""
    data = tmp_path / "data"
    with deployed(
        tmp_path / "log", "--data", str(data), "--replicas", "2", environment=NO_SPARK
    ) as replicated:
        async with client(replicated.url) as http:
            for path, body in (
                ("/streams/clicks", {}),
                ("/groups/readers", {"stream": "clicks"}),
                ("/queues/orders", {}),
            ):
                (await http.put(path, json=body)).raise_for_status()
            await eventually(lambda: insync(http), STORES)
            sent = [
                (await http.post("/queues/orders/messages", json={"body": "first"})).status_code
            ]
            member = {"member": "a"}
            token = (await http.get("/groups/readers/records", params=member)).json()["token"]
            with suspended_postgres(data):
                ready = httpx.URL(replicated.url).join("/readyz")
                checks = await eventually_ready(http, ready)
                for _ in range(3):
                    answers = [
                        await http.post("/queues/orders/messages", json={"body": "again"}),
                        await http.post("/streams/clicks/records", json={"data": "again"}),
                        await http.get("/groups/readers/records", params=member | {"token": token}),
                    ]
                    token = answers[-1].json()["token"]
                    answers.append(await http.post("/groups/readers/commit", json={"token": token}))
                    sent += [answer.status_code for answer in answers]
                began = time.monotonic()
                refused = [
                    (await http.put("/streams/other", json={})).status_code for _ in range(20)
                ]
                took_s = time.monotonic() - began
            await eventually(partial(is_created, http), True)

    assert checks == {"redis": "ok", "postgres": "away, serving what is known", "migrations": "ok"}
    assert set(sent) == {200, 201}
    assert set(refused) == {503}
    assert took_s < 20 * REPLY_S  # each waited


async def eventually_ready(http: httpx.AsyncClient, ready: httpx.URL) -> dict[str, str]:
    """Return the checks of /readyz once it is 200 in the outage."""
    checks: dict[str, str] = {}

    async def is_ready() -> bool:
        answer = await http.get(ready)
        checks.update(answer.json()["checks"])
        return answer.is_success and checks.get("postgres") != "ok"

    await eventually(is_ready, True)
    checks.pop("storage", None)
    return checks


async def is_created(http: httpx.AsyncClient) -> bool:
    return (await http.put("/streams/other", json={})).is_success


@contextmanager
def suspended_postgres(data: Path) -> Iterator[None]:
    """Stop the processes of Postgres, as a machine that hangs."""
    postmaster = int((data / "postgres" / "postmaster.pid").read_text().split()[0])
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(postmaster)], check=True, capture_output=True, text=True
    )
    processes = [postmaster, *map(int, listed.stdout.split())]
    with ExitStack() as stack:
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
            stack.callback(os.kill, pid, signal.SIGCONT)
        yield


@pytest.mark.chaos
async def test_maintenance_of_stores_fails_no_call(tmp_path):
    options = ("--data", str(tmp_path / "data"), "--replicas", "2")
    with deployed(tmp_path / "log", *options, environment=NO_SPARK) as replicated:

        async def maintain(http: httpx.AsyncClient) -> None:
            await switch_over(http, SWITCH_OVERS_MANY)
            await roll_stores(http)

        statuses = await statuses_during(replicated.url, maintain)

    assert statuses == {200, 201}


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


async def statuses_during(
    url: str, work: Callable[[httpx.AsyncClient], Awaitable[None]]
) -> set[int | str]:
    """Statuses, or problems, of calls without repetition during some work: each sends, appends, receives, acknowledges, reads and commits."""
    statuses: set[int | str] = set()
    done = asyncio.Event()

    async def call(http: httpx.AsyncClient) -> None:
        queue, stream = "/queues/replicated", "/streams/acknowledged"
        while not done.is_set():
            answers = [
                await http.post(f"{queue}/messages", json={"body": "once"}),
                await http.post(f"{stream}/records", json={"data": "once"}),
                await http.get(f"{stream}/records", params={"limit": 10}),
                await http.get("/groups/readers/records", params={"limit": 10}),
                await http.post(f"{queue}/receive", json={"messages_max": 1}),
            ]
            answers.append(
                await http.post(
                    "/groups/readers/commit", json={"token": answers[3].json().get("token")}
                )
            )
            for message in answers[4].json().get("messages", ()):
                body = {
                    "settlements": [{"receipt_handle": message["receipt_handle"], "action": "ack"}]
                }
                answers.append(await http.post(f"{queue}/settle", json=body))
            statuses.update(one.text if one.is_error else one.status_code for one in answers)

    async with client(url) as http, asyncio.TaskGroup() as group:
        (await http.put("/queues/replicated", json={})).raise_for_status()
        (await http.put("/streams/acknowledged", json={})).raise_for_status()
        readers = {"stream": "acknowledged", "kind": "simple"}
        (await http.put("/groups/readers", json=readers)).raise_for_status()
        for _ in range(SENDERS):
            group.create_task(call(http))
        try:
            await work(http)
        finally:
            done.set()
    return statuses


async def switch_over(http: httpx.AsyncClient, count: int) -> None:
    """Change the primary again and again."""
    for _ in range(count):
        await eventually(lambda: insync(http), STORES)
        (await http.post("/stores/switch-over", json={})).raise_for_status()


async def roll_stores(http: httpx.AsyncClient) -> None:
    """Restart each store, the replicas first, as for an upgrade."""
    for _ in range(STORES):
        members = (await stores(http))["members"]
        for replica in [member for member in members if member["role"] == "replica"]:
            os.kill(replica["pid"], signal.SIGTERM)
            await eventually(partial(has_restarted, http, replica), True)
        await switch_over(http, 1)


async def has_restarted(http: httpx.AsyncClient, before: dict[str, Any]) -> bool:
    """Return whether a store runs as another process, and all are in sync."""
    status = await stores(http)
    member = next(one for one in status["members"] if one["address"] == before["address"])
    return bool(member.get("pid") != before["pid"] and status["insync_replicas"] == STORES)


async def kill_primaries(url: str, data: Path, kills: int, watch: StoreWatch) -> list[float]:
    """Kill the primary so many times; return how long sends waited each time, in seconds.

    Between two kills the watch sees all stores in sync too: `doctor` may say so.
    """
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
            await eventually(lambda: insync(http), STORES)
            await eventually(watch.insync, STORES)
            assert (await primary_of(http))["address"] != primary["address"]
        ready = await http.get(httpx.URL(url).join("/readyz"))
    assert ready.json()["checks"]["redis"] == "ok"
    return pauses


async def stop_replicas(url: str) -> None:
    """Suspend all stores but the primary, so that no write is acknowledged; then wait for them."""
    async with client(url) as http:
        members = (await stores(http))["members"]
        with ExitStack() as stack:
            for member in members:
                if member["role"] == "replica":
                    os.kill(member["pid"], signal.SIGSTOP)
                    stack.callback(os.kill, member["pid"], signal.SIGCONT)
            await asyncio.sleep(STOPPED_S)
        await eventually(lambda: insync(http), STORES)


async def has_messages(url: str) -> bool:
    async with client(url) as http:
        answer = await http.get("/queues/orders")
        return answer.is_success


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
