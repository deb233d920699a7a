"""Registry of a process's sessions: opens, resumes, checks every second, and ends them."""

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress

from api.observability.logging import get_logger
from api.observability.metric_definitions import (
    WEBSOCKET_CONNECTIONS,
    WEBSOCKET_SEND_QUEUE_BYTES,
    WEBSOCKET_SESSIONS,
    WEBSOCKET_SLOW_CONSUMERS,
    WEBSOCKET_SUBSCRIPTIONS,
)
from api.websocket.codec import Wire
from api.websocket.connection import Connection, SocketClosed
from api.websocket.frames import Close, Resume, ServerPing
from api.websocket.session import PushSession
from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.limits import Limits

_GOODBYE_S = 1.0

_log = get_logger("push")


class Sessions:
    """All open sessions, with a socket or without."""

    def __init__(self, process_limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = process_limits
        self.clock = clock
        self.sockets = 0
        self.unauthenticated = 0
        self._sessions: dict[str, PushSession] = {}
        self._was_empty = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticking = asyncio.create_task(self._tick_on())

    async def close(self) -> None:
        """End all sessions; held deliveries return when their visibility timeout ends."""
        await end(self._ticking, *self._tasks)
        for session in list(self._sessions.values()):
            await self.end(session, release=False)

    # Sockets

    def connected(self, _: Connection) -> None:
        """Count an opened socket."""
        self.sockets += 1
        WEBSOCKET_CONNECTIONS.inc()

    def disconnected(self, connection: Connection) -> None:
        """Count a closed socket."""
        connection.closed = True
        self.sockets -= 1
        WEBSOCKET_CONNECTIONS.dec()

    # Sessions

    def open(self, principal: Principal, wire: Wire) -> PushSession:
        """Open a new session."""
        session = PushSession(principal, wire, self.limits.push_unconfirmed_bytes_max)
        session.detached_s = self.clock()
        self._sessions[session.id] = session
        return session

    async def resume(self, request: Resume, principal: Principal, wire: Wire) -> PushSession | None:
        """Return the session to resume, rewound to the last frame its client received.

        Returns None if it cannot be resumed. A socket that still has the session is closed: its client has reconnected.
        """
        session = self._sessions.get(request.session)
        if (
            session is None
            or not _is_same(session.principal, principal)
            or session.wire is not wire
        ):
            return None
        if not session.can_resume(request.seq):
            await self.end(session, release=True)
            return None
        if (before := session.connection) is not None:
            await session.detach(self.clock())
            await self.cut(before, Close.SUPERSEDED, "another connection resumed the session")
        session.principal = principal
        session.rewind(request.seq)
        return session

    async def end(self, session: PushSession, *, release: bool) -> None:
        """End a session and remove it."""
        self._sessions.pop(session.id, None)
        await session.end(release=release)

    def every(self) -> Collection[PushSession]:
        """Return all sessions, the oldest first."""
        return self._sessions.values()

    async def disconnect(self, session: PushSession) -> None:
        """End a session at an operator's request and release what it holds."""
        connection = session.connection
        await self.end(session, release=True)
        if connection is not None:
            await self.cut(connection, Close.CLOSED_BY_OPERATOR, "closed by an operator")

    async def expel(self, session: PushSession, connection: Connection) -> None:
        """End a session whose credential is no longer valid and release what it holds."""
        await self.end(session, release=True)
        await self.cut(connection, Close.CREDENTIAL_ENDED, "the credential expired or changed")

    def schedule_expulsion(self, session: PushSession, connection: Connection) -> None:
        """Expel in the background."""
        self._run_in_background(self.expel(session, connection))

    async def cut(self, connection: Connection, code: int, reason: str) -> None:
        """Close a socket from this side, aborting the connection if the client does not answer."""
        await connection.close(code, reason)
        abort_after_grace(connection)

    def drain_delay_ms(self) -> int:
        """Return a random reconnect delay, so that clients of a draining server spread out."""
        return random.randrange(limits.DRAIN_SPREAD_MS)  # noqa: S311

    # Time

    async def _tick_on(self) -> None:
        tick_s = self.limits.push_tick_ms / limits.SECOND_MS
        await periodic(tick_s, self._tick, "socket sessions", delay_first=True)

    async def _tick(self) -> None:
        if not self._sessions and self._was_empty:
            return
        self._was_empty = not self._sessions
        now_s = self.clock()
        subscriptions = waiting_bytes = 0
        for session in list(self._sessions.values()):
            subscriptions += len(session.subs)
            if session.connection is not None:
                waiting_bytes += session.connection.waiting_bytes
                self._check_connection(session.connection, now_s)
            elif now_s - session.detached_s >= self.limits.resume_ms / limits.SECOND_MS:
                self._run_in_background(self.end(session, release=True))
            if session.is_due:
                self._run_in_background(session.tick())
        WEBSOCKET_SESSIONS.set(len(self._sessions))
        WEBSOCKET_SUBSCRIPTIONS.set(subscriptions)
        WEBSOCKET_SEND_QUEUE_BYTES.set(waiting_bytes)

    def _check_connection(self, connection: Connection, now_s: float) -> None:
        stuck_s, pinged_s = connection.stuck_s, connection.pinged_s
        if stuck_s is not None and _ms(now_s - stuck_s) >= self.limits.slow_consumer_ms:
            connection.stuck_s = None
            WEBSOCKET_SLOW_CONSUMERS.inc()
            self._run_in_background(
                self.cut(connection, Close.SLOW_CONSUMER, "the client stopped reading")
            )
        elif pinged_s is None:
            if _ms(now_s - connection.last_received_s) >= self.limits.push_heartbeat_ms:
                connection.pinged_s = now_s
                self._run_in_background(_ping(connection))
        elif _ms(now_s - pinged_s) >= self.limits.push_pong_ms_max:
            self._run_in_background(
                self.cut(connection, Close.HEARTBEAT_MISSED, "no reply to a ping")
            )

    def _run_in_background(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine in the background: it may have to wait for a client that reads slowly."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_same(owner: Principal, other: Principal) -> bool:
    """Return whether the resuming principal is the session's owner."""
    identities = [
        (principal.name, principal.namespace, principal.credential) for principal in (owner, other)
    ]
    return identities[0] == identities[1]


def abort_after_grace(connection: Connection) -> None:
    """Abort the connection after a grace period for the client's close frame."""
    asyncio.get_running_loop().call_later(_GOODBYE_S, connection.abort)


async def _ping(connection: Connection) -> None:
    with suppress(SocketClosed):
        await connection.send(ServerPing())


def _ms(seconds: float) -> float:
    return seconds * limits.SECOND_MS
