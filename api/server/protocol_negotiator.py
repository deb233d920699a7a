"""Choice between HTTP/2 and HTTP/1.1 for a new connection.

    TLS          ALPN: h2, http/1.1
    plain text   the first bytes: a client that knows that HTTP/2 is spoken here begins with its preface (RFC 9113, section 3.3)

Another protocol then takes over the connection, so requests pay nothing for the choice. WebSockets are opened by HTTP/1.1: their
form for HTTP/2 (RFC 8441) is not offered, and browsers open another connection for them.
"""

import asyncio
from typing import Any, ClassVar, cast

from uvicorn.config import Config
from uvicorn.protocols.utils import is_ssl
from uvicorn.server import ServerState

from api.server.http2.protocol import Http2Protocol
from api.server.http_protocol import FastPathProtocol

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class ProtocolNegotiator(asyncio.Protocol):
    """HTTP protocol class for `uvicorn --http`, until a connection has its own."""

    alpn_protocols: ClassVar = ["h2", "http/1.1"]
    """Names that uvicorn offers in TLS handshakes."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._arguments = (config, server_state, app_state, _loop)
        self._http1 = FastPathProtocol(*self._arguments)
        self._received = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the protocol that a TLS handshake has chosen; otherwise wait for the first bytes.

        The protocol for HTTP/1.1 limits this time, and the server's shutdown ends the connection through it.
        """
        self._transport = cast(asyncio.Transport, transport)
        if is_ssl(self._transport):
            handshake = self._transport.get_extra_info("ssl_object")
            if handshake.selected_alpn_protocol() == "h2":
                self._start_http2()
                return
            self._transport.set_protocol(self._http1)
        self._http1.connection_made(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the end of a connection that has not begun to speak."""
        self._http1.connection_lost(exc)

    def eof_received(self) -> bool:
        """Pass on that the client sends nothing."""
        return self._http1.eof_received()

    def data_received(self, data: bytes) -> None:
        """Decide by the first bytes, as soon as they differ from HTTP/2's preface or contain it."""
        self._received += data
        if self._received.startswith(PREFACE):
            self._http1.release()
            self._start_http2().data_received(self._received)
        elif not PREFACE.startswith(self._received):
            self._transport.set_protocol(self._http1)
            self._http1.data_received(self._received)

    def _start_http2(self) -> Http2Protocol:
        protocol = Http2Protocol(*self._arguments)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        return protocol
