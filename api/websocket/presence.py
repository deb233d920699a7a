"""The sockets of this process, as operators see them."""

import hashlib
from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from api.websocket.session import PushSession, Subscription
from api.websocket.session_registry import Sessions
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.presence import ProcessSeen, SocketSeen, SubscriptionSeen


class SocketsHere:
    """SocketOwner of the sockets of this process: describes and closes them."""

    def __init__(self, sessions: Sessions, clock: Clock) -> None:
        self._sessions = sessions
        self._began_ms = clock.now_ms() - round(sessions.clock() * limits.SECOND_MS)

    def describe(self, process: ProcessSeen) -> ProcessSeen:
        sessions = len(self._sessions.every())
        return replace(process, sockets=self._sessions.sockets, sessions=sessions)

    def sockets(self, process: str) -> Sequence[SocketSeen]:
        """Return the oldest sockets."""
        oldest = islice(self._sessions.every(), limits.PRESENCE_SOCKETS_MAX)
        return [self._seen(session, process) for session in oldest]

    async def close(self, sockets: Sequence[str]) -> None:
        ids = set(sockets)
        for session in list(self._sessions.every()):
            if public_id(session) in ids:
                await self._sessions.disconnect(session)

    def _seen(self, session: PushSession, process: str) -> SocketSeen:
        connection = session.connection
        return SocketSeen(
            id=public_id(session),
            process=process,
            principal=session.principal.name,
            namespace=session.principal.namespace,
            address="" if connection is None else connection.address,
            protocol=session.wire.name,
            connected_at_ms=None if connection is None else self._ms(connection.opened_s),
            queued_bytes=session.queued_bytes,
            subscriptions=tuple(_subscription(sub) for sub in session.subs.values()),
        )

    def _ms(self, loop_s: float) -> int:
        return self._began_ms + round(loop_s * limits.SECOND_MS)


def public_id(session: PushSession) -> str:
    """Return the public id of a session.

    The session's own id is the secret that resumes it, and known to its client alone.
    """
    return hashlib.blake2b(session.id.encode(), digest_size=8).hexdigest()


def _subscription(sub: Subscription) -> SubscriptionSeen:
    return SubscriptionSeen(
        name=sub.name,
        source=sub.source,
        mode=sub.mode.value,
        group=sub.group,
        credit_messages=max(0, sub.credit.messages),
        credit_bytes=max(0, sub.credit.bytes),
    )
