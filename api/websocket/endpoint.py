"""The WebSocket endpoint: from the upgrade to the last frame.

upgrade ──refused──▶ an HTTP problem
   └──▶ hello ──▶ welcome ──▶ frames both ways ──▶ closed by the client   the session ends
                                              ├──▶ the connection breaks  the session waits for another one
                                              └──▶ the server ends        bye, come back soon
"""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from api.auth.audit import Auditing, address_of
from api.auth.authenticator import Authenticator
from api.auth.revalidation import SessionRevalidator
from api.errors import HttpError, HttpErrorCode, interrupted
from api.http.request_id import HEADER as REQUEST_ID
from api.http.request_id import request_id_of
from api.http.responses import RequestContext, log_failure
from api.native.problems import PROBLEM_JSON, problem
from api.observability.metric_definitions import WEBSOCKET_CLOSED, WEBSOCKET_RESUMED
from api.types import RequestHeaders
from api.websocket.codec import JSON, WHERE, WIRES, BadFrame, Wire
from api.websocket.connection import Connection, SocketClosed
from api.websocket.frame_loop import ProtocolViolation, SocketLoop, decode_frames
from api.websocket.frames import (
    ClientFrame,
    Close,
    Hello,
    PushLimits,
    Welcome,
)
from api.websocket.session import PushSession
from api.websocket.session_registry import Sessions
from api.websocket.subscriptions.factory import SubscriptionFactory
from api.websocket.uvicorn_protocol import ABORT, DRAIN
from storage.domain import limits
from storage.domain.access.audit import ApiProtocol
from storage.domain.access.permissions import Principal
from storage.domain.errors import (
    Forbidden,
    MillstreamError,
    NamespaceNotFound,
    QuotaExceeded,
    StorageBusy,
    Unauthenticated,
    ValidationFailed,
)
from storage.quotas.connection_slots import ConnectionSlots

PATH = WHERE


class WebSocketEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The WebSocket endpoint at `/v1/ws`."""

    authenticator: Authenticator
    revalidator: SessionRevalidator
    auditing: Auditing
    sessions: Callable[[], Sessions]
    subscription_factory: Callable[[], SubscriptionFactory]
    connection_slots: Callable[[], ConnectionSlots]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = await self._accept(scope, receive, send)
        if accepted is None:
            return
        connection, principal = accepted
        try:
            socket = await self._handshake(receive, connection, principal, scope)
            if socket is not None:
                with self.revalidator.registered(socket.principal, socket.expel):
                    await socket.run(receive)
        except ProtocolViolation as violation:
            await self._close(connection, violation.code, violation.reason)
        except SocketClosed:
            pass
        except asyncio.CancelledError:  # the server's grace period is over, and closes it
            pass
        except Exception as error:
            context = RequestContext(principal)
            log_failure(error, "push", 500, request_id_of(dict(scope["headers"])), context)
            await self._close(connection, Close.INTERNAL_ERROR, "internal error")
        finally:
            if connection.slot_namespace is not None:
                self.connection_slots().release(connection.slot_namespace)
            self.sessions().disconnected(connection)

    async def _accept(
        self, scope: Scope, receive: Receive, send: Send
    ) -> tuple[Connection, Principal | None] | None:
        """Accept the upgrade and return the connection with its principal, if known.

        Returns None when the upgrade was refused.
        """
        headers = dict(scope["headers"])
        try:
            principal = await self._admit(headers, scope["query_string"])
            if scope["path"] != PATH:
                raise HttpError(HttpErrorCode.NOT_FOUND, f"The WebSocket endpoint is {PATH}.")
            wire = _wire(scope["subprotocols"])
            self._check_capacity()
            if principal is not None:
                await self.connection_slots().acquire(principal.namespace)
        except (Exception, asyncio.CancelledError) as raised:
            error = raised if isinstance(raised, Exception) else interrupted("GET")
            self._note(error, scope)
            await receive()
            await _deny(send, error, request_id_of(headers))
            return None
        try:
            await receive()  # the connect event
            chosen = wire.name if wire.name in scope["subprotocols"] else None
            await send({"type": "websocket.accept", "subprotocol": chosen})
        except BaseException:
            if principal is not None:
                self.connection_slots().release(principal.namespace)
            raise
        abort = scope.get("extensions", {}).get(ABORT, _nothing)
        connection = Connection(send, abort, wire, self.sessions().clock)
        connection.slot_namespace = None if principal is None else principal.namespace
        connection.address = address_of(scope.get("client"))
        connection.client = headers.get(b"user-agent", b"")
        self.sessions().connected(connection)
        return connection, principal

    def _note(self, error: Exception, scope: Scope) -> None:
        """Record an unauthenticated failure in the audit log."""
        if isinstance(error, Unauthenticated):
            headers = dict(scope["headers"])
            self.auditing.record_anonymous_failure(
                error,
                protocol=ApiProtocol.WS,
                client=scope.get("client"),
                headers=headers,
                request_id=request_id_of(headers),
            )

    async def _admit(self, headers: RequestHeaders, query_string: bytes) -> Principal | None:
        """Authenticate the upgrade; None when `hello` is to carry the token.

        Browsers cannot send headers with an upgrade.
        """
        ticket = dict(parse_qsl(query_string.decode("latin-1"))).get("ticket")
        if ticket is not None:
            return await self.authenticator.authenticate_token(ticket, headers)
        if not self.authenticator.is_anonymous(headers):
            return await self.authenticator.authenticate(headers)
        if self.sessions().unauthenticated >= limits.ANONYMOUS_CONNECTIONS_MAX:
            raise StorageBusy("Too many connections are not yet authenticated.")
        return None

    def _check_capacity(self) -> None:
        sessions = self.sessions()
        if sessions.sockets >= sessions.limits.sockets_max:
            raise StorageBusy("Too many open connections; another process may have capacity.")

    async def _handshake(
        self,
        receive: Receive,
        connection: Connection,
        principal: Principal | None,
        scope: Scope,
    ) -> "SocketLoop | None":
        """Process the first frames and return the socket with its session; None if it is closed."""
        sessions = self.sessions()
        sessions.unauthenticated += principal is None
        try:
            frames = await self._first_frames(receive, connection)
        finally:
            sessions.unauthenticated -= principal is None
        if not frames:
            return None
        hello, rest = frames[0], frames[1:]
        if not isinstance(hello, Hello):
            raise ProtocolViolation(Close.PROTOCOL_ERROR, "the first frame must be 'hello'")
        principal = await self._principal_of(hello, principal, scope)
        await self._acquire_slot(connection, principal)
        session = await self._session(connection, principal, hello)
        return SocketLoop(session, connection, self.subscription_factory(), self.sessions(), rest)

    async def _acquire_slot(self, connection: Connection, principal: Principal) -> None:
        """Ensure that the socket holds a connection slot in its principal's namespace.

        Raises ProtocolViolation.
        """
        if connection.slot_namespace == principal.namespace:
            return
        try:
            await self.connection_slots().acquire(principal.namespace)
        except QuotaExceeded as error:
            raise ProtocolViolation(Close.TOO_MANY, error.detail) from None
        except NamespaceNotFound as error:
            raise ProtocolViolation(Close.UNAUTHENTICATED, error.detail) from None
        except MillstreamError as error:
            raise ProtocolViolation(Close.INTERNAL_ERROR, error.detail) from None
        before, connection.slot_namespace = connection.slot_namespace, principal.namespace
        if before is not None:
            self.connection_slots().release(before)

    async def _principal_of(
        self, hello: Hello, principal: Principal | None, scope: Scope
    ) -> Principal:
        """Return the principal of the `hello`. Raises ProtocolViolation."""
        try:
            if hello.token:
                return await self.authenticator.authenticate_token(
                    hello.token, dict(scope["headers"])
                )
        except (Unauthenticated, Forbidden, ValidationFailed) as error:
            self._note(error, scope)
            raise ProtocolViolation(Close.UNAUTHENTICATED, error.detail) from None
        if principal is None:
            raise ProtocolViolation(Close.UNAUTHENTICATED, "'hello' requires a token")
        return principal

    async def _first_frames(
        self, receive: Receive, connection: Connection
    ) -> Sequence[ClientFrame]:
        process_limits = self.sessions().limits
        try:
            async with asyncio.timeout(process_limits.hello_ms_max / limits.SECOND_MS):
                message = await receive()
        except TimeoutError:
            raise ProtocolViolation(Close.HELLO_TIMEOUT, "no 'hello' arrived in time") from None
        if message["type"] == DRAIN:
            await self._close(connection, Close.DRAINING, "the server is shutting down")
            return ()
        if message["type"] != "websocket.receive":
            return ()
        try:
            return decode_frames(connection.wire, message)
        except BadFrame as bad:
            raise ProtocolViolation(Close.PROTOCOL_ERROR, bad.error.detail) from None

    async def _session(
        self, connection: Connection, principal: Principal, hello: Hello
    ) -> PushSession:
        """Resume or open the session of a socket and send its `welcome`."""
        sessions = self.sessions()
        session = None
        if hello.resume is not None:
            session = await sessions.resume(hello.resume, principal, connection.wire)
            WEBSOCKET_RESUMED.labels("false" if session is None else "true").inc()
        resumed = session is not None
        session = session or sessions.open(principal, connection.wire)
        process_limits = sessions.limits
        try:
            await connection.send(
                Welcome(
                    session.id,
                    resumed,
                    process_limits.push_heartbeat_ms / limits.SECOND_MS,
                    process_limits.push_pong_ms_max / limits.SECOND_MS,
                    process_limits.resume_ms / limits.SECOND_MS,
                    PushLimits(),
                )
            )
        except SocketClosed:
            if not resumed:
                await sessions.end(session, release=True)
            raise
        return session

    async def _close(self, connection: Connection, code: int, reason: str) -> None:
        WEBSOCKET_CLOSED.labels(str(code)).inc()
        await self.sessions().cut(connection, code, reason)


def _nothing() -> None:
    """Do nothing: without a way to abort the connection, closing it must suffice."""


def _wire(offered: Sequence[str]) -> Wire:
    """Return the first offered subprotocol that is supported; JSON if none is offered."""
    if not offered:
        return JSON
    for name in offered:
        if name in WIRES:
            return WIRES[name]
    names = ", ".join(WIRES)
    raise HttpError(HttpErrorCode.SUBPROTOCOL_UNKNOWN, f"Supported subprotocols: {names}.")


async def _deny(send: Send, error: Exception, request_id: bytes) -> None:
    """Refuse the upgrade with a problem response."""
    refusal = problem(error, instance=PATH, request_id=request_id.decode())
    log_failure(error, "push", refusal.status, request_id)
    headers = [
        (b"content-type", PROBLEM_JSON.encode()),
        (b"content-length", b"%d" % len(refusal.body)),
        (REQUEST_ID, request_id),
        *refusal.headers,
    ]
    await send(
        {"type": "websocket.http.response.start", "status": refusal.status, "headers": headers}
    )
    await send({"type": "websocket.http.response.body", "body": refusal.body})


def upgrade_required() -> HttpError:
    """Return the error for a plain HTTP request to the endpoint."""
    headers = ((b"upgrade", b"websocket"),)
    return HttpError(HttpErrorCode.UPGRADE_REQUIRED, "This is a WebSocket endpoint.", headers)
