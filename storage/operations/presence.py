"""Which processes are there, and who is connected to them: what operators see, and what they may end.

    Beat.say ──every PRESENCE_BEAT_MS──▶ seen by every process of the deployment
        ▲                                             │
        └── woken: close these ◀── ask_to_close ◀─────┘

Nothing is kept: a process that is gone is not there, and its sockets with it.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Protocol

from msgspec.structs import replace

from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError, SocketNotFound
from storage.domain.presence import ProcessRole, ProcessSeen, SocketSeen
from storage.redis.counters.presence import HotPresence, channel_of
from storage.redis.transport.wakeups import Waiter, Wakeups

logger = logging.getLogger(__name__)

_LEAVE_S = 1.0  # a process that ends waits no longer for a store that does not answer


class Presence:
    """What every process of a deployment says of itself."""

    def __init__(self, hot: HotPresence, wakeups: Wakeups, clock: Clock) -> None:
        self._hot = hot
        self._wakeups = wakeups
        self.clock = clock

    async def beat(
        self, process: ProcessSeen, sockets: Sequence[SocketSeen] = ()
    ) -> tuple[str, ...]:
        """Say that a process is here; which of its sockets it is asked to close. Raises StorageUnavailable."""
        return await self._hot.beat(process, sockets, self.clock.script_time())

    async def leave(self, process: str) -> None:
        """Say that it ends. Raises StorageUnavailable."""
        await self._hot.leave(process, self.clock.script_time())

    async def processes(self) -> tuple[ProcessSeen, ...]:
        """Who is there, by role and age. Raises StorageUnavailable."""
        seen = await self._hot.see(self.clock.script_time(), sockets=False)
        found = (one.process for one in seen)
        return tuple(sorted(found, key=lambda one: (one.role, one.started_at_ms, one.id)))

    async def sockets(self, namespace: str) -> tuple[SocketSeen, ...]:
        """The sockets of a namespace, by id; of a process with very many, some. Raises StorageUnavailable."""
        seen = await self._hot.see(self.clock.script_time(), sockets=True)
        found = (one for each in seen for one in each.sockets if one.namespace == namespace)
        return tuple(sorted(found, key=lambda one: one.id))

    async def ask_to_close(self, namespace: str, socket_id: str) -> None:
        """Have the process that has a socket close it, which it does within a beat.

        Raises SocketNotFound, also for another namespace's; StorageUnavailable.
        """
        for one in await self.sockets(namespace):
            if one.id == socket_id:
                await self._hot.ask_to_close(one.process, one.id, self.clock.script_time())
                return
        raise SocketNotFound(f"There is no socket '{socket_id}'.")

    def waiter(self, process: str) -> Waiter:
        """Wakes a process of which something is asked."""
        return Waiter(self._wakeups, (channel_of(process),), alone=False)


class SocketOwner(Protocol):
    """What holds the sockets of a process."""

    def told(self, process: ProcessSeen) -> ProcessSeen:
        """What is said of the process, with how many sockets and sessions it has."""
        ...

    def sockets(self, process: str) -> Sequence[SocketSeen]:
        """The sockets of the process, PRESENCE_SOCKETS_MAX at most."""
        ...

    async def close(self, sockets: Sequence[str]) -> None:
        """Close those of these ids that are there."""


class NoSockets:
    """Of a process that nobody connects to."""

    def told(self, process: ProcessSeen) -> ProcessSeen:
        """As Holder."""
        return process

    def sockets(self, process: str) -> Sequence[SocketSeen]:
        """As Holder."""
        return ()

    async def close(self, sockets: Sequence[str]) -> None:
        """As Holder."""


_NO_SOCKETS = NoSockets()


class Beat:
    """This process, said again and again."""

    def __init__(
        self, presence: Presence, role: ProcessRole, holder: SocketOwner, every_ms: int
    ) -> None:
        self._presence = presence
        self._holder = holder
        self._every_s = every_ms / limits.SECOND_MS
        self._lag_ms = 0.0
        self.process = ProcessSeen(
            id=secrets.token_hex(8),
            role=role,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("millstream"),
            started_at_ms=presence.clock.now_ms(),
        )

    async def run(self) -> None:
        """Until cancelled. While the store is away nobody can look, and nothing is lost."""
        with self._presence.waiter(self.process.id) as waiter:
            while True:
                waiter.start_over()
                with suppress(MillstreamError):
                    await self.say()
                await self._pause(waiter)

    async def say(self) -> None:
        """Once; and close what is asked for. Raises StorageUnavailable, OutcomeUnknown."""
        told = self._holder.told(self.process)
        sockets = self._holder.sockets(told.id)
        asked = await self._presence.beat(_with_lag(told, self._lag_ms), sockets)
        if asked:
            logger.info("sockets closed on request", extra={"count": len(asked)})
            await self._holder.close(asked)

    async def _pause(self, waiter: Waiter) -> None:
        """Until the next beat is due, or something is asked; and see how much too late the loop comes back."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + self._every_s
        await waiter.wait(self._every_s)
        if not waiter.was_woken:
            self._lag_ms = max(0.0, loop.time() - due_s) * limits.SECOND_MS


def _with_lag(process: ProcessSeen, lag_ms: float) -> ProcessSeen:
    return replace(process, event_loop_lag_ms=round(lag_ms, 1))


@asynccontextmanager
async def present(
    presence: Presence,
    role: ProcessRole,
    holder: SocketOwner = _NO_SOCKETS,
    every_ms: int = limits.PRESENCE_BEAT_MS,
) -> AsyncGenerator[ProcessSeen]:
    """This process is seen while the block runs."""
    beat = Beat(presence, role, holder, every_ms)
    task = asyncio.create_task(beat.run(), name="presence")
    try:
        yield beat.process
    finally:
        await end(task)
        with suppress(MillstreamError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await presence.leave(beat.process.id)
