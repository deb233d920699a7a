"""Presence of processes, in one hash per deployment, and close requests for their sockets."""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.presence import ProcessSeen, SocketSeen
from storage.hot_store.presence import PresenceStore, Seen, channel_of
from storage.redis.keys import presence_keys
from storage.redis.script_store import ScriptStore

_encoder = msgspec.msgpack.Encoder()
_process = msgspec.msgpack.Decoder(ProcessSeen)
_sockets = msgspec.msgpack.Decoder(tuple[SocketSeen, ...])
_GONE = b""


class RedisPresenceStore(ScriptStore, PresenceStore):
    """Presence in one hash per deployment."""

    async def beat(
        self, process: ProcessSeen, sockets: Sequence[SocketSeen], now: ScriptTime
    ) -> tuple[str, ...]:
        summary, packed_sockets = _encoder.encode(process), _encoder.encode(sockets)
        return await self._publish(process.id, summary, packed_sockets, now)

    async def leave(self, process: str, now: ScriptTime) -> None:
        await self._publish(process, _GONE, _GONE, now)

    async def _publish(
        self, process: str, summary: bytes, sockets: bytes, now: ScriptTime
    ) -> tuple[str, ...]:
        reply = await self._pipeline.write(
            "heartbeat_process",
            presence_keys(),
            now,
            process,
            summary,
            sockets,
            limits.PRESENCE_STALE_MS,
        )
        return tuple(socket.decode() for socket in reply)

    async def see(self, now: ScriptTime, *, sockets: bool) -> list[Seen]:
        reply = await self._pipeline.read(
            "list_processes", presence_keys(), now, limits.PRESENCE_STALE_MS, int(sockets)
        )
        return [_seen(*row) for row in reply]

    async def request_close(self, process: str, socket: str, now: ScriptTime) -> None:
        await self._pipeline.write(
            "request_socket_close", presence_keys()[2:], now, process, socket, channel_of(process)
        )


def _seen(published_ms: int, summary: bytes, sockets: bytes) -> Seen:
    process = msgspec.structs.replace(_process.decode(summary), seen_at_ms=published_ms)
    return Seen(process, _sockets.decode(sockets) if sockets else ())
