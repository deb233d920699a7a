"""Frame loop of a WebSocket, from the welcome on."""

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import assert_never, cast

from msgspec import UNSET
from starlette.types import Message, Receive

from api.observability.metric_definitions import WEBSOCKET_CLOSED
from api.websocket.codec import BadFrame, Malformed, Wire
from api.websocket.connection import Connection, SocketClosed
from api.websocket.frames import (
    Ack,
    ClientFrame,
    ClientPing,
    ClientPong,
    ClientReply,
    Close,
    Credit,
    Extend,
    GiveUp,
    Hello,
    Nack,
    Publish,
    Reject,
    Release,
    Request,
    ServerOk,
    ServerPong,
    Settling,
    Subscribe,
    Unsubscribe,
)
from api.websocket.session import PushSession, Subscription
from api.websocket.session_registry import Sessions, abort_after_grace
from api.websocket.subscriptions.factory import SubscriptionFactory
from api.websocket.subscriptions.group import GroupSubscription
from api.websocket.subscriptions.queue import QueueSubscription
from api.websocket.uvicorn_protocol import DRAIN, LOST
from storage.domain.access.permissions import Principal
from storage.domain.errors import MillstreamError, ValidationFailed

_DRAINED_S = 1.0  # grace period in which a draining client may still settle


class _Ending(Enum):
    """Ways in which a socket can end."""

    CLOSED = "closed"
    LOST = "lost"
    DRAINED = "drained"


class ProtocolViolation(Exception):
    """A reason to close the socket; the client receives it."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class SocketLoop:
    """One socket of a session, from the welcome on."""

    __slots__ = ("_connection", "_first", "_session", "_sessions", "_subscription_factory")

    def __init__(
        self,
        session: PushSession,
        connection: Connection,
        subscription_factory: SubscriptionFactory,
        sessions: Sessions,
        first: Sequence[ClientFrame],
    ) -> None:
        self._session = session
        self._connection = connection
        self._subscription_factory = subscription_factory
        self._sessions = sessions
        self._first = first  # frames in the same message as the hello

    @property
    def principal(self) -> Principal:
        """The principal that owns the session."""
        return self._session.principal

    def expel(self) -> None:
        """End the session because its credential is no longer valid."""
        self._sessions.schedule_expulsion(self._session, self._connection)

    async def run(self, receive: Receive) -> None:
        """Process frames until the socket ends, then detach or end the session."""
        try:
            self._session.attach(self._connection)
        except SocketClosed:
            raise ProtocolViolation(
                Close.SUPERSEDED, "another connection resumed the session"
            ) from None
        ending = _Ending.LOST
        try:
            for frame in self._first:
                await self._take(frame)
            self._first = ()
            while (message := await receive())["type"] == "websocket.receive":
                await self._take_message(message)
                del message  # an idle socket holds as little memory as it can
            ending = await self._drain(receive) if message["type"] == DRAIN else _ending(message)
        except SocketClosed:
            pass
        except ProtocolViolation:
            ending = _Ending.CLOSED
            raise
        finally:
            await asyncio.shield(self._finish(ending))

    async def _finish(self, ending: _Ending) -> None:
        if self._session.connection is not self._connection:
            return  # another socket has taken the session
        await self._session.detach(self._sessions.clock())
        await self._session.published()
        match ending:
            case _Ending.CLOSED:
                await self._sessions.end(self._session, release=True)
            case _Ending.DRAINED:  # its client may settle over another process
                await self._sessions.end(self._session, release=False)
            case _Ending.LOST:
                return
            case _:
                assert_never(ending)

    async def _drain(self, receive: Receive) -> _Ending:
        """Send `bye`, then process frames for a short grace period."""
        await self._session.detach(self._sessions.clock())
        self._session.connection = self._connection  # for answers only; nothing more is delivered
        after_ms = self._sessions.drain_delay_ms()
        await self._connection.send_goodbye(Close.DRAINING, "the server is shutting down", after_ms)
        try:
            async with asyncio.timeout(_DRAINED_S):
                while (message := await receive())["type"] == "websocket.receive":
                    await self._take_message(message)
        except TimeoutError:
            WEBSOCKET_CLOSED.labels(str(Close.RESTART)).inc()
            await self._connection.close_only(Close.RESTART, "the server is shutting down")
            abort_after_grace(self._connection)
        return _Ending.DRAINED

    async def _take_message(self, message: Message) -> None:
        self._connection.frame_received()
        try:
            frames = decode_frames(self._connection.wire, message)
        except BadFrame as bad:
            await self._refuse(bad.error, bad.id, bad.sub)
            return
        for frame in frames:
            await self._take(frame)

    async def _refuse(self, error: MillstreamError, id_: str | None, sub: str | None) -> None:
        await self._session.send_bytes(self._session.wire.failure(error, id_=id_, sub=sub))

    async def _take(self, frame: ClientFrame) -> None:
        try:
            await self._do(frame)
        except MillstreamError as error:
            await self._refuse(error, getattr(frame, "id", None), getattr(frame, "sub", None))

    async def _do(self, frame: ClientFrame) -> None:
        match frame:
            case Credit():
                self._sub(frame.sub).credit.grant(frame.messages, frame.bytes)
                self._confirm(frame.seq)
                await self._answer(frame.id)
            case Ack() | Nack() | Release() | Extend() | Reject():
                await self._settle(frame)
            case Publish() | Request() | ClientReply():
                await self._subscription_factory.publisher.publish(self._session, frame)
            case Subscribe():
                await self._subscribe(frame)
            case Unsubscribe():
                await self._session.unsubscribe(self._sub(frame.sub))
                await self._session.send(ServerOk(frame.id))
            case GiveUp():
                self._give_up(frame)
                await self._answer(frame.id)
            case ClientPing():
                await self._session.send(ServerPong())
                await self._answer(frame.id)
            case ClientPong():
                self._confirm(frame.seq)
            case Hello():
                raise ProtocolViolation(Close.PROTOCOL_ERROR, "'hello' can be sent only once")
            case _:
                assert_never(frame)

    async def _answer(self, id_: str | None) -> None:
        if id_ is not None:
            await self._session.send(ServerOk(id_))

    def _give_up(self, frame: GiveUp) -> None:
        sub = self._sub(frame.sub)
        if not isinstance(sub, GroupSubscription):
            raise ValidationFailed.at("/sub", "Only mode 'group' has shards to give up", "conflict")
        sub.give_up(frame)

    def _confirm(self, seq: int | None) -> None:
        if seq is not None:
            self._session.confirm(seq)

    def _sub(self, name: str) -> Subscription:
        subscription = self._session.subs.get(name)
        if subscription is None:
            raise ValidationFailed.at("/sub", f"Subscription '{name}' does not exist", "unknown")
        return subscription

    async def _settle(self, frame: Settling) -> None:
        sub = self._sub(frame.sub)
        if not isinstance(sub, QueueSubscription | GroupSubscription):
            raise ValidationFailed.at(
                "/sub", "A read subscription has nothing to settle", "conflict"
            )
        await sub.settle(frame)

    async def _subscribe(self, frame: Subscribe) -> None:
        sub = await self._subscription_factory.open(self._session, frame)
        self._session.subs[sub.name] = sub
        stream_id = sub.stream_id or UNSET
        await self._session.send(ServerOk(frame.id, stream_id=stream_id))
        sub.start()


def decode_frames(wire: Wire, message: Message) -> Sequence[ClientFrame]:
    """Decode the frames of a WebSocket message. Raises BadFrame, ProtocolViolation."""
    payload = message.get("bytes") if wire.binary else message.get("text")
    if payload is None:
        kind = "binary" if wire.binary else "text"
        raise ProtocolViolation(Close.PROTOCOL_ERROR, f"{wire.name} frames must be {kind} messages")
    try:
        return wire.decode(cast(bytes | str, payload))
    except Malformed:
        raise ProtocolViolation(Close.PROTOCOL_ERROR, "invalid frame") from None


def _ending(message: Message) -> _Ending:
    """Classify a disconnect.

    A close frame is a deliberate end, whatever its code; a lost connection is not.
    """
    code = message.get("code", LOST)
    WEBSOCKET_CLOSED.labels(str(code) if 1000 <= code < 5000 else "other").inc()
    return _Ending.LOST if code == LOST else _Ending.CLOSED
