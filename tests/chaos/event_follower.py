"""A follower of server-sent events, which resumes with the last id after each disconnect."""

import asyncio
from contextlib import suppress
from typing import Any

import httpx

from tests.chaos.callers import Caller, Told
from tests.chaos.history import Gap, Kind, Outcome
from tests.chaos.stream_protocol import records_of
from tests.server_sent_events import Event, events_as_they_come

SILENT_S = 4.0
"""Reconnect after this silence: a half-open connection delivers nothing more."""
COME_BACK_S = 0.2


class Follower:
    """Read all shards of a stream from their start, and resume after disconnects."""

    def __init__(self, caller: Caller, stream: str) -> None:
        self._caller = caller
        self._stream = stream
        self.last_id = ""
        self.reached: dict[int, int] = {}
        """Next offset by shard."""

    async def follow(self, seconds: float) -> None:
        """Connect for this duration or until the connection breaks, then pause."""
        with suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(seconds):
                await self._connect()
        await asyncio.sleep(COME_BACK_S)

    async def _connect(self) -> None:
        headers = {"accept": "text/event-stream"}
        if self.last_id:
            headers["last-event-id"] = self.last_id
        invoked = self._caller.history.now()
        timeout = httpx.Timeout(SILENT_S)
        path = f"/v1/streams/{self._stream}/events"
        async with self._caller.http.stream(
            "GET", path, headers=headers, timeout=timeout
        ) as answer:
            if answer.is_success:
                async for event in events_as_they_come(answer.aiter_lines()):
                    self._hear(event)
            else:
                await answer.aread()
                self.refuse(invoked, answer.json())

    def _hear(self, event: Event) -> None:
        now, data = self._caller.history.now(), event.data
        self.last_id = event.id
        match event.kind:
            case "message":
                self.note(now, data["shard"], Told(records_of([data], data["shard"])))
                self.reached[data["shard"]] = data["offset"] + 1
            case "gap":
                gap = Gap(data["shard"], data["first"], data["next"], data["reason"])
                self.note(now, gap.shard, Told(gaps=(gap,)))
                self.reached[gap.shard] = gap.next
            case "error":
                self.refuse(now, data["problem"])
            case _:
                pass

    def note(self, now: float, shard: int, told: Told) -> None:
        """Record a record or a gap."""
        first = self.reached.get(shard, -1)
        self._caller.went_well(Kind.FOLLOWED, self._stream, now, told, first=first)

    def refuse(self, invoked: float, problem: Any) -> None:
        """Record why a connection was rejected or ended."""
        self._caller.note(
            Kind.FOLLOWED,
            self._stream,
            invoked,
            Outcome.FAIL,
            problem["status"],
            problem["code"],
            Told(),
        )
