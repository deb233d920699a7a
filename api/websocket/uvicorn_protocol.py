"""uvicorn's WebSocket protocol, where the application says how a socket ends.

uvicorn closes every socket at once when the server is asked to end, and tells a lost connection from a close frame
without a code by nothing. Here the application hears of both, and may cut a connection that takes nothing any more.
"""

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from api.websocket.inbox import Inbox

ABORT = "millstream.abort"
"""In a scope's extensions: cuts the connection."""

DRAIN = "millstream.drain"
"""The type of the event that says that the server is asked to end."""

LOST = 1006
"""The code of a connection that ended without a close frame (RFC 6455)."""


class PushProtocol(WebSocketsSansIOProtocol):
    """To be named to uvicorn: `--ws api.websocket.uvicorn_protocol:PushProtocol`."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.queue = cast(Any, Inbox[Any]())

    async def run_asgi(self) -> None:
        """Give the application the means to cut the connection; go to the part of it that serves sockets."""
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions[ABORT] = self.abort
        self.app = getattr(self.app, "socket_app", self.app)
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """A refusal that was sent whole is an answer, which uvicorn would take for none and log."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def abort(self) -> None:
        """Cut the connection; what waits to be sent is dropped."""
        self.transport.abort()

    def shutdown(self) -> None:
        """The server is asked to end: the application says goodbye."""
        if self.handshake_complete and not self.close_sent:
            self.stop_keepalive()
            self.queue.put_nowait(cast(Any, {"type": DRAIN}))
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Told before uvicorn tells it as something else; after a close frame nobody listens any more."""
        self.queue.put_nowait({"type": "websocket.disconnect", "code": LOST})
        super().connection_lost(exc)
