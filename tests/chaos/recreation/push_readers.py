"""Readers of a recreated stream that records are pushed to, and that resume after disconnects."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

from tests.chaos.callers import Caller, Told
from tests.chaos.checking.positions import REJECTED
from tests.chaos.event_follower import Follower
from tests.chaos.history import Kind, Outcome
from tests.chaos.recreation.readers import Track
from tests.chaos.recreation.stream import STREAM
from tests.chaos.socket_protocol import READING_CREDIT, SUB, Reader
from tests.chaos.sockets import Frame, SocketLost

CONNECTS_S = (0.5, 3.0)
SUBSCRIBES_S = 0.2
SUBSCRIBED = "validation_failed"
"""Code when the session has the subscription already, because an answer was lost with its socket."""
BREAKS = 0.02
"""Probability that the socket breaks, at each look at its subscription."""


class EventReader(Follower):
    """Follow server-sent events, and resume with the id of the last one."""

    def __init__(self, caller: Caller, chance: Random) -> None:
        super().__init__(caller, STREAM)
        self._chance = chance
        self.track = Track(caller)

    async def read(self) -> None:
        """Follow for a while."""
        await self.follow(self._chance.uniform(*CONNECTS_S))

    def note(self, now: float, shard: int, content: Told) -> None:
        self.track.note(now, content.seen, content.gaps)

    def refuse(self, invoked: float, problem: Any) -> None:
        super().refuse(invoked, problem)
        if problem["code"] in REJECTED:
            self.last_id = ""


class SocketReader(Reader):
    """Subscribe at the last offsets with the id of their stream, and resume broken sockets."""

    def __init__(self, caller: Caller, url: str, chance: Random) -> None:
        super().__init__(caller, url, STREAM)
        self._chance = chance
        self._is_subscribed = False
        self._stream_id = ""
        self.track = Track(caller)

    async def read(self) -> None:
        """Subscribe if necessary; sometimes break the socket."""
        if not self._is_subscribed:
            with suppress(SocketLost, ConnectionRefusedError):
                await self._subscribe()
        if self._chance.random() < BREAKS:
            self.session.break_socket()
        await asyncio.sleep(SUBSCRIBES_S)

    async def begins(self) -> None:
        self._is_subscribed = False

    async def _subscribe(self) -> None:
        start: Frame = {"from": "earliest"}
        if self.next_offsets and self._stream_id:
            offsets = {str(shard): offset for shard, offset in self.next_offsets.items()}
            start = {"offsets": offsets, "stream_id": self._stream_id}
        credit = {"messages": READING_CREDIT, "bytes": 1_000_000}
        self._is_subscribed = True  # records may come before the answer is read
        answer = await self._answer(
            "subscribe", source=f"stream:{STREAM}", start=start, credit=credit
        )
        if answer["type"] == "ok":
            self._stream_id = answer["stream_id"]
        else:
            self._refuse(answer["problem"])
        if answer.get("problem", {}).get("code") == SUBSCRIBED:
            await self._answer("unsubscribe")

    async def _answer(self, type_: str, **fields: Any) -> Frame:
        try:
            return await self.session.request(type_, sub=SUB, **fields)
        except (SocketLost, ConnectionRefusedError):
            self._is_subscribed = False
            raise

    async def hears(self, frame: Frame) -> None:
        if frame["type"] == "error":
            self._refuse(frame["problem"])
        else:
            await super().hears(frame)

    def note(self, shard: int, content: Told) -> None:
        self.track.note(self.caller.history.now(), content.seen, content.gaps)

    def _refuse(self, problem: Any) -> None:
        """Record why the subscription ended; begin again if its position is rejected."""
        self._is_subscribed = False
        if problem["code"] in REJECTED:
            self.next_offsets.clear()
        now = self.caller.history.now()
        status, code = problem["status"], problem["code"]
        self.caller.note(Kind.READ, STREAM, now, Outcome.FAIL, status, code, Told())
