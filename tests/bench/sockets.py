"""A minimal WebSocket client for benchmarks."""

import base64
import json
import os
import socket
import struct
from typing import Any

import msgspec

from tests.bench.ratios import Unmeasurable
from tests.bench.wire import REPLY_S_MAX

_TEXT, _BINARY = 0x81, 0x82
JSON_PROTOCOL, MSGPACK_PROTOCOL = "millstream.v1.json", "millstream.v1.msgpack"


class WebSocket:
    """A connection to `/v1/ws` or another path; `greet`: send `hello`."""

    def __init__(
        self, port: int, *, protocol: str = JSON_PROTOCOL, path: str = "/v1/ws", greet: bool = True
    ) -> None:
        self._packed = protocol == MSGPACK_PROTOCOL
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_S_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = b""
        self._upgrade(path, protocol)
        if greet:
            self.request("hello")

    def __enter__(self) -> "WebSocket":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def _upgrade(self, path: str, protocol: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n"
        )
        self.socket.sendall(head.encode())
        while (end := self._unread.find(b"\r\n\r\n")) < 0:
            self._unread += self._some()
        if b" 101 " not in self._unread[:20]:
            raise Unmeasurable(f"the upgrade was refused: {self._unread[:200]!r}")
        self._unread = self._unread[end + 4 :]

    def send_frame(self, type_: str, **fields: Any) -> None:
        """Send a frame, masked with zeros."""
        frame = {"type": type_, **fields}
        payload = msgspec.msgpack.encode(frame) if self._packed else json.dumps(frame).encode()
        head = _BINARY if self._packed else _TEXT
        size = len(payload)
        length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + struct.pack("!H", size)
        self.socket.sendall(bytes((head,)) + length + bytes(4) + payload)

    def receive_frame(self) -> dict[str, Any]:
        """Return the next frame that is not a ping."""
        while True:
            opcode, payload = self._frame()
            if opcode in (1, 2):
                break
        decode = msgspec.msgpack.decode if self._packed else json.loads
        return dict(decode(payload))

    def request(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Send a frame and return the next one, which must not be an error."""
        self.send_frame(type_, **fields)
        frame = self.receive_frame()
        if frame["type"] not in ("welcome", "ok"):
            raise Unmeasurable(f"{type_} was answered {frame}")
        return frame

    def _frame(self) -> tuple[int, bytes]:
        head = self._take(2)
        size = head[1] & 0x7F
        if size == 126:
            size = struct.unpack("!H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self._take(8))[0]
        return head[0] & 0x0F, self._take(size)

    def _take(self, count: int) -> bytes:
        while len(self._unread) < count:
            self._unread += self._some()
        taken, self._unread = self._unread[:count], self._unread[count:]
        return taken

    def _some(self) -> bytes:
        try:
            data = self.socket.recv(1 << 20)
        except TimeoutError:
            raise Unmeasurable(f"no frame within {REPLY_S_MAX:.0f} s") from None
        if not data:
            raise Unmeasurable("the server closed the socket")
        return data
