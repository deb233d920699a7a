"""Clients that write down what they asked and what they were told."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import msgspec

from tests.chaos.checker import UNANSWERED
from tests.chaos.history import Gap, History, Kind, Operation, Outcome, Seen

ANSWER_S = 8.0
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
NOT_DONE = 503
"""Nothing happened, as with every status below 500."""
UNKNOWN = "storage_timeout"
"""The code of an item of which nobody knows."""
UNKNOWN_WORDS = ("may have taken effect", "is stopping")


class Told(msgspec.Struct, frozen=True):
    """What an answer said, beside that it went well."""

    seen: tuple[Seen, ...] = ()
    gaps: tuple[Gap, ...] = ()
    tier: str = ""
    generation: int = -1
    owns: tuple[int, ...] = ()


Read = Callable[[Any], Told]


class Caller:
    """One client: calls, outcomes, history."""

    def __init__(self, name: str, history: History, http: httpx.AsyncClient) -> None:
        self.name = name
        self.history = history
        self.http = http

    async def call(
        self, kind: Kind, log: str, request: httpx.Request, read: Read, **about: Any
    ) -> Operation:
        """Ask, and write down how it ended. A body that is not what was promised raises: that is our own mistake.

        `about`: what else the history is to know of it, as `Operation` has it.
        """
        invoked = self.history.now()
        outcome, status, code = Outcome.UNKNOWN, 0, ""
        told = Told()
        try:
            answer = await self.http.send(request)
        except NEVER_SENT:
            outcome = Outcome.FAIL
        except httpx.HTTPError:
            pass
        else:
            status = answer.status_code
            outcome, code = _outcome(answer)
            if outcome is Outcome.OK:
                try:
                    told = read(answer.json() if answer.content else {})
                except ItemRefused as refused:
                    outcome = Outcome.UNKNOWN if refused.code == UNKNOWN else Outcome.FAIL
                    code = refused.code
        return self.note(kind, log, invoked, outcome, status, code, told, **about)

    async def rest(
        self,
        kind: Kind,
        log: str,
        method: str,
        path: str,
        read: Read,
        *,
        body: Any = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **about: Any,
    ) -> Operation:
        """A call of the REST door."""
        request = self.http.build_request(
            method, f"/v1{path}", json=body, params=query, headers=headers
        )
        return await self.call(kind, log, request, read, **about)

    def note(
        self,
        kind: Kind,
        log: str,
        invoked: float,
        outcome: Outcome,
        status: int,
        code: str,
        told: Told,
        **about: Any,
    ) -> Operation:
        """Write an operation down that is over now."""
        operation = Operation(
            client=self.name,
            kind=kind,
            log=log,
            invoked=invoked,
            ended=self.history.now(),
            outcome=outcome,
            status=status,
            code=code,
            **{**_fields(told), **about},
        )
        self.history.add(operation)
        return operation

    def went_well(
        self, kind: Kind, log: str, invoked: float, told: Told, **about: Any
    ) -> Operation:
        """Write down what was told without having been asked for in a call of its own."""
        return self.note(kind, log, invoked, Outcome.OK, 0, "", told, **about)


class ItemRefused(Exception):
    """The call went well, and its one item did not."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def nothing(_: Any) -> Told:
    """The answer does not matter."""
    return Told()


def _fields(told: Told) -> dict[str, Any]:
    return {name: getattr(told, name) for name in Told.__struct_fields__}


def _outcome(answer: httpx.Response) -> tuple[Outcome, str]:
    if answer.is_success:
        return Outcome.OK, ""
    code = _code(answer)
    refused = answer.status_code < 500 or answer.status_code == NOT_DONE
    return (Outcome.FAIL if refused else Outcome.UNKNOWN), code


def _code(answer: httpx.Response) -> str:
    """What went wrong in a word."""
    with suppress(ValueError):
        said = answer.json()
        if is_unknown(said.get("message", "")):
            return UNANSWERED
        return str(said.get("code") or said.get("__type", "").rpartition("#")[2])
    return ""


def is_unknown(message: str) -> bool:
    """Whether an AWS door means an unknown outcome: it has one word for that and for faults, and its text tells them
    apart."""
    return any(words in message for words in UNKNOWN_WORDS)
