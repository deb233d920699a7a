"""Verbs of the presence of processes and their sockets."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.domain.clock import ScriptTime
from storage.domain.names import LogId
from storage.domain.presence import ProcessSeen, SocketSeen


class Seen(NamedTuple):
    """A process and its sockets, as it last published them."""

    process: ProcessSeen
    sockets: tuple[SocketSeen, ...]


def channel_of(process: str) -> LogId:
    """Return the wake-up channel of this process."""
    return LogId(f"presence/{process}")


class PresenceStore(Protocol):
    """Presence operations. Every method raises StorageUnavailable, and may be repeated."""

    async def beat(
        self, process: ProcessSeen, sockets: Sequence[SocketSeen], now: ScriptTime
    ) -> tuple[str, ...]:
        """Publish the process; return the ids of sockets that it is asked to close, each once."""
        ...

    async def leave(self, process: str, now: ScriptTime) -> None:
        """Publish that the process ends."""
        ...

    async def see(self, now: ScriptTime, *, sockets: bool) -> list[Seen]:
        """Return all processes with a recent heartbeat, with or without their sockets."""
        ...

    async def request_close(self, process: str, socket: str, now: ScriptTime) -> None:
        """Leave a close request for a process, and wake it."""
        ...
