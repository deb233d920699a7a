"""Amazon's event stream encoding: messages, one after another, in the body of an answer that goes on.

    total length  u32 ┐
    headers' length u32 ├ prelude        a header: name length u8, name, 7 (a string), value length u16, value
    CRC32 of those  u32 ┘
    headers, payload
    CRC32 of everything before it  u32

The first message is `initial-response`, which is the answer itself; then come events, and at most one exception.
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
    """An answer without members."""


class EventStream:
    """An answer that goes on: `events` are all called `name`. Their end, or an error, ends the stream."""

    __slots__ = ("events", "name")

    def __init__(self, name: str, events: AsyncGenerator[msgspec.Struct]) -> None:
        self.name = name
        self.events = events

    async def encoded(
        self, content_type: str, encode: Encode, told: Callable[[Exception], tuple[str, bytes]]
    ) -> AsyncGenerator[bytes]:
        """The messages. `told`: the shape of an error, and its body."""
        try:
            yield event(INITIAL, content_type, encode(Nothing()))
            async for one in self.events:
                yield event(self.name, content_type, encode(one))
        except Exception as error:
            shape, body = told(error)
            yield exception(shape, content_type, body)
        finally:
            await self.events.aclose()


def event(name: str, content_type: str, payload: bytes) -> bytes:
    """An event's message."""
    headers = [
        (":message-type", "event"),
        (":event-type", name),
        (":content-type", content_type),
    ]
    return message(headers, payload)


def exception(shape: str, content_type: str, payload: bytes) -> bytes:
    """The message of an error that ends the stream."""
    headers = [
        (":message-type", "exception"),
        (":exception-type", shape),
        (":content-type", content_type),
    ]
    return message(headers, payload)


def message(headers: list[tuple[str, str]], payload: bytes) -> bytes:
    """One message."""
    packed = b"".join(_header(name, value) for name, value in headers)
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    prelude += struct.pack(">I", crc32(prelude))
    whole = b"%b%b%b" % (prelude, packed, payload)
    return whole + struct.pack(">I", crc32(whole))


def _header(name: str, value: str) -> bytes:
    named, text = name.encode(), value.encode()
    return b"%c%b%c%b%b" % (len(named), named, _STRING, struct.pack(">H", len(text)), text)
