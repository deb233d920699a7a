"""Encodings of pushed records, which feeds apply once for all readers."""

from collections.abc import Callable
from typing import Any

import msgspec

from api.native.records import RecordOut
from consumers.feeds.blocks import Encode, Format, Formats
from storage.domain.streams.stream import LogRecord

JSON = "json"
"""Format of a `records` frame of `millstream.v1.json`, in which the frame names the shard."""

MSGPACK = "msgpack"
"""Format of a `records` frame of `millstream.v1.msgpack`."""

JSON_OF_SHARD = "json_of_shard"
"""With its shard, where records of several shards are mixed: events, and JSON Lines."""

_json = msgspec.json.Encoder().encode
_msgpack = msgspec.msgpack.Encoder().encode


_OTHER_BREAKS = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\x85".encode(), b"\\u0085"),
)
"""Characters that many clients treat as line ends, too; in JSON they occur only in strings."""


def _json_line(value: Any) -> bytes:
    """Encode on one line; a body that is JSON is stored with its line breaks."""
    line = _json(value)
    if b"\n" in line or b"\r" in line:
        line = msgspec.json.format(line, indent=-1)
    if not line.isascii():
        for character, escaped in _OTHER_BREAKS:
            line = line.replace(character, escaped)
    return line


def _encode(write: Callable[[Any], bytes], *, binary: bool, of_shard: bool) -> Encode:
    def encode(shard: int, log_record: LogRecord) -> bytes:
        return write(
            RecordOut.from_domain(log_record, binary, shard if of_shard else msgspec.UNSET)
        )

    return encode


FORMATS: Formats = {
    JSON: Format(_encode(_json, binary=False, of_shard=False), b","),
    MSGPACK: Format(_encode(_msgpack, binary=True, of_shard=False)),
    JSON_OF_SHARD: Format(_encode(_json_line, binary=False, of_shard=True), b"\n"),
}
