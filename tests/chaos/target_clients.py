"""Owners of targets: a queue that is deleted and created again, and one that refuses everything.

    notices ── replaced ──▶ replaced   received from by its owner alone, who deletes it and creates it again
    crowded ─┬ full ──────▶ full       has no capacity for some time; its route takes more than its buffer holds
             └ free ──────▶ free       receives the messages of one subject meanwhile

In the history, `replaced#2` is the third queue of that name.
"""

import asyncio
from random import Random

import httpx

from tests.chaos.callers import Caller, Told
from tests.chaos.checker import REPLACED
from tests.chaos.history import Kind, Seen
from tests.chaos.queue_protocols import RestQueues
from tests.chaos.requests import send_until_done
from tests.chaos.stage import PAUSE_S, VISIBILITY_S, Stage

RECEIVES_S = 5 * PAUSE_S
FULL, FREE, CROWDED = "full", "free", "crowded"
FILLERS, FILLER_BYTES = 12, 900_000
"""Messages of more bytes than the buffer of a target holds."""

DELIVERED_S_MAX = 60.0
"""Time in which another target receives a message, also while other faults end."""
_QUEUE = {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None}
_TOPIC = {"retention_seconds": 300}
_ABSENT, _PRESENT = frozenset({204, 404}), frozenset({200, 201})


class ReplacedQueue:
    """Queue that is the target of a route, and its only worker."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._queues = RestQueues(caller)
        self._number = 0
        self._lock = asyncio.Lock()

    @property
    def log(self) -> str:
        """Log of the present queue in the history."""
        return f"{REPLACED}#{self._number}"

    async def _create(self) -> None:
        await send_until_done(self._caller.http, "PUT", f"/queues/{REPLACED}", _QUEUE, _PRESENT)

    async def receive(self) -> None:
        """Receive and acknowledge, unless the queue is being replaced."""
        async with self._lock:
            received = await self._queues.receive(self.log, 10, wait_s=0)
            for delivery in received.seen:
                await self._queues.settle(self.log, delivery, Kind.ACK)
            if received.status == 404:  # a deletion arrived late, behind the creation
                await self._note_deleted(self._caller.history.now())

    async def replace(self, lasts: float) -> None:
        """Delete the queue, and create it after this duration."""
        async with self._lock:
            invoked = self._caller.history.now()
            path = f"/queues/{REPLACED}"
            await send_until_done(self._caller.http, "DELETE", path, None, _ABSENT)
            await self._note_deleted(invoked, lasts)

    async def _note_deleted(self, invoked: float, lasts: float = 0.0) -> None:
        self._caller.went_well(Kind.TARGET_DELETED, REPLACED, invoked, Told())
        self._number += 1
        await asyncio.sleep(lasts)
        await self._create()


async def work(stage: Stage, _: str, queue: ReplacedQueue, chance: Random) -> None:
    """Receive and acknowledge what the queue has."""
    while stage.goes_on:
        await queue.receive()
        await stage.pause(chance, RECEIVES_S)


class FullQueue:
    """Topic with a route to a queue that refuses everything now and then, and one to another queue."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._fills = 0

    async def create(self) -> None:
        """Create the topic, the queues and the routes."""
        for path, config in (
            (f"/queues/{FULL}", _QUEUE),
            (f"/queues/{FREE}", _QUEUE),
            (f"/topics/{CROWDED}", _TOPIC),
            (f"/topics/{CROWDED}/routes/{FULL}", {"target": {"queue": FULL}}),
            (
                f"/topics/{CROWDED}/routes/{FREE}",
                {"target": {"queue": FREE}, "match": {"subject": FREE}},
            ),
        ):
            await self._send("PUT", path, config)

    async def fill(self, lasts: float) -> None:
        """Let the queue refuse everything for this duration, and record what the other one receives."""
        self._fills += 1
        await self._send("POST", f"/queues/{FULL}/purges", None)
        await self._limit(1)
        await self._until_failing()
        for _ in range(FILLERS):
            await self._publish(FULL, "x" * FILLER_BYTES)
        invoked = self._caller.history.now()
        value = f"fill:{self._fills}"
        seen: tuple[Seen, ...] = ()
        await self._publish(FREE, value)
        while not seen and self._caller.history.now() < invoked + DELIVERED_S_MAX:
            seen = tuple(one for one in await self._receive() if one.value == value)
        self._caller.went_well(Kind.TARGET_FULL, FULL, invoked, Told(seen), group=FREE)
        await asyncio.sleep(lasts)
        await self._limit(None)

    async def _receive(self) -> tuple[Seen, ...]:
        body = {"messages_max": 10, "wait_seconds": 1}
        answer = await self._send("POST", f"/queues/{FREE}/receive", body)
        messages = answer.json()["messages"]
        if messages:
            settled = [
                {"receipt_handle": one["receipt_handle"], "action": "ack"} for one in messages
            ]
            await self._send("POST", f"/queues/{FREE}/settle", {"settlements": settled})
        return tuple(Seen(value=one["body"], id=one["id"]) for one in messages)

    async def _publish(self, subject: str, body: str) -> None:
        await self._send("POST", f"/topics/{CROWDED}/messages", {"subject": subject, "body": body})

    async def _limit(self, messages_max: int | None) -> None:
        body = {**_QUEUE, "messages_max": messages_max}
        await self._send("PUT", f"/queues/{FULL}", body)

    async def _until_failing(self) -> None:
        """Publish until the queue refuses: the router learns of its new limit a moment later."""
        path = f"/topics/{CROWDED}/routes/{FULL}/stats"
        while True:
            await self._publish(FULL, "x")
            answer = await send_until_done(self._caller.http, "GET", path, None, {200})
            if answer.json()["state"] == "failing":
                return
            await asyncio.sleep(RECEIVES_S)

    async def _send(self, method: str, path: str, body: object) -> httpx.Response:
        return await send_until_done(self._caller.http, method, path, body, _PRESENT)
