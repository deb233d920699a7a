"""Owner of routes to spreads, whose members and weights change. One member is missing at first, and queues are full at times.

    notices ─┬ by-key ──────▶ by-key.queue, by-key.stream, by-key.late   two of them or all, by key
             └ by-subject ──▶ by-subject.queue, by-subject.stream        by subject

Both routes receive everything that is published to `notices`.
"""

from functools import partial
from random import Random
from typing import Any

from tests.chaos.callers import Caller, Told
from tests.chaos.checker import SPREADS
from tests.chaos.checking.spreads import labels_of
from tests.chaos.checking.topics import SUBJECTS
from tests.chaos.history import Kind, Operation, Outcome, Seen
from tests.chaos.requests import send_until_done
from tests.chaos.stage import NOTICES, VISIBILITY_S, Stage

CHANGE_S = 4.0
LATE_MEMBER = "stream:by-key.late"
FIRST_TARGET = 1  # that of BY_KEY has the late member
MEMBERS = sorted(label for targets in SPREADS.values() for label in labels_of(targets))
_CONFIGS: dict[str, dict[str, Any]] = {
    "queue": {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    "stream": {"shards": 1, "archive": False},
}


class Spreads:
    """The routes, and their members."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def create(self) -> None:
        """Create the members but for the late one, and the routes."""
        for label in MEMBERS:
            if label != LATE_MEMBER:
                await self.put_member(label)
        for route in SPREADS:
            while (await self.put(route, FIRST_TARGET)).outcome is not Outcome.OK:
                pass

    async def put_member(self, label: str, **config: Any) -> None:
        """Create a member, or change its configuration."""
        kind, _, name = label.partition(":")
        path, body = f"/{kind}s/{name}", {**_CONFIGS[kind], **config}
        await send_until_done(self._caller.http, "PUT", path, body, {200, 201})

    async def limit_queues(self, messages_max: int | None) -> None:
        """Let queues refuse copies beyond so many messages."""
        for label in MEMBERS:
            if label.startswith("queue:"):
                await self.put_member(label, messages_max=messages_max)

    async def put(self, route: str, target: int) -> Operation:
        """Put a route with one of its targets."""

        def read(answer: Any) -> Told:
            return Told((Seen(value=route, offset=answer["number"], shard=target),))

        return await self._caller.rest(
            Kind.ROUTE,
            NOTICES,
            "PUT",
            f"/topics/{NOTICES}/routes/{route}",
            read,
            body={"target": SPREADS[route][target]},
            group=route,
            values=SUBJECTS,
        )


async def change(stage: Stage, _: str, spreads: Spreads, chance: Random) -> None:
    """Change the members of the routes, their weights, and what the members accept."""
    while stage.goes_on:
        await stage.pause(chance, CHANGE_S)
        await spreads.put_member(LATE_MEMBER)
        for route, targets in SPREADS.items():
            target = chance.randrange(len(targets))
            await stage.insist(partial(spreads.put, route, target))
        await spreads.limit_queues(chance.choice((1, None)))
    await spreads.limit_queues(None)


def members(kind: str) -> list[str]:
    """Return the names of the members that are queues, or streams."""
    return [label.partition(":")[2] for label in MEMBERS if label.startswith(f"{kind}:")]
