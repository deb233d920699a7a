"""Observers of replicated stores: what `/readyz` and `doctor` say, beside what the stores say themselves."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from storage.domain import limits
from storage.embedded.replicated_stores import StoreRecord, read_record
from tests.acceptance.deployment import command

POLL_S = 0.05
LOOK_S = 1.0
"""Time that a look at the stores takes, of which one may not answer."""
ANSWER_S = 5.0
DOCTOR_PAUSE_S = 0.5
LATE_S = 4.0
"""Tolerated delay of an answer: `/readyz` is cached for a second, and uses the result before while a store does not answer."""
TOLERATED_S = limits.REPLICAS_MISSING_TOLERATED_MS / limits.SECOND_MS


class Seen(NamedTuple):
    """Number of stores in sync at a time."""

    at: float
    insync: int


class Readiness(NamedTuple):
    """An answer of `/readyz`, between two times."""

    began: float
    ended: float
    is_ready: bool


class Told(NamedTuple):
    """A finding of `doctor` about the copies, between two times; without a number if it could not read them."""

    began: float
    ended: float
    insync: int | None
    is_ok: bool | None


class StoreWatch:
    """Observations of the time in which it ran."""

    def __init__(self, url: str, data: Path, required: int) -> None:
        record = read_record(data)
        assert record is not None
        self.seen: list[Seen] = []
        self.readiness: list[Readiness] = []
        self.told: list[Told] = []
        self._url, self._data, self._record, self._required = url, data, record, required

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch while the block runs."""
        asked, over = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look(over))
            questions = [
                group.create_task(self._ask_service(asked)),
                group.create_task(self._ask_doctor(asked)),
            ]
            try:
                yield
            finally:
                asked.set()
                await asyncio.gather(*questions)
                await asyncio.sleep(2 * POLL_S)  # what the last answer said is seen too
                over.set()

    async def _look(self, over: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            stores = [
                await stack.enter_async_context(_client(self._record, port))
                for port in self._record.ports
            ]
            while not over.is_set():
                states = await asyncio.gather(*map(_state, stores))
                self.seen.append(Seen(time.monotonic(), _insync(states)))
                await asyncio.sleep(POLL_S)

    async def _ask_service(self, over: asyncio.Event) -> None:
        async with httpx.AsyncClient(base_url=self._url, timeout=ANSWER_S) as http:
            while not over.is_set():
                began = time.monotonic()
                with suppress(httpx.TransportError):
                    is_ready = (await http.get("/readyz")).is_success
                    self.readiness.append(Readiness(began, time.monotonic(), is_ready))
                await asyncio.sleep(POLL_S)

    async def _ask_doctor(self, over: asyncio.Event) -> None:
        words = ("doctor", "--json", "--data", str(self._data), "--port", "0")
        while not over.is_set():
            began = time.monotonic()
            done = await asyncio.to_thread(command, *words)
            findings = {finding["check"]: finding for finding in json.loads(done.stdout)}
            copies = findings.get("store copies") or findings["stores"]
            count = copies["detail"].split(" of ")[0]
            insync = int(count) if count.isdecimal() else None
            self.told.append(Told(began, time.monotonic(), insync, copies["ok"]))
            await asyncio.sleep(DOCTOR_PAUSE_S)

    async def insync(self) -> int:
        """Return the number of stores that were in sync at the last look."""
        return self.seen[-1].insync

    async def is_content(self) -> bool:
        """Return whether `doctor` found all copies at last."""
        return bool(self.told and self.told[-1].is_ok)

    def untrue_readiness(self) -> list[str]:
        """Return when `/readyz` was wrong: ready long without enough stores, or not ready with them all the time."""
        return [
            f"ready: {answer.is_ready} at {answer.ended:.1f}, not so since {self._last_other(answer):.1f}"
            for answer in self.readiness
            if self._truth(answer) not in (None, answer.is_ready)
        ]

    def _truth(self, answer: Readiness) -> bool | None:
        return self._has_enough(answer.began - self._memory_s(answer), answer.ended + LOOK_S)

    def _last_other(self, answer: Readiness) -> float:
        """Return when the stores were last as the answer says."""
        return max(
            (
                seen.at
                for seen in self.seen
                if seen.at < answer.began and (seen.insync >= self._required) == answer.is_ready
            ),
            default=0.0,
        )

    def _memory_s(self, answer: Readiness) -> float:
        """Return how long before the answer the stores may have been otherwise."""
        return LATE_S + (TOLERATED_S if answer.is_ready else 0)

    def _has_enough(self, first: float, last: float) -> bool | None:
        """Return whether enough stores were in sync all the time, or None if it changed or is not known."""
        if not self.seen or first < self.seen[0].at:
            return None
        states = {seen.insync >= self._required for seen in self._between(first, last)}
        return states.pop() if len(states) == 1 else None

    def untrue_findings(self) -> list[str]:
        """Return the findings of `doctor` that were true at no time of its run."""
        return [
            f"{told.insync} in sync from {told.began:.1f} to {told.ended:.1f}, ok: {told.is_ok}"
            for told in self.told
            if not self._is_true(told)
        ]

    def _is_true(self, told: Told) -> bool:
        seen = self._between(told.began - LATE_S, told.ended + LATE_S)
        counts = {one.insync for one in seen}
        if told.insync is None:
            return told.is_ok is False and min(counts) < self._required
        return told.insync in counts and told.is_ok == self._expected(told.insync)

    def _expected(self, insync: int) -> bool | None:
        if insync < self._required:
            return False
        return True if insync == len(self._record.ports) else None

    def _between(self, first: float, last: float) -> list[Seen]:
        return [seen for seen in self.seen if first <= seen.at <= last]


def _client(record: StoreRecord, port: int) -> "redis.asyncio.Redis":
    return redis.asyncio.Redis(
        port=port,
        password=record.password,
        socket_timeout=0.5,
        socket_connect_timeout=0.5,
        retry=Retry(NoBackoff(), 0),
    )


async def _state(store: "redis.asyncio.Redis") -> dict[str, Any]:
    """Return a store's replication, and its epoch; nothing if it does not answer."""
    with suppress(RedisError, OSError, TimeoutError):
        info = await store.info("replication")
        return {**info, "epoch": int(await store.hget("ms:store", "epoch") or 0)}
    return {}


def _insync(states: list[dict[str, Any]]) -> int:
    """Count the primary and its replicas that follow it now."""
    primaries = [state for state in states if state.get("role") == "master" and state["epoch"]]
    if not primaries:
        return 0
    primary = max(primaries, key=lambda state: int(state["epoch"]))
    linked = [state for state in states if state.get("master_link_status") == "up"]
    links = [
        link
        for name, link in primary.items()
        if name.startswith("slave") and isinstance(link, dict)
    ]
    online = [link for link in links if link["state"] == "online"]
    return 1 + min(len(linked), len(online))
