"""The shared Spark session of a worker: opening, replacement and closing, with fakes."""

import asyncio
import logging
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]

from spark_worker.runtime.cluster import ExecutorsUnavailable
from spark_worker.runtime.session_pool import SessionPool
from spark_worker.runtime.spark_session import Session, quieten_py4j, sweep_scratch
from tests.conditions import PATIENCE_S, eventually


class FakeSession:
    """A session that can be marked dead."""

    def __init__(self) -> None:
        self.spark = object()
        self.alive = True
        self.closed = False
        self.jvm_pid = 1
        self.has_cluster = False
        self.log = ""
        self.lost: str | None = None

    def answers(self) -> bool:
        return self.alive

    def lost_reason(self) -> str | None:
        return self.lost

    def close(self, *, within_s: float = 0.0) -> None:
        self.closed = True


class Opening:
    """Open fake sessions, and record them."""

    def __init__(self) -> None:
        self.opened: list[FakeSession] = []
        self.times: list[float] = []
        self.has_cluster = False
        self.failure: Exception | None = None

    async def __call__(self) -> Session:
        self.opened.append(FakeSession())
        self.times.append(asyncio.get_running_loop().time())
        self.opened[-1].has_cluster = self.has_cluster
        if self.failure is not None:
            raise self.failure
        return cast(Session, self.opened[-1])


@pytest.fixture
def opening() -> Opening:
    return Opening()


async def test_concurrent_requests_open_one_session(opening):
    sparks = SessionPool(opening, jobs_max=10)

    got = await asyncio.gather(*(sparks.get() for _ in range(5)))

    assert len(opening.opened) == 1
    assert set(got) == {opening.opened[0].spark}


async def test_session_of_ended_jvm_is_replaced(opening):
    sparks = SessionPool(opening, jobs_max=10)
    await sparks.get()
    opening.opened[0].alive = False

    again = await sparks.get()

    assert opening.opened[0].closed
    assert again is opening.opened[1].spark


async def test_session_is_worn_after_job_limit_and_fresh_after_close(opening):
    sparks = SessionPool(opening, jobs_max=2)
    await sparks.get()

    sparks.count_job()
    worn_after_one = sparks.needs_recycling
    sparks.count_job()
    worn_after_two = sparks.needs_recycling
    await sparks.close()

    assert (worn_after_one, worn_after_two, sparks.needs_recycling) == (False, True, False)
    assert opening.opened[0].closed


@pytest.fixture
def quick_cluster(monkeypatch) -> None:
    """Short times of a session on a cluster."""
    monkeypatch.setattr("storage.domain.limits.SPARK_WATCH_MS", 5)
    monkeypatch.setattr("storage.domain.limits.SPARK_BACKOFF_MS", 100)


async def test_session_that_lost_its_cluster_is_closed_and_replaced_after_a_pause(
    opening, quick_cluster
):
    sparks, lost = SessionPool(opening, jobs_max=10), asyncio.Queue[str]()
    sparks.on_lost = lost.put_nowait
    opening.has_cluster = True
    await sparks.get()
    opening.opened[0].lost = "no executor"

    assert await lost.get() == "no executor"
    await eventually(_is_closed(opening.opened[0]), True)
    with pytest.raises(ExecutorsUnavailable, match="no executor"):
        await sparks.get()
    await asyncio.sleep(0.1)

    assert await sparks.get() is opening.opened[1].spark
    await sparks.close()


async def test_cluster_that_cannot_run_jobs_is_tried_less_and_less_often(opening, quick_cluster):
    opening.failure = ExecutorsUnavailable("other Python")
    sparks = SessionPool(opening, jobs_max=10)

    while len(opening.opened) < 3:
        with pytest.raises(ExecutorsUnavailable, match="other Python"):
            await sparks.get()
        await asyncio.sleep(0.005)

    first, second, third = opening.times
    assert second - first >= 0.1
    assert third - second >= 0.2


async def test_local_session_is_not_watched(opening, quick_cluster):
    sparks = SessionPool(opening, jobs_max=10)
    await sparks.get()
    opening.opened[0].lost = "no executor"

    await asyncio.sleep(0.05)

    assert not opening.opened[0].closed


def _is_closed(session: FakeSession) -> Callable[[], Coroutine[Any, Any, bool]]:
    async def read() -> bool:
        return session.closed

    return read


async def test_close_cancels_session_that_is_being_opened():
    begun = asyncio.Event()

    async def slowly() -> Any:
        begun.set()
        await asyncio.sleep(60)

    sparks = SessionPool(slowly, jobs_max=2)
    asking = asyncio.create_task(sparks.get())
    await begun.wait()

    async with asyncio.timeout(PATIENCE_S):
        await sparks.close()
        await asyncio.wait([asking])

    assert asking.cancelled()


@pytest.mark.parametrize("scratch", ["data", "data, old"])
def test_scratch_of_dead_processes_is_removed(scratch, tmp_path, monkeypatch):
    """Spark splits a path at commas, so its files are then in the default temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    place = tmp_path / ("tmp" if "," in scratch else scratch)
    place.mkdir()
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = place / f"millstream-spark-{gone.pid}-abc"
    mine = place / f"millstream-spark-{os.getpid()}-abc"
    others = place / "millstream-spark-notes"
    for folder in (left, mine, others):
        folder.mkdir()

    sweep_scratch(tmp_path / scratch)

    assert sorted(place.iterdir()) == sorted([mine, others])


def test_py4j_errors_of_ended_jvm_are_not_logged(caplog):
    """Py4J logs some of them with the root logger."""
    root = logging.getLogger()
    before = root.filters[:]
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as jvm:
        ending = threading.Thread(target=_end, args=(jvm,))
        ending.start()
        try:
            quieten_py4j()
            GatewayClient(port=jvm.getsockname()[1]).send_command("c", retry=False)
            root.info("of somebody else")
        finally:
            root.filters[:] = before
            ending.join()

    assert caplog.messages == ["of somebody else"]


def _end(jvm: socket.socket) -> None:
    """Receive a command and close, as a terminating JVM does."""
    connection, _ = jvm.accept()
    with connection:
        connection.recv(16)
