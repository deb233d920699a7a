"""How feeds write the records that are pushed: once for all who get them."""

from collections.abc import Callable
from typing import Any

import msgspec

from api.native.records import RecordOut
from consumers.feeds.blocks import Encode, Format, Formats
from storage.domain.streams.stream import LogRecord

JSON = "json"
"""As in a `records` frame of `millstream.v1.json`; the frame says of which shard."""

MSGPACK = "msgpack"
"""As in a `records` frame of `millstream.v1.msgpack`."""

JSON_OF_SHARD = "json_of_shard"
"""With its shard, where records of several follow one another: events, and lines of JSON."""

_json = msgspec.json.Encoder().encode
_msgpack = msgspec.msgpack.Encoder().encode


_OTHER_BREAKS = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\x85".encode(), b"\\u0085"),
)
"""What many clients take for the end of a line too; in JSON these are only within strings."""


def _json_line(value: Any) -> bytes:
    """On one line: a body that is JSON is shown as it was stored, with its line breaks."""
    told = _json(value)
    if b"\n" in told or b"\r" in told:
        told = msgspec.json.format(told, indent=-1)
    if not told.isascii():
        for character, escaped in _OTHER_BREAKS:
            told = told.replace(character, escaped)
    return told


def _encode(write: Callable[[Any], bytes], *, binary: bool, of_shard: bool) -> Encode:
    def encode(shard: int, at: LogRecord) -> bytes:
        return write(RecordOut.from_domain(at, binary, shard if of_shard else msgspec.UNSET))

    return encode


FORMATS: Formats = {
    JSON: Format(_encode(_json, binary=False, of_shard=False), b","),
    MSGPACK: Format(_encode(_msgpack, binary=True, of_shard=False)),
    JSON_OF_SHARD: Format(_encode(_json_line, binary=False, of_shard=True), b"\n"),
}
