"""Callers who ask a queue and wait for replies, workers who reply, and callers who ask again."""

import asyncio
from collections import deque
from functools import partial
from typing import Any

from storage.bootstrap import Storage
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, ReceivedMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.requests.reply import NewReply, Replies, ReplyingSettlement
from storage.domain.requests.token import REPLY_TO, RequestId, deadline_of
from storage.requests.settlements import settle
from tests.chaos.history import Kind, Operation, Outcome, Seen
from tests.chaos.request_clients import FORGED, REPLIES_MAX
from tests.chaos.stage import QUOTES, VISIBILITY_S
from tests.simulator.world import SimulatedCaller, World

PAUSE_S = 0.1
TIMEOUT_MS = 2_000
WAIT_MS = 500
ASKED_MAX = 50
DELAY_S = 1.5
"""Maximum time for which a process is held up before it sends a request."""
SLOW_S = 2.0
"""Maximum time that a worker takes."""
REPEATED = 0.7
"""Share of requests that are sent again before the first attempt ends."""
_QUEUE = QueueName(QUOTES)


async def create_queue(storage: Storage) -> None:
    """Create the queue whose messages are requests."""
    visibility_ms = int(VISIBILITY_S * 1000)
    spec = QueueSpec(visibility_timeout_ms=visibility_ms, attempts_max=None)
    await storage.catalog.put_queue(_QUEUE, spec)


async def ask(world: World, name: str) -> None:
    """Send one request after another, each until it is accepted, and read its replies.

    Those of earlier requests are read again, as other callers do.
    """
    client, number = SimulatedCaller(world, name), 0
    asked: deque[tuple[str, RequestId]] = deque(maxlen=ASKED_MAX)
    while world.goes_on:
        number += 1
        value, replies_max = f"{name}:{number}", client.chance.randint(1, REPLIES_MAX)
        requests = await _ask(client, value, replies_max)
        if requests:
            asked.extend((value, request) for request in requests)
            for request in requests:
                while not await _read(client, value, request) and world.goes_on:
                    await client.pause(PAUSE_S)
            await _read(client, *client.chance.choice(asked))
        await client.pause(PAUSE_S)


async def _ask(client: SimulatedCaller, value: str, replies_max: int) -> list[RequestId]:
    """Send a request until it is accepted, or the run ends; return its ids by deadline."""
    requests: list[RequestId] = []

    def read(request: RequestId) -> dict[str, Any]:
        requests.append(request)
        return {}

    about = {"values": (value,), "counts": {"replies_max": replies_max}}

    async def attempt(begins_s: float) -> None:
        await asyncio.sleep(begins_s)
        verb = partial(_send, value, replies_max, client.chance.uniform(-DELAY_S, DELAY_S))
        await client.call(Kind.ASK, QUOTES, verb, read, **about)

    while client.world.goes_on:
        begin_s = [0.0]
        if client.chance.random() < REPEATED:
            begin_s.append(client.chance.uniform(0, DELAY_S))
        await asyncio.gather(*(attempt(seconds) for seconds in begin_s))
        if requests:
            break
        await client.pause(PAUSE_S)
    return sorted(requests, key=lambda request: deadline_of(request.name))


async def _send(value: str, replies_max: int, delay_s: float, storage: Storage) -> RequestId:
    request = await storage.requests.open(
        _QUEUE.namespace,
        resource=f"queues/{QUOTES}",
        timeout_ms=TIMEOUT_MS,
        replies_max=replies_max,
        idempotency_key=value,
    )
    await asyncio.sleep(delay_s)
    system = ((REPLY_TO, "", request.name.encode()),)
    message = NewMessage(value.encode(), system=system, ttl_ms=TIMEOUT_MS)
    await storage.queues.send(_QUEUE, [message], idempotency_key=value)
    return request


async def _read(client: SimulatedCaller, value: str, request: RequestId) -> bool:
    """Read the replies; return whether they are complete."""
    complete: list[Replies] = []

    def read(replies: Replies) -> dict[str, Any]:
        if replies.is_complete:
            complete.append(replies)
        return {"seen": _seen(replies)}

    async def wait(storage: Storage) -> Replies:
        return await storage.requests.replies(request, wait_ms=WAIT_MS)

    done = await client.call(Kind.ASK, QUOTES, wait, read, values=(value,))
    for replies in complete:
        seen, invoked = _seen(replies), done.invoked
        client.note(Kind.REPLIES, QUOTES, invoked=invoked, group=value, seen=seen)
    return bool(complete)


def _seen(replies: Replies) -> tuple[Seen, ...]:
    return tuple(Seen(value=reply.body.decode()) for reply in replies.replies)


async def work(world: World, name: str) -> None:
    """Receive requests, and reply in several ways; a part is received again by another worker."""
    client, number = SimulatedCaller(world, name), 0
    while world.goes_on:
        for message in await client.attempt(_receive) or ():
            number += 1
            await asyncio.sleep(client.chance.uniform(-SLOW_S, SLOW_S))
            await _reply(client, message, f"{name}:{number}")
        await client.pause(PAUSE_S)


async def _receive(storage: Storage) -> list[ReceivedMessage]:
    return await storage.queues.receive(_QUEUE, messages_max=3, wait_ms=WAIT_MS)


async def _reply(client: SimulatedCaller, message: ReceivedMessage, name: str) -> None:
    value = message.body.decode()
    [token] = [text.decode() for header, _, text in message.system if header == REPLY_TO]
    reply = f"{value}/{name}"
    match client.chance.randrange(5):
        case 0 | 1:
            await _ack(client, message, token, reply)
        case 2:
            await _put(client, value, token, reply)
            ack = Settlement(message.receipt_handle, SettleAction.ACK)
            await client.attempt(lambda storage: storage.queues.settle(_QUEUE, [ack]))
        case 3:
            for number in range(client.chance.randint(1, REPLIES_MAX + 1)):
                await _put(client, value, token, f"{reply}.{number}")
        case _:
            forged = token[:-1] + ("A" if token[-1] != "A" else "Q")
            await _put(client, value, forged, f"{FORGED}/{name}")


async def _ack(client: SimulatedCaller, message: ReceivedMessage, token: str, reply: str) -> None:
    """Acknowledge a request with its reply, twice at times, as after a lost response."""
    settlement = ReplyingSettlement(
        message.receipt_handle, SettleAction.ACK, request=token, reply=NewReply(reply.encode())
    )

    async def verb(storage: Storage) -> Any:
        return await settle(storage.requests, storage.queues, _QUEUE, [settlement])

    def read(settled: Any) -> dict[str, Any]:
        error = settled[0].reply_error or settled[0].error
        return {"error": error} if error else {}

    about = {"group": message.body.decode(), "values": (reply,)}
    for _ in range(client.chance.randint(1, 2)):
        await client.call(Kind.REPLY, QUOTES, verb, read, **about)


async def _put(client: SimulatedCaller, value: str, token: str, reply: str) -> Operation:
    """Reply to a request with a key, again when the outcome is unknown."""
    request, new = RequestId(token, _QUEUE.namespace), NewReply(reply.encode())

    async def verb(storage: Storage) -> None:
        await storage.requests.reply(request, new, key=reply)

    about = {"group": value, "values": (reply,)}
    done = await client.call(Kind.REPLY, QUOTES, verb, lambda _: {}, **about)
    while done.outcome is Outcome.UNKNOWN and client.world.goes_on:
        done = await client.call(Kind.REPLY, QUOTES, verb, lambda _: {}, **about)
    return done


async def drain(world: World) -> None:
    """Do nothing: requests expire."""


CLIENTS = (*[ask] * 6, work, work, work)
