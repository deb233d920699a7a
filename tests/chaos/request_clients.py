"""Callers who ask a queue and wait for replies, workers who reply, and callers who ask again.

    quotes   queue   its messages are requests; a worker replies in the acknowledgement, or before it, or dies in between

A request is sent until it is accepted, with one idempotency key. A reply is the request's value, its worker, and a number.
"""

from collections import deque
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import httpx

from tests.chaos.callers import Caller, ItemRefused, Told, nothing
from tests.chaos.history import Kind, Operation, Outcome, Seen
from tests.chaos.requests import send_until_done
from tests.chaos.stage import PAUSE_S, QUOTES, VISIBILITY_S, Stage

ASK_S = 5 * PAUSE_S
TIMEOUT_S = 8.0
WAIT_S = 2.0
REPLIES_MAX = 2
ASKED_MAX = 100
"""RequestClient, the latest, whose replies are asked for again."""

FORGED = "forged"

Answer = dict[str, Any]


class RequestClient:
    """The queue of requests, as callers and workers use it.

    `asked`: values and tokens of requests.

    `complete`: values of the requests whose replies are complete.
    """

    def __init__(self, caller: Caller, asked: deque[tuple[str, str]]) -> None:
        self._caller = caller
        self.asked = asked
        self.complete: set[str] = set()

    async def create(self) -> None:
        """Create the queue."""
        config = {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None}
        await send_until_done(self._caller.http, "PUT", f"/queues/{QUOTES}", config, {200, 201})

    async def ask(self, value: str, replies_max: int) -> Operation:
        """Send a request, and wait for its replies for a moment."""
        return await self._replies(
            Kind.ASK,
            value,
            "POST",
            f"/queues/{QUOTES}/requests",
            body={
                "body": value,
                "timeout_seconds": TIMEOUT_S,
                "wait_seconds": WAIT_S,
                "replies_max": replies_max,
            },
            headers={"idempotency-key": value},
            counts={"replies_max": replies_max},
        )

    async def ask_again(self, value: str, token: str, *, wait_s: float = 0) -> Operation:
        """Read the replies to a request."""
        path = f"/requests/{token}/reply"
        return await self._replies(Kind.ASK, value, "GET", path, query={"wait_seconds": wait_s})

    async def _replies(
        self, kind: Kind, value: str, method: str, path: str, **call: Any
    ) -> Operation:
        """Call, and note the replies separately once they are complete."""
        answers: list[Answer] = []

        def read(answer: Answer) -> Told:
            answers.append(answer)
            return Told(_seen(answer))

        done = await self._caller.rest(kind, QUOTES, method, path, read, values=(value,), **call)
        for answer in answers:
            if method == "POST":
                self.asked.append((value, answer["request"]))
            if answer["complete"]:
                self.complete.add(value)
                told = Told(_seen(answer))
                self._caller.went_well(Kind.REPLIES, QUOTES, done.invoked, told, group=value)
        return done

    async def receive(self) -> list[Answer]:
        """Receive requests, which is not part of the history: they expire."""
        path = f"/v1/queues/{QUOTES}/receive"
        answer = await self._caller.http.post(path, json={"messages_max": 5, "wait_seconds": 1})
        return list(answer.json()["messages"]) if answer.is_success else []

    async def ack(self, message: Answer, reply: str | None = None) -> Operation | None:
        """Acknowledge a request, with a reply or without."""
        settlement: Answer = {"receipt_handle": message["receipt_handle"], "action": "ack"}
        path = f"/queues/{QUOTES}/settle"
        if reply is None:
            with suppress(httpx.HTTPError):  # it is received again
                await self._caller.http.post(f"/v1{path}", json={"settlements": [settlement]})
            return None
        settlement["reply"] = {"request": message["reply_to"], "body": reply}
        body = {"settlements": [settlement]}
        return await self._reply(message, reply, path, _settled, body=body)

    async def reply(self, message: Answer, reply: str, *, forged: bool = False) -> Operation:
        """Reply to a request, or to one that nobody sent."""
        token = message["reply_to"]
        if forged:
            token = token[:-1] + ("A" if token[-1] != "A" else "Q")
        headers = {"idempotency-key": reply}
        path = f"/requests/{token}/replies"
        return await self._reply(
            message, reply, path, nothing, body={"body": reply}, headers=headers
        )

    async def _reply(
        self, message: Answer, reply: str, path: str, read: Any, **call: Any
    ) -> Operation:
        return await self._caller.rest(
            Kind.REPLY, QUOTES, "POST", path, read, group=message["body"], values=(reply,), **call
        )


def _seen(answer: Answer) -> tuple[Seen, ...]:
    return tuple(Seen(value=reply["body"]) for reply in answer["replies"])


def _settled(answer: Answer) -> Told:
    """Read the result of an acknowledgement. Raises ItemRefused if its reply may not be accepted."""
    [result] = answer["results"]
    if error := result.get("reply_error") or result.get("error"):
        raise ItemRefused(error["code"])
    return Told()


async def ask(stage: Stage, name: str, requests: RequestClient, chance: Random) -> None:
    """Send one request after another, and wait for all of its replies or its deadline."""
    number = 0
    while stage.goes_on:
        number += 1
        value = f"{name}:{number}"
        asked = await stage.insist(partial(requests.ask, value, chance.randint(1, REPLIES_MAX)))
        if asked.outcome is Outcome.OK:
            await _until_complete(stage, requests, value, chance)
        await stage.pause(chance, ASK_S)


async def _until_complete(
    stage: Stage, requests: RequestClient, value: str, chance: Random
) -> None:
    """Read the replies until they are complete, or well beyond the deadline."""
    token = next(token for asked, token in reversed(requests.asked) if asked == value)
    until = stage.history.now() + 2 * TIMEOUT_S
    while stage.history.now() < until:
        answer = await requests.ask_again(value, token, wait_s=WAIT_S)
        if answer.outcome is Outcome.OK and value in requests.complete:
            return
        await stage.pause(chance)


async def ask_again(stage: Stage, name: str, requests: RequestClient, chance: Random) -> None:
    """Read the replies to requests of others, again and again."""
    while stage.goes_on:
        if requests.asked:
            await requests.ask_again(*chance.choice(requests.asked))
        await stage.pause(chance, ASK_S)


async def work(stage: Stage, name: str, requests: RequestClient, chance: Random) -> None:
    """Receive requests, and reply in several ways; a part is received again by another worker."""
    number = 0
    while stage.goes_on:
        for message in await _received(requests):
            number += 1
            reply = f"{message['body']}/{name}:{number}"
            match chance.randrange(5):
                case 0 | 1:
                    await requests.ack(message, reply)
                case 2:
                    await requests.reply(message, reply)
                    await requests.ack(message)
                case 3:
                    await requests.reply(message, reply)
                case _:
                    await requests.reply(message, f"{FORGED}/{name}:{number}", forged=True)
        await stage.pause(chance)


async def _received(requests: RequestClient) -> list[Answer]:
    try:
        return await requests.receive()
    except httpx.HTTPError:
        return []


def new_asked() -> deque[tuple[str, str]]:
    """Return an empty list of requests, of which the latest are kept."""
    return deque(maxlen=ASKED_MAX)
