"""Sessions: the subscriptions of one client, across successive sockets.

    opened ──▶ attached ──the socket breaks──▶ detached ──RESUME_MS──▶ ended
                  ▲                                │
                  └────────── resumed ◀────────────┘
               attached ──closed by the client──▶ ended immediately

Frames with messages or records are numbered. The session remembers the content of each until its arrival is
confirmed, and sends what a broken socket lost again to the next one. Detached, it holds its deliveries and its
groups' shards, and delivers nothing. It lives in the process that opened it.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from api.websocket.codec import Wire
from api.websocket.connection import Connection, SocketClosed
from api.websocket.frames import Mode, Sending, ServerFrame
from consumers.subscriptions.credit import SubscriptionCredit
from storage.concurrency.batcher import Batcher
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.names import LogId


class Sent(msgspec.Struct, frozen=True):
    """A numbered frame: its subscription, its content, and the bytes retained of it."""

    seq: int
    sub: "Subscription"
    what: Any
    retained_bytes: int


class Subscription(Protocol):
    """A source of deliveries in a session."""

    @property
    def name(self) -> str:
        """The subscription's name, chosen by the client."""
        ...

    @property
    def source(self) -> str:
        """The resource to read, such as `queue:orders` or `stream:clicks`."""
        ...

    @property
    def mode(self) -> Mode:
        """The read mode."""
        ...

    @property
    def group(self) -> str | None:
        """The consumer group whose shards it reads, if any."""
        ...

    @property
    def stream_id(self) -> LogId | None:
        """The stream that it reads, whatever stream takes its name; None for a queue."""
        ...

    @property
    def credit(self) -> SubscriptionCredit:
        """The credit that the client has granted."""
        ...

    def start(self) -> None:
        """Start delivery over the session's current socket."""

    async def stop(self) -> None:
        """Stop delivery until the next start."""

    def arrived(self, what: Any) -> None:
        """Handle the arrival of a frame with this content."""

    def lost(self, what: Sequence[Any]) -> None:
        """Schedule redelivery of frames, in order, that have not arrived."""

    @property
    def is_due(self) -> bool:
        """Return whether timed work may be due."""
        ...

    async def tick(self) -> None:
        """Perform the timed work that is due; called about every second."""

    async def end(self, *, release: bool) -> None:
        """End the subscription. `release`: return held deliveries immediately."""


class PushSession:
    """The state of one session; see the module docstring.

    Everything happens in one event loop. Small: there are thousands, and most of them idle.
    """

    __slots__ = (
        "_dropped_seq",
        "_retained_bytes",
        "_retained_bytes_max",
        "_sent",
        "_seq",
        "_ticking",
        "connection",
        "detached_s",
        "ended",
        "id",
        "principal",
        "publishing",
        "replies",
        "subs",
        "wire",
    )

    def __init__(self, principal: Principal, wire: Wire, retained_bytes_max: int) -> None:
        self.id = secrets.token_urlsafe(18)
        self.principal = principal
        self.wire = wire
        self.subs: dict[str, Subscription] = {}
        self.connection: Connection | None = None
        self.detached_s = 0.0
        self.ended = False
        self._retained_bytes_max = retained_bytes_max
        self._ticking = False
        self._seq = 0
        self._sent: deque[Sent] | None = None
        self.publishing: Batcher[Sending, None] | None = None
        self.replies: set[asyncio.Task[None]] | None = None
        """Requests that wait for replies over the current socket."""
        self._retained_bytes = 0
        self._dropped_seq = (
            0  # number of the last frame that was dropped from memory, arrived or not
        )

    # Frames

    async def send(self, frame: ServerFrame) -> None:
        """Send an unnumbered frame. Raises SocketClosed."""
        await self.send_bytes(self.wire.encode(frame))

    async def send_bytes(self, payload: bytes) -> None:
        """Send an encoded frame. Raises SocketClosed."""
        if self.connection is None:
            raise SocketClosed
        await self.connection.send_bytes(payload)

    async def deliver(
        self, sub: Subscription, what: Any, retained_bytes: int, encode: Callable[[int], bytes]
    ) -> None:
        """Send the frame that `encode` builds for its number.

        Raises SocketClosed; then the frame is sent again if the session resumes.
        """
        self._seq += 1
        if self._sent is None:
            self._sent = deque()
        self._sent.append(Sent(self._seq, sub, what, retained_bytes))
        self._retained_bytes += retained_bytes
        while self._exceeds_retention(len(self._sent)):
            self._dropped_seq = self._drop_oldest(self._sent)
        await self.send_bytes(encode(self._seq))

    def _exceeds_retention(self, frames: int) -> bool:
        too_many_bytes = self._retained_bytes > self._retained_bytes_max and frames > 1
        return too_many_bytes or frames > limits.PUSH_UNCONFIRMED_FRAMES_MAX

    @property
    def next_seq(self) -> int:
        """The number of the next frame."""
        return self._seq + 1

    def confirm(self, seq: int) -> None:
        """Mark every frame up to `seq` as arrived."""
        sent = self._sent
        if sent is None:
            return
        while sent and sent[0].seq <= seq:
            self._drop_oldest(sent)
        if not sent:
            self._sent = None

    def _drop_oldest(self, frames: deque[Sent]) -> int:
        sent = frames.popleft()
        self._retained_bytes -= sent.retained_bytes
        sent.sub.arrived(sent.what)
        return sent.seq

    async def published(self) -> None:
        """Wait until everything that the client has published is done."""
        if self.publishing is not None:
            await self.publishing.finish()

    @property
    def queued_bytes(self) -> int:
        """Bytes that were sent and whose arrival is not confirmed."""
        return self._retained_bytes

    # Sockets

    def attach(self, connection: Connection) -> None:
        """Deliver over this socket.

        Raises SocketClosed when another socket attached first, or the session has ended.
        """
        if self.ended or self.connection is not None:
            raise SocketClosed
        self.connection = connection
        for sub in self.subs.values():
            sub.start()

    def can_resume(self, seq: int) -> bool:
        """Return whether everything after frame `seq` can be sent again."""
        return not self.ended and self._dropped_seq <= seq <= self._seq

    def rewind(self, seq: int) -> None:
        """Resume after `seq`: the client has every frame up to it, and none after it."""
        self.confirm(seq)
        lost: dict[str, list[Any]] = {}
        for sent in self._sent or ():
            if self.subs.get(sent.sub.name) is sent.sub:
                lost.setdefault(sent.sub.name, []).append(sent.what)
        self._sent = None
        self._retained_bytes = 0
        for name, what in lost.items():
            self.subs[name].lost(what)

    async def detach(self, now_s: float) -> None:
        """Detach from the lost socket; another one may attach."""
        self.connection = None
        self.detached_s = now_s
        await self._stop_waiting()
        for sub in list(self.subs.values()):
            await sub.stop()

    async def _stop_waiting(self) -> None:
        """Stop waiting for replies: nobody would receive them."""
        if self.replies:
            await end(*self.replies)

    async def unsubscribe(self, sub: Subscription, *, release: bool = True) -> None:
        """End one subscription."""
        if self.subs.get(sub.name) is sub:
            del self.subs[sub.name]
        await sub.end(release=release)

    async def end(self, *, release: bool) -> None:
        """End the session and its subscriptions.

        `release`: return held deliveries immediately, rather than when their visibility timeout ends.
        """
        if self.ended:
            return
        self.ended = True
        self.connection = None
        await self._stop_waiting()
        for sub in list(self.subs.values()):
            await self.unsubscribe(sub, release=release)

    @property
    def is_due(self) -> bool:
        """Return whether timed work may be due and no tick is running."""
        return not self._ticking and any(sub.is_due for sub in self.subs.values())

    async def tick(self) -> None:
        """Perform the timed work of all subscriptions."""
        self._ticking = True
        try:
            for sub in list(self.subs.values()):
                await sub.tick()
        finally:
            self._ticking = False
