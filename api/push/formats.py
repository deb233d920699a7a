"""How feeds write the records that are pushed: once for all who get them."""

from collections.abc import Callable
from typing import Any

import msgspec

from api.native.record_schemas import RecordOut
from consumers.chunks import Encode, Format, Formats
from storage.domain.streams import LogRecord

JSON = "json"
"""As in a `records` frame of `millstream.v1.json`; the frame says of which shard."""

MSGPACK = "msgpack"
"""As in a `records` frame of `millstream.v1.msgpack`."""

JSON_OF_SHARD = "json_of_shard"
"""With its shard, where records of several follow one another: events, and lines of JSON."""

_json = msgspec.json.Encoder().encode
_msgpack = msgspec.msgpack.Encoder().encode


def _encode(write: Callable[[Any], bytes], *, binary: bool, of_shard: bool) -> Encode:
    def encode(shard: int, at: LogRecord) -> bytes:
        return write(RecordOut.from_domain(at, binary, shard if of_shard else msgspec.UNSET))

    return encode


FORMATS: Formats = {
    JSON: Format(_encode(_json, binary=False, of_shard=False), b","),
    MSGPACK: Format(_encode(_msgpack, binary=True, of_shard=False)),
    JSON_OF_SHARD: Format(_encode(_json, binary=False, of_shard=True), b"\n"),
}
