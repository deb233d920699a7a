"""uvicorn's HTTP protocol with one write for each answer.

uvicorn writes an answer's head and its body apart: two system calls, and for small answers the second
costs as much as the first. Here what is written in one step of the event loop leaves together.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWriteTransport:
    """A transport that gathers what is written until the event loop comes round."""

    __slots__ = ("_loop", "_transport", "_written")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._written: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Take bytes; they leave in the order they were given."""
        if not self._written:
            self._loop.call_soon(self._flush)
        self._written.append(data)

    def close(self) -> None:
        """Close once everything that was written has left."""
        self._flush()
        self._transport.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection to another protocol, as an upgrade does."""
        self._flush()
        self._transport.set_protocol(protocol)

    def _flush(self) -> None:
        written, self._written = self._written, []
        if written and not self._transport.is_closing():
            self._transport.write(written[0] if len(written) == 1 else b"".join(written))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class OneWriteProtocol(HttpToolsProtocol):
    """To be named to uvicorn: `--http api.one_write:OneWriteProtocol`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wrap the transport."""
        super().connection_made(OneWriteTransport(transport, self.loop))  # type: ignore[arg-type]
