"""Publishers, and owners of routes that change.

    notices         topic    split and merged continuously; each publisher has a key
    notices.copies  stream   receives everything
    routed          queue    its route changes its match, is paused and resumed
    notices.late    stream   receives everything, by a route that is created late and starts at the earliest message
    remade          queue    its route is put and deleted, again and again
    notices.posts   URL      receives everything, at the receiver of the webhooks
    payments        topic    FIFO, split and merged; publishers repeat the deduplication ids of accepted messages
    ledger          queue    FIFO, receives everything of payments, as notices.copies does
    visits          stream   split and merged continuously; the source of two routes
    visits.copies   stream   receives every record of visits
    visits.chosen   stream   receives records of visits, by a route whose match changes
    parcels         queue    FIFO, with a route whose match changes; what it does not match is a dead letter
    parcels.shipped stream   receives the messages of that route
    twice           queue    receives some messages by two routes, whose matches overlap
    replaced        queue    receives everything; `tests.chaos.target_clients` has its owner

Most messages are published until they are accepted, with one idempotency key, others with one call. A route has the name of its target.
"""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

import msgspec

from tests.chaos.callers import Caller, Told, nothing
from tests.chaos.checker import (
    CHOSEN,
    COPIES,
    LATE,
    PARCELS,
    PAYMENTS,
    POSTS,
    REPLACED,
    SHIPPED,
    TWICE,
    TWICE_ROUTES,
    VISIT_COPIES,
    VISITS,
)
from tests.chaos.checking.topics import ROUTE_COUNTS, SUBJECTS, subject_of
from tests.chaos.history import Kind, Operation, Outcome, Seen
from tests.chaos.requests import send_until_done
from tests.chaos.stage import (
    LEDGER,
    NOTICES,
    PAUSE_S,
    REMADE,
    ROUTED,
    VISIBILITY_S,
    Stage,
)

PUBLISH_S = 10 * PAUSE_S
CHANGE_S = 2.0
REMAKE_S = 1.0
LATE_S = 20.0
TARGETS = {
    COPIES: {"stream": COPIES},
    ROUTED: {"queue": ROUTED},
    REMADE: {"queue": REMADE},
    LEDGER: {"queue": LEDGER},
    VISIT_COPIES: {"stream": VISIT_COPIES},
    CHOSEN: {"stream": CHOSEN},
    SHIPPED: {"stream": SHIPPED},
    REPLACED: {"queue": REPLACED},
}
_TWICE = {
    "target": {"queue": TWICE},
    "match": [{"subject": SUBJECTS[0]}, {"subject": [*SUBJECTS[:2]]}],
}
"""Route of which some messages meet both matches."""

_QUEUE = {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None}
_STREAM = {"shards": 1, "archive": False}
_FIFO = {"type": "fifo", "shards": 2, "dedup_scope": "key"}
_REPEATED = 5


class Topics:
    """The topics, as publishers and owners of routes use them."""

    def __init__(self, caller: Caller) -> None:
        self.http = caller.http
        self._caller = caller

    async def create(self) -> None:
        """Create the topics, their targets, and the routes of every message."""
        for path, config in (
            (f"/queues/{ROUTED}", _QUEUE),
            (f"/queues/{REMADE}", _QUEUE),
            (f"/queues/{TWICE}", _QUEUE),
            (f"/queues/{REPLACED}", _QUEUE),
            (f"/streams/{COPIES}", _STREAM),
            (f"/streams/{LATE}", _STREAM),
            (f"/queues/{LEDGER}", {**_QUEUE, "type": "fifo"}),
            (f"/streams/{stream_of(VISITS)}", {"shards": 2, "archive": False}),
            (f"/streams/{VISIT_COPIES}", _STREAM),
            (f"/streams/{CHOSEN}", _STREAM),
            (f"/queues/{queue_of(PARCELS)}", {**_QUEUE, "type": "fifo"}),
            (f"/streams/{SHIPPED}", _STREAM),
            (f"/topics/{NOTICES}", {"shards": 2}),
            (f"/topics/{PAYMENTS}", _FIFO),
        ):
            await send_until_done(self.http, "PUT", path, config, {200, 201})
        for topic, route in (
            (NOTICES, COPIES),
            (VISITS, VISIT_COPIES),
            (PARCELS, SHIPPED),
            (NOTICES, REPLACED),
            (PAYMENTS, COPIES),
            (PAYMENTS, LEDGER),
        ):
            while (await self.put(route, SUBJECTS, topic)).outcome is not Outcome.OK:
                pass
        for route in TWICE_ROUTES:
            while (await self._put(NOTICES, route, SUBJECTS[:2], _TWICE)).outcome is not Outcome.OK:
                pass

    async def publish(self, value: str, key: str) -> Operation:
        """Publish a message under an idempotency key."""
        return await self._publish(NOTICES, value, {"key": key}, {"idempotency-key": value})

    async def visit(self, value: str, key: str) -> Operation:
        """Append a record with its subject as a header, under an idempotency key."""

        def read(answer: Any) -> Told:
            return Told((Seen(value=value, shard=answer["shard"], offset=answer["offset"]),))

        return await self._caller.rest(
            Kind.PUBLISH,
            VISITS,
            "POST",
            f"/streams/{stream_of(VISITS)}/records",
            read,
            body={"data": value, "key": key, "headers": {"subject": subject_of(value)}},
            headers={"idempotency-key": value},
            values=(value,),
        )

    async def ship(self, value: str, key: str) -> Operation:
        """Send a message to the queue, with its subject as a header, under its value as deduplication id."""
        headers = {"subject": subject_of(value)}
        return await self._caller.rest(
            Kind.PUBLISH,
            PARCELS,
            "POST",
            f"/queues/{queue_of(PARCELS)}/messages",
            nothing,
            body={"body": value, "group": key, "dedup_id": value, "headers": headers},
            values=(value,),
        )

    async def pay(self, value: str, key: str) -> Operation:
        """Publish a message to the FIFO topic, under its value as deduplication id."""
        return await self._publish(PAYMENTS, value, {"key": key, "dedup_id": value}, {})

    async def _publish(
        self, topic: str, value: str, fields: Mapping[str, str], headers: Mapping[str, str]
    ) -> Operation:
        def read(answer: Any) -> Told:
            place = {"shard": answer["shard"], "offset": answer["offset"]}
            seen = Seen(value=value, id=answer["id"], **place)
            counts = {} if answer["routes"] is None else {"routes": answer["routes"]}
            return Told((seen,), counts=counts)

        return await self._caller.rest(
            Kind.PUBLISH,
            topic,
            "POST",
            f"/topics/{topic}/messages",
            read,
            body={"body": value, "subject": subject_of(value), **fields},
            headers={**headers},
            values=(value,),
        )

    async def read_routes(self, publication: Operation) -> Operation:
        """Read which routes take an accepted message."""
        [message] = publication.seen

        def read(answer: Any) -> Told:
            numbers = tuple(route["number"] for route in answer["routes"])
            return Told((msgspec.structs.replace(message, routes=numbers),))

        path = f"/topics/{NOTICES}/messages/{message.id}/routes"
        return await self._caller.rest(Kind.DECIDED, NOTICES, "GET", path, read)

    async def put(self, route: str, subjects: Any, topic: str = NOTICES) -> Operation:
        """Put a route that takes some subjects."""
        match: Any = {"subject": sorted(subjects)}
        if topic in (VISITS, PARCELS):
            match = {"filter": {"headers": match}}
        body = {"match": match, "target": TARGETS[route]}
        return await self._put(topic, route, subjects, body)

    async def put_late(self) -> Operation:
        """Put the route that starts at the earliest message."""
        body = {"target": {"stream": LATE}, "start": "earliest"}
        return await self._put(NOTICES, LATE, SUBJECTS, body)

    async def put_url(self, target: Any, note_secret: Callable[[str], None]) -> Operation:
        """Put the route of every message to a URL; `note_secret` is given the signing secret."""
        body = {"target": {**target, "ordered": True}}
        return await self._put(NOTICES, POSTS, SUBJECTS, body, note_secret)

    async def _put(
        self,
        topic: str,
        route: str,
        subjects: Any,
        body: Any,
        note_secret: Callable[[str], None] = lambda _: None,
    ) -> Operation:
        def read(answer: Any) -> Told:
            if answer["secret"] is not None:
                note_secret(answer["secret"])
            return Told((Seen(value=route, offset=answer["number"]),))

        return await self._caller.rest(
            Kind.ROUTE,
            topic,
            "PUT",
            _path(route, topic),
            read,
            body=body,
            group=route,
            values=tuple(sorted(subjects)),
        )

    async def note_stats(self, stage: Stage, route: str) -> None:
        """Record what a route has done with the messages that it takes."""
        stored, stats = [
            (await self.http.get(f"/v1{path}")).raise_for_status().json()
            for path in (_path(route), f"{_path(route)}/stats")
        ]
        seen = (Seen(value=route, offset=stored["number"]),)
        counts = {name: stats[name] for name in ROUTE_COUNTS}
        stage.note("drain-topic", Kind.ROUTE_STATS, NOTICES, seen=seen, counts=counts)

    async def delete(self, route: str) -> Operation:
        """Delete a route."""
        return await self._caller.rest(
            Kind.ROUTE, NOTICES, "DELETE", _path(route), nothing, group=route
        )

    async def pause(self, route: str, *, paused: bool) -> None:
        """Pause a route, or resume it; it may not have been made yet."""
        method = "PUT" if paused else "DELETE"
        await send_until_done(self.http, method, f"{_path(route)}/pause", None, {200, 404})


def _path(route: str, topic: str = NOTICES) -> str:
    return f"/topics/{topic}/routes/{route}"


async def publish(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Publish one message after another with one key, each until it is accepted."""
    number = 0
    while stage.goes_on:
        number += 1
        await stage.insist(partial(topics.publish, f"{name}:{number}", name))
        await stage.pause(chance, PUBLISH_S)


async def publish_once(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Publish each message with one call, under a key of its own, and read which routes take one."""
    number, accepted = 0, list[Operation]()
    while stage.goes_on:
        number += 1
        key = f"{name}-{number}"
        done = await topics.publish(f"{key}:{number}", key)
        accepted += [done] if done.outcome is Outcome.OK else []
        if accepted:
            await topics.read_routes(chance.choice(accepted))
        await stage.pause(chance, PUBLISH_S)


def stream_of(topic: str) -> str:
    """Return the name of the stream that has a topic's messages."""
    own = topic.removeprefix("stream:")
    return own if own != topic else f"topic:{topic}"


async def visit(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Append one record after another with one key, each until it is accepted."""
    number = 0
    while stage.goes_on:
        number += 1
        await stage.insist(partial(topics.visit, f"{name}:{number}", name))
        await stage.pause(chance, PUBLISH_S)


def queue_of(topic: str) -> str:
    """Return the name of the queue whose messages a topic takes."""
    return topic.removeprefix("queue:")


async def ship(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Send one message after another with one group, each until it is accepted."""
    number = 0
    while stage.goes_on:
        number += 1
        await stage.insist(partial(topics.ship, f"{name}:{number}", name))
        await stage.pause(chance, PUBLISH_S)


async def choose(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Change the match of a route of the stream, and of one of the queue."""
    while stage.goes_on:
        for route, topic in ((CHOSEN, VISITS), (SHIPPED, PARCELS)):
            subjects = chance.sample(SUBJECTS, chance.randint(1, 2))
            await stage.insist(partial(topics.put, route, subjects, topic))
        await stage.pause(chance, CHANGE_S)


async def pay(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Publish one message after another to the FIFO topic, and repeat earlier ones."""
    number = 0
    while stage.goes_on:
        number += 1
        await stage.insist(partial(topics.pay, f"{name}:{number}", name))
        for _ in range(chance.randint(0, 2)):
            earlier = chance.randint(max(1, number - _REPEATED), number)
            await topics.pay(f"{name}:{earlier}", name)
        await stage.pause(chance, PUBLISH_S)


async def change_route(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Change the match of a route, pause it, and resume it."""
    while stage.goes_on:
        subjects = chance.sample(SUBJECTS, chance.randint(1, len(SUBJECTS)))
        await stage.insist(partial(topics.put, ROUTED, subjects))
        await stage.pause(chance, CHANGE_S)
        await topics.pause(ROUTED, paused=chance.random() < 0.5)
        await stage.pause(chance, CHANGE_S)
    await topics.pause(ROUTED, paused=False)


async def start_in_past(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Put the route that starts at the earliest message, after some time; then do nothing."""
    await stage.pause(chance, LATE_S)
    if stage.goes_on:
        await stage.insist(topics.put_late)
    while stage.goes_on:
        await stage.pause(chance)


async def remake_route(stage: Stage, name: str, topics: Topics, chance: Random) -> None:
    """Put a route and delete it, again and again."""
    while stage.goes_on:
        await stage.insist(partial(topics.put, REMADE, SUBJECTS[:2]))
        await stage.pause(chance, REMAKE_S)
        await topics.delete(REMADE)
        await stage.pause(chance, REMAKE_S)
