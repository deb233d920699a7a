"""Registry of running processes and their sockets, which operators can list and close.

    Beat.say ──every PRESENCE_HEARTBEAT_MS──▶ seen by every process of the deployment
        ▲                                             │
        └── woken: close these ◀── ask_to_close ◀─────┘

Nothing is stored permanently: a process that has ended is not listed, nor are its sockets.
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

import attrs
from msgspec.structs import replace

from storage.concurrency.isolation import Isolation
from storage.concurrency.periodic import pause_seconds
from storage.concurrency.tasks import in_background
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError, SocketNotFound
from storage.domain.presence import ProcessRole, ProcessSeen, SocketSeen
from storage.hot_store.presence import PresenceStore, channel_of
from storage.hot_store.wakeups import Waiter, Wakeups

logger = logging.getLogger(__name__)

_LEAVE_S = 1.0  # a process that ends waits at most this long for a store that does not answer


@attrs.define(eq=False, slots=False)
class ProcessRegistry:
    """The published state of all processes of a deployment."""

    _hot: PresenceStore
    _wakeups: Wakeups
    clock: Clock
    _isolation: Isolation
    _publisher: str = attrs.field(default="", init=False)

    async def heartbeat(
        self, process: ProcessSeen, sockets: Sequence[SocketSeen] = ()
    ) -> tuple[str, ...]:
        """Publish this process's state; return the ids of its sockets that it is to close.

        Of the roles that share a process, one publishes the objects that fail. Raises StorageUnavailable.
        """
        self._publisher = self._publisher or process.id
        if process.id == self._publisher:
            failing = self._isolation.failing[: limits.PRESENCE_FAILING_MAX]
            process = replace(process, failing=failing)
        return await self._hot.beat(process, sockets, self.clock.script_time())

    async def leave(self, process: str) -> None:
        """Remove a process that ends.

        Raises StorageUnavailable.
        """
        self._publisher = "" if process == self._publisher else self._publisher
        await self._hot.leave(process, self.clock.script_time())

    async def processes(self) -> tuple[ProcessSeen, ...]:
        """Return the running processes, by role and age.

        Raises StorageUnavailable.
        """
        seen = await self._hot.see(self.clock.script_time(), sockets=False)
        running = (process.process for process in seen)
        return tuple(
            sorted(running, key=lambda process: (process.role, process.started_at_ms, process.id))
        )

    async def sockets(self, namespace: str) -> tuple[SocketSeen, ...]:
        """Return the sockets of a namespace, by id; of a process with very many, some.

        Raises StorageUnavailable.
        """
        seen = await self._hot.see(self.clock.script_time(), sockets=True)
        matching = (
            entry for each in seen for entry in each.sockets if entry.namespace == namespace
        )
        return tuple(sorted(matching, key=lambda entry: entry.id))

    async def request_close(self, namespace: str, socket_id: str) -> None:
        """Request that a socket's process closes it, which happens within a heartbeat.

        Raises SocketNotFound, also for another namespace's; StorageUnavailable.
        """
        for entry in await self.sockets(namespace):
            if entry.id == socket_id:
                await self._hot.request_close(entry.process, entry.id, self.clock.script_time())
                return
        raise SocketNotFound(f"Socket '{socket_id}' does not exist.")

    def waiter(self, process: str) -> Waiter:
        """Return a waiter that wakes a process when it has a request."""
        return Waiter(self._wakeups, (channel_of(process),), alone=False)


class SocketOwner(Protocol):
    """The owner of a process's sockets."""

    def describe(self, process: ProcessSeen) -> ProcessSeen:
        """Return the process's state, with the numbers of its sockets and sessions."""
        ...

    def sockets(self, process: str) -> Sequence[SocketSeen]:
        """Return the sockets of the process, PRESENCE_SOCKETS_MAX at most."""
        ...

    async def close(self, sockets: Sequence[str]) -> None:
        """Close the sockets with these ids, if they exist."""


class NoSockets:
    """Socket owner of a process that has no sockets."""

    def describe(self, process: ProcessSeen) -> ProcessSeen:
        return process

    def sockets(self, process: str) -> Sequence[SocketSeen]:
        return ()

    async def close(self, sockets: Sequence[str]) -> None:
        """Do nothing: there are no sockets."""


_NO_SOCKETS = NoSockets()


class HeartbeatLoop:
    """Heartbeat loop of this process."""

    def __init__(
        self, presence: ProcessRegistry, role: ProcessRole, holder: SocketOwner, every_ms: int
    ) -> None:
        self._presence = presence
        self._owner = holder
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
        """Send heartbeats until cancelled; errors are ignored.

        While the store is unreachable, no process can read the registry, and nothing is lost.
        """
        with self._presence.waiter(self.process.id) as waiter:
            while True:
                waiter.reset()
                with suppress(MillstreamError):
                    await self.send()
                await self._pause(waiter)

    async def send(self) -> None:
        """Send one heartbeat, and close the sockets as requested.

        Raises StorageUnavailable, OutcomeUnknown.
        """
        process = self._owner.describe(self.process)
        sockets = self._owner.sockets(process.id)
        to_close = await self._presence.heartbeat(_with_lag(process, self._lag_ms), sockets)
        if to_close:
            logger.info("socket_close_requested", extra={"count": len(to_close)})
            await self._owner.close(to_close)

    async def _pause(self, waiter: Waiter) -> None:
        """Wait until the next heartbeat is due or a request arrives; measure the event-loop lag."""
        loop = asyncio.get_running_loop()
        pause_s = pause_seconds(self._every_s, loop.time())
        due_s = loop.time() + pause_s
        await waiter.wait(pause_s)
        if not waiter.was_woken:
            self._lag_ms = max(0.0, loop.time() - due_s) * limits.SECOND_MS


def _with_lag(process: ProcessSeen, lag_ms: float) -> ProcessSeen:
    return replace(process, event_loop_lag_ms=round(lag_ms, 1))


@asynccontextmanager
async def registered(
    presence: ProcessRegistry,
    role: ProcessRole,
    holder: SocketOwner = _NO_SOCKETS,
    every_ms: int = limits.PRESENCE_HEARTBEAT_MS,
) -> AsyncGenerator[ProcessSeen]:
    """Register this process in the registry while the block runs."""
    beat = HeartbeatLoop(presence, role, holder, every_ms)
    try:
        async with in_background(beat.run(), "presence"):
            yield beat.process
    finally:
        with suppress(MillstreamError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await presence.leave(beat.process.id)
