"""AWS event stream encoding: messages, one after another, in a streaming response body.

    total length  u32 ┐
    headers' length u32 ├ prelude        a header: name length u8, name, 7 (a string), value length u16, value
    CRC32 of those  u32 ┘
    headers, payload
    CRC32 of everything before it  u32

The first message is `initial-response`, the answer itself; then come events, and at most one exception.
"""

import struct
from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias
from zlib import crc32

import msgspec

KIND = "application/vnd.amazon.eventstream"
INITIAL = "initial-response"
_STRING = 7

Encode: TypeAlias = Callable[[msgspec.Struct], bytes]


class Nothing(msgspec.Struct):
    """Answer without members."""


class EventStream:
    """Streaming answer whose events all have one name.

    The end of `events`, or an error, ends the stream.
    """

    __slots__ = ("events", "name")

    def __init__(self, name: str, events: AsyncGenerator[msgspec.Struct]) -> None:
        self.name = name
        self.events = events

    async def encoded(
        self,
        content_type: str,
        encode: Encode,
        encode_error: Callable[[Exception], tuple[str, bytes]],
    ) -> AsyncGenerator[bytes]:
        """Yield the encoded messages. `encode_error`: returns the shape of an error, and its body."""
        try:
            yield event(INITIAL, content_type, encode(Nothing()))
            async for item in self.events:
                yield event(self.name, content_type, encode(item))
        except Exception as error:
            shape, body = encode_error(error)
            yield exception(shape, content_type, body)
        finally:
            await self.events.aclose()


def event(name: str, content_type: str, payload: bytes) -> bytes:
    """Encode an event."""
    return _typed("event", name, content_type, payload)


def exception(shape: str, content_type: str, payload: bytes) -> bytes:
    """Encode the error that ends the stream."""
    return _typed("exception", shape, content_type, payload)


def _typed(kind: str, name: str, content_type: str, payload: bytes) -> bytes:
    headers = [
        (":message-type", kind),
        (f":{kind}-type", name),
        (":content-type", content_type),
    ]
    return message(headers, payload)


def message(headers: list[tuple[str, str]], payload: bytes) -> bytes:
    """Encode a message."""
    packed = b"".join(_header(name, value) for name, value in headers)
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    prelude += struct.pack(">I", crc32(prelude))
    whole = b"%b%b%b" % (prelude, packed, payload)
    return whole + struct.pack(">I", crc32(whole))


def _header(name: str, value: str) -> bytes:
    named, text = name.encode(), value.encode()
    return b"%c%b%c%b%b" % (len(named), named, _STRING, struct.pack(">H", len(text)), text)
