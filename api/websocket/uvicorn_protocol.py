"""uvicorn WebSocket protocol that lets the application decide how a socket ends.

uvicorn closes every socket immediately at shutdown, and does not distinguish a lost connection from a close frame
without a code. This protocol reports both to the application, which may also abort a connection that accepts no
more data.
"""

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from api.websocket.inbox import Inbox

ABORT = "millstream.abort"
"""Key of the scope extension that aborts the connection."""

DRAIN = "millstream.drain"
"""Type of the event for a server shutdown."""

LOST = 1006
"""The code of a connection that ended without a close frame (RFC 6455)."""


class PushProtocol(WebSocketsSansIOProtocol):
    """WebSocket protocol class for `uvicorn --ws api.websocket.uvicorn_protocol:PushProtocol`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.queue = cast(Any, Inbox[Any]())

    async def run_asgi(self) -> None:
        """Run the socket application, with an extension that aborts the connection."""
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions[ABORT] = self.abort
        self.app = getattr(self.app, "socket_app", self.app)
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """Mark a complete refusal as the response; uvicorn would log a missing response."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def abort(self) -> None:
        """Abort the connection; data waiting to be sent is dropped."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Ask the application to drain the socket instead of closing it."""
        if self.handshake_complete and not self.close_sent:
            self.stop_keepalive()
            self.queue.put_nowait(cast(Any, {"type": DRAIN}))
            return
        if not self.handshake_complete and self.initial_response is None:
            self._refuse_upgrade()
        super().shutdown()

    def _refuse_upgrade(self) -> None:
        """Answer that another process may serve the client; uvicorn would answer 500."""
        self.conn.send_response(self.conn.reject(503, "The server is shutting down.\n"))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the lost connection before uvicorn reports it with another code.

        After a close frame the event is never read.
        """
        self.queue.put_nowait({"type": "websocket.disconnect", "code": LOST})
        super().connection_lost(exc)
