"""Providers that post signed events to sources, and clients of the targets.

    inbox         queue    received and acknowledged
    inbox.events  stream   split and merged continuously
    late-0, …     streams  deleted before the first event, and created again while events wait

An event is posted until it is accepted, and some are posted once more. A source has the name of its target.
"""

import asyncio
import hmac
import json
from functools import partial
from random import Random

from tests.chaos.callers import Caller, nothing
from tests.chaos.history import Kind, Operation, Outcome
from tests.chaos.queue_protocols import RestQueues
from tests.chaos.requests import send_until_done
from tests.chaos.stage import INBOX, INBOX_EVENTS, PAUSE_S, VISIBILITY_S, Stage

KEYS = 8
REPEATED = 0.2
"""Probability that an accepted event is posted once more."""
POSTS_S = 5 * PAUSE_S
LATE_EVENTS = 5
LATE_S = (0.5, 3.0)
LATE_ROUNDS_MAX = 20
TARGET_STREAM = {"shards": 2, "archive": False}
_SECRET = "a provider's secret"
_PRESENT, _ABSENT = {200, 201}, {204, 404}


class Sources:
    """Sources, as their owner and a provider use them."""

    def __init__(self, caller: Caller) -> None:
        self.http = caller.http
        self._caller = caller
        self._paths: dict[str, str] = {}

    async def put(self, name: str, **into: str) -> None:
        """Create the source of a target."""
        body = {"webhook": {"provider": "github", "secrets": [_SECRET]}, "into": into}
        await send_until_done(self.http, "PUT", f"/sources/{name}", body, _PRESENT)

    async def post(self, target: str, event_id: str, key: int) -> Operation:
        """Post an event."""
        body = json.dumps({"id": event_id, "key": f"key-{key}"})
        signature = hmac.digest(_SECRET.encode(), body.encode(), "sha256").hex()
        headers = {
            "content-type": "text/plain",
            "x-hub-signature-256": f"sha256={signature}",
            "x-github-delivery": event_id,
        }
        path = await self._path(target)
        request = self.http.build_request("POST", path, content=body, headers=headers)
        return await self._caller.call(Kind.EVENT, target, request, nothing, values=(body,))

    async def _path(self, name: str) -> str:
        if name not in self._paths:
            answer = await send_until_done(self.http, "GET", f"/sources/{name}/url", None, {200})
            self._paths[name] = answer.json()["path"]
        return self._paths[name]


async def post(stage: Stage, name: str, sources: Sources, chance: Random) -> None:
    """Post to the source of the queue and to that of the stream."""
    number = 0
    while stage.goes_on:
        for target in (INBOX, INBOX_EVENTS):
            await _post(stage, sources, target, f"{name}:{target}:{number}", chance)
        number += 1
        await stage.pause(chance, POSTS_S)


async def _post(stage: Stage, sources: Sources, target: str, event_id: str, chance: Random) -> None:
    """Post an event until it is accepted, and perhaps once more."""
    send = partial(sources.post, target, event_id, chance.randrange(KEYS))
    accepted = await stage.insist(send)
    if accepted.outcome is Outcome.OK and chance.random() < REPEATED:
        await send()


async def post_to_absent(stage: Stage, name: str, sources: Sources, chance: Random) -> None:
    """Post to sources whose targets are absent for a while."""
    for number in range(LATE_ROUNDS_MAX):
        if not stage.goes_on:
            return
        await _post_to_absent(stage, sources, f"late-{number}", chance)
        await stage.pause(chance, LATE_S[1])
    await stage.over.wait()


async def _post_to_absent(stage: Stage, sources: Sources, target: str, chance: Random) -> None:
    """Delete the target of a new source, post events, and create the target again."""
    path = f"/streams/{target}"
    await send_until_done(sources.http, "PUT", path, TARGET_STREAM, _PRESENT)
    await sources.put(target, stream=target, key="/key")
    await send_until_done(sources.http, "DELETE", path, None, _ABSENT)
    for number in range(LATE_EVENTS):
        await _post(stage, sources, target, f"{target}:{number}", chance)
    await asyncio.sleep(chance.uniform(*LATE_S))
    await send_until_done(sources.http, "PUT", path, TARGET_STREAM, _PRESENT)


async def receive(stage: Stage, name: str, queues: RestQueues, chance: Random) -> None:
    """Receive events from the queue and acknowledge most."""
    while stage.goes_on:
        received = await queues.receive(INBOX, 10, wait_s=1, hidden_s=VISIBILITY_S)
        for delivery in received.seen:
            if chance.random() < 0.95:
                await queues.settle(INBOX, delivery, Kind.ACK)
        if received.outcome is not Outcome.OK:
            await stage.pause(chance)
