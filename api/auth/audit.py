"""Audit of administrative calls: record the intent, run the call, record the result.

    run     may the caller? ─ no ─▶ an entry, rate-limited per minute ─▶ Forbidden
                └ yes ─▶ snapshot, intent ─▶ the call ─▶ snapshot, entry ─▶ its answer

This applies to every protocol. Where the intent cannot be written the call is refused, and nothing has happened. The answer
waits for the entry, so that an operation that was confirmed is in the log.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from api.errors import HttpError
from api.observability.logging import get_logger
from api.types import RequestHeaders
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.audit import (
    DONE,
    LOG_IN,
    ApiProtocol,
    AuditedCall,
    Snapshot,
    outcome,
    outcome_of,
)
from storage.domain.access.credentials import PAIR_PREFIX, CredentialKind
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Action, Principal
from storage.domain.errors import Forbidden, MillstreamError

Answer = TypeVar("Answer")

_OPEN = "open"
_CLAIMED = re.compile(rb"\bmsk_([0-9A-Za-z]{12})_|\bCredential=(MSAK[A-Z2-7]{16})\b")
_log = get_logger("api.audit")


Client = Sequence[Any] | None
"""The client's address in the ASGI scope."""


class Caller(NamedTuple):
    """The caller of an operation, and its connection. `address`: the client's."""

    principal: Principal
    protocol: ApiProtocol
    address: str
    request_id: str


class AuditSubject(NamedTuple):
    """Subject of an audited call.

    `name`: the name on which permission is checked, if it is a single one. `noun`, `definition`: the definition that the call
    concerns, as in the native path, if any.
    """

    operation: str
    action: Action
    resource: str
    name: str = ""
    noun: str = ""
    definition: str = ""


class Auditing:
    """Audit log access for the protocols of one process."""

    def __init__(self, storage: Callable[[], Storage]) -> None:
        self._storage = storage
        self._ration = Ration(limits.AUDIT_REFUSALS_PER_MINUTE)
        self._notes: set[asyncio.Task[None]] = set()

    async def run(
        self,
        caller: Caller,
        subject: AuditSubject,
        call: Callable[[], Awaitable[Answer]],
        *,
        describe_result: Callable[[Answer], Snapshot | None] = lambda _: None,
        describe_error: Callable[[Exception], str] | None = None,
    ) -> Answer:
        """Run `call` with an audit entry.

        `describe_result`: the values of its answer to record that are not in the definition; `describe_error`: the outcome of an error.
        Raises what `call` does, and Forbidden, StorageUnavailable, StorageBusy, after which nothing has happened.
        """
        storage = self._storage()
        entry = self._audited_call(caller, subject, storage.audit_log.now_ms())
        await self._check(caller, subject, entry)
        before = await self._snapshot(caller, subject)
        intent = await storage.audit_log.begin(entry, before)
        try:
            answer = await call()
        except Exception as error:
            result = (describe_error or failure_outcome)(error)
            await storage.audit_log.commit(
                intent, result, await self._after(caller, subject, before)
            )
            raise
        after = await self._after(caller, subject, before)
        await storage.audit_log.commit(intent, DONE, after, describe_result(answer))
        return answer

    async def _check(self, caller: Caller, subject: AuditSubject, entry: AuditedCall) -> None:
        """Refuse a call without permission before anything is written for it. Raises Forbidden."""
        principal, storage = caller.principal, self._storage()
        try:
            if subject.name:
                resource = f"{principal.namespace}/{subject.name}"
                storage.authorizer.authorise(principal, subject.action, resource)
            else:
                storage.authorizer.authorise_list(principal, subject.action)
        except Forbidden as error:
            await self._note(entry, outcome_of(error))
            raise

    async def _snapshot(self, caller: Caller, subject: AuditSubject) -> Snapshot | None:
        if not subject.definition:
            return None
        return await self._storage().audit_snapshots.of(
            caller.principal, subject.noun, subject.definition
        )

    async def _after(
        self, caller: Caller, subject: AuditSubject, before: Snapshot | None
    ) -> Snapshot | None:
        """Return the snapshot after the call, or the one before it if that cannot be read."""
        try:
            return await self._snapshot(caller, subject)
        except MillstreamError:
            return before

    def record_anonymous_failure(
        self,
        error: Exception,
        *,
        protocol: ApiProtocol,
        client: Client,
        headers: RequestHeaders,
        request_id: bytes,
        result: str = "",
    ) -> None:
        """Record an unauthenticated caller in the background; the request does not wait for it.

        `result`: the outcome of the error, where the protocol has its own error codes.
        """
        storage = self._storage()
        entry = AuditedCall.of(
            at_ms=storage.audit_log.now_ms(),
            namespace="",
            principal="",
            credential=claimed_id(headers),
            authenticated="",
            address=address_of(client),
            protocol=protocol,
            operation=LOG_IN,
            action="",
            resource="",
            request_id=request_id.decode("latin-1"),
        )
        task = asyncio.get_running_loop().create_task(
            self._note(entry, result or failure_outcome(error))
        )
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def settled(self) -> None:
        """Wait until all entries recorded in the background are written."""
        await asyncio.gather(*self._notes, return_exceptions=True)

    async def _note(self, entry: AuditedCall, result: str) -> None:
        """Record a refusal within the rate limit, so that repeated attempts cannot fill the disk."""
        left_out = self._ration.take(entry.at_ms)
        if left_out is None:
            return
        try:
            after = {"refusals_left_out": left_out} if left_out else None
            await self._storage().audit_log.record(entry, result, after)
        except MillstreamError as error:
            _log.warning("audit_refusal_not_written", reason=error.detail)

    def _audited_call(self, caller: Caller, subject: AuditSubject, now_ms: int) -> AuditedCall:
        principal = caller.principal
        return AuditedCall.of(
            at_ms=now_ms,
            namespace=principal.namespace,
            principal=principal.name,
            credential=principal.credential,
            authenticated=authenticated_by(principal),
            address=caller.address,
            protocol=caller.protocol,
            operation=subject.operation,
            action=subject.action.value,
            resource=subject.resource,
            request_id=caller.request_id,
        )


def address_of(client: Client) -> str:
    """Return the client's address, if the connection has one."""
    return str(client[0]) if client else ""


class Ration:
    """Limit per minute, with a count of what exceeds it."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._minute = -1
        self._permitted = 0
        self._left_out = 0

    def take(self, now_ms: int) -> int | None:
        """Return None at the limit, else the number left out since the last permitted one."""
        if now_ms // limits.MINUTE_MS != self._minute:
            self._minute, self._permitted = now_ms // limits.MINUTE_MS, 0
        if self._permitted >= self._per_minute:
            self._left_out += 1
            return None
        self._permitted += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


def authenticated_by(principal: Principal) -> str:
    """Return the authentication method: the kind of the credential, or `open` in open mode.

    A ticket and a session count as the key or token that they belong to.
    """
    if principal.name == LOCAL_ADMINISTRATOR.name and not principal.credential:
        return _OPEN
    if not principal.credential:
        return CredentialKind.TOKEN.value
    pair = principal.credential.startswith(PAIR_PREFIX)
    return (CredentialKind.PAIR if pair else CredentialKind.KEY).value


def claimed_id(headers: RequestHeaders) -> str:
    """Return the credential id that an unauthenticated request shows, if it has a valid form.

    The rest of the credential is never disclosed.
    """
    shown = headers.get(b"authorization", b"") + b" " + headers.get(b"x-api-key", b"")
    match = _CLAIMED.search(shown)
    return (match[1] or match[2]).decode() if match else ""


def failure_outcome(error: Exception) -> str:
    """Return the outcome of a failed call, with the native API's error code."""
    if isinstance(error, HttpError):
        return outcome("refused", error.code.value)
    return outcome_of(error)
