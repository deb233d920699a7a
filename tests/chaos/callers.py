"""Clients that record each request and its outcome."""

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
"""The status that, like every one below 500, means that nothing happened."""
RETRY_AFTER = "retry-after"
UNKNOWN = "storage_timeout"
"""The code of an item with unknown outcome."""
UNKNOWN_WORDS = ("may have taken effect", "is stopping")


class Told(msgspec.Struct, frozen=True):
    """Contents of a successful response."""

    seen: tuple[Seen, ...] = ()
    gaps: tuple[Gap, ...] = ()
    tier: str = ""
    generation: int = -1
    owns: tuple[int, ...] = ()
    counts: dict[str, int] = {}


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
        """Send a request, and record its outcome.

        A malformed body raises, because it is a bug of the client. `about`: further fields of the
        `Operation`.
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
            if status == NOT_DONE and RETRY_AFTER not in answer.headers:
                about["lacks_retry_after"] = True
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
        """Call the REST API."""
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
        """Record an operation that ends now."""
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
        """Record something received without a call of its own."""
        return self.note(kind, log, invoked, Outcome.OK, 0, "", told, **about)


class ItemRefused(Exception):
    """The call succeeded, but its one item failed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def nothing(_: Any) -> Told:
    """Ignore the response."""
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
    """The error code of a response."""
    with suppress(ValueError):
        body = answer.json()
        if is_unknown(body.get("message", "")):
            return UNANSWERED
        return str(body.get("code") or body.get("__type", "").rpartition("#")[2])
    return ""


def is_unknown(message: str) -> bool:
    """Return whether an AWS error means an unknown outcome.

    AWS protocols have one code for that and for faults; only the text differs.
    """
    return any(words in message for words in UNKNOWN_WORDS)
