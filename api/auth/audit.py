"""Holds every door to the audit log: an administrative call is noted, done, and told.

    run     may the caller? ─ no ─▶ an entry, so many a minute ─▶ Forbidden
                └ yes ─▶ snapshot, intent ─▶ the call ─▶ snapshot, entry ─▶ its answer

Where the intent cannot be written the call is refused, and nothing has happened. The answer waits for the entry, so that
whoever hears that something was done finds it in the log.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from api.errors import Refusal
from api.observability.logging import get_logger
from api.types import RequestHeaders
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.audit import DONE, LOG_IN, Asked, Door, Shown, outcome, outcome_of
from storage.domain.access.credentials import PAIR_PREFIX, CredentialKind
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Action, Principal
from storage.domain.errors import Forbidden, MillstreamError

Answer = TypeVar("Answer")

_OPEN = "open"
_CLAIMED = re.compile(rb"\bmsk_([0-9A-Za-z]{12})_|\bCredential=(MSAK[A-Z2-7]{16})\b")
_log = get_logger("api.audit")


Client = Sequence[Any] | None
"""A connection's other end, as ASGI has it."""


class Caller(NamedTuple):
    """Who calls, and how. `address`: of the connection's other end."""

    principal: Principal
    door: Door
    address: str
    request_id: str


class About(NamedTuple):
    """What a caller wants. `name`: what the right to it is asked on, if on one thing.

    `noun`, `thing`: the definition that it is about, as the native path has it, if any.
    """

    operation: str
    action: Action
    resource: str
    name: str = ""
    noun: str = ""
    thing: str = ""


class Auditing:
    """The doors' way into the log of one process."""

    def __init__(self, storage: Callable[[], Storage]) -> None:
        self._storage = storage
        self._ration = Ration(limits.AUDIT_REFUSALS_PER_MINUTE)
        self._notes: set[asyncio.Task[None]] = set()

    async def run(
        self,
        caller: Caller,
        about: About,
        call: Callable[[], Awaitable[Answer]],
        *,
        told: Callable[[Answer], Shown | None] = lambda _: None,
        spell: Callable[[Exception], str] | None = None,
    ) -> Answer:
        """Do `call`, audited. `told`: what its answer says that is no definition; `spell`: the outcome that an error is.

        Raises what `call` does, and Forbidden, StorageUnavailable, StorageBusy, after which nothing has happened.
        """
        storage = self._storage()
        asked = self._asked(caller, about, storage.audit.now_ms())
        await self._check(caller, about, asked)
        before = await self._snapshot(caller, about)
        intent = await storage.audit.intend(asked, before)
        try:
            answer = await call()
        except Exception as error:
            word = (spell or spelled)(error)
            await storage.audit.conclude(intent, word, await self._after(caller, about, before))
            raise
        after = await self._after(caller, about, before)
        await storage.audit.conclude(intent, DONE, after, told(answer))
        return answer

    async def _check(self, caller: Caller, about: About, asked: Asked) -> None:
        """Refuse before anything is written for it what the caller may not do. Raises Forbidden."""
        principal, storage = caller.principal, self._storage()
        try:
            if about.name:
                resource = f"{principal.namespace}/{about.name}"
                storage.access.authorise(principal, about.action, resource)
            else:
                storage.access.authorise_list(principal, about.action)
        except Forbidden as error:
            await self._note(asked, outcome_of(error))
            raise

    async def _snapshot(self, caller: Caller, about: About) -> Shown | None:
        if not about.thing:
            return None
        return await self._storage().snapshots.of(caller.principal, about.noun, about.thing)

    async def _after(self, caller: Caller, about: About, before: Shown | None) -> Shown | None:
        """As it is now; as it was, where that cannot be told."""
        try:
            return await self._snapshot(caller, about)
        except MillstreamError:
            return before

    def note_stranger(
        self,
        error: Exception,
        door: Door,
        client: Client,
        headers: RequestHeaders,
        request_id: bytes,
        word: str = "",
    ) -> None:
        """Tell of a caller whom nobody knows, beside its request, which does not wait for that.

        `word`: the outcome that the error is, where its door has words of its own.
        """
        storage = self._storage()
        asked = Asked.of(
            at_ms=storage.audit.now_ms(),
            namespace="",
            principal="",
            credential=claimed_id(headers),
            authenticated="",
            address=address_of(client),
            door=door,
            operation=LOG_IN,
            action="",
            resource="",
            request_id=request_id.decode("latin-1"),
        )
        task = asyncio.get_running_loop().create_task(self._note(asked, word or spelled(error)))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def settled(self) -> None:
        """Return when all that was told so is written."""
        await asyncio.gather(*self._notes, return_exceptions=True)

    async def _note(self, asked: Asked, word: str) -> None:
        """Tell of a refusal, if the ration has room: who tries and tries fills no disk."""
        left_out = self._ration.take(asked.at_ms)
        if left_out is None:
            return
        try:
            after = {"refusals_left_out": left_out} if left_out else None
            await self._storage().audit.record(asked, word, after)
        except MillstreamError as error:
            _log.warning("audit_refusal_not_written", reason=error.detail)

    def _asked(self, caller: Caller, about: About, now_ms: int) -> Asked:
        principal = caller.principal
        return Asked.of(
            at_ms=now_ms,
            namespace=principal.namespace,
            principal=principal.name,
            credential=principal.credential,
            authenticated=authenticated_by(principal),
            address=caller.address,
            door=caller.door,
            operation=about.operation,
            action=about.action.value,
            resource=about.resource,
            request_id=caller.request_id,
        )


def address_of(client: Client) -> str:
    """The address of a connection's other end, where it has one."""
    return str(client[0]) if client else ""


class Ration:
    """So many in a minute, and a count of those beyond."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._minute = -1
        self._taken = 0
        self._left_out = 0

    def take(self, now_ms: int) -> int | None:
        """None when there are no more; else how many were left out since the last that was had."""
        if now_ms // limits.MINUTE_MS != self._minute:
            self._minute, self._taken = now_ms // limits.MINUTE_MS, 0
        if self._taken >= self._per_minute:
            self._left_out += 1
            return None
        self._taken += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


def authenticated_by(principal: Principal) -> str:
    """How a caller was known: `open` where nobody is asked, else by the kind of its credential.

    A ticket and a session are those of a key, or of a token.
    """
    if principal.name == LOCAL_ADMINISTRATOR.name and not principal.credential:
        return _OPEN
    if not principal.credential:
        return CredentialKind.TOKEN.value
    pair = principal.credential.startswith(PAIR_PREFIX)
    return (CredentialKind.PAIR if pair else CredentialKind.KEY).value


def claimed_id(headers: RequestHeaders) -> str:
    """The id in what a stranger showed, where it has the form of one: the rest of it is told to nobody."""
    shown = headers.get(b"authorization", b"") + b" " + headers.get(b"x-api-key", b"")
    found = _CLAIMED.search(shown)
    return (found[1] or found[2]).decode() if found else ""


def spelled(error: Exception) -> str:
    """How a call ended, in the words of the native API."""
    if isinstance(error, Refusal):
        return outcome("refused", error.code.value)
    return outcome_of(error)
