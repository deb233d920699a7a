"""Codecs of the two WebSocket subprotocols, JSON and MessagePack.

What many sockets receive is encoded once: a `records` frame is assembled from records that are already encoded.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from api.http.validation_errors import from_msgspec
from api.native import record_formats
from api.native.messages import MessageIn, PackedMessage, ReceivedMessageOut
from api.native.problems import problem
from api.native.publications import PackedPublication, PublicationIn
from api.native.records import PackedRecord, RecordIn
from api.native.settlements import PackedSettlementReply, SettlementReply
from api.websocket.frames import (
    JSON_PROTOCOL,
    MSGPACK_PROTOCOL,
    ClientFrame,
    ServerError,
    ServerFrame,
)
from storage.domain.errors import MillstreamError
from storage.domain.log.record_batch import Record
from storage.domain.queues.message import NewMessage, ReceivedMessage
from storage.domain.topics.topic import NewPublication

WHERE = "/v1/ws"


class Malformed(Exception):
    """A WebSocket message that cannot be parsed as a frame."""


class _RecordsHead(msgspec.Struct, tag="records", tag_field="type"):
    """A `records` frame before its records, which come last."""

    sub: str
    seq: int
    shard: int
    next_offset: int
    tip: int


_ONE_FIELD_MORE = (
    b"\x87"  # a map of seven in MessagePack: the type, the five above, and the records
)
_PACKED_RECORDS = msgspec.msgpack.encode("records")


def _array_head(count: int) -> bytes:
    """Return the MessagePack header of an array of up to 65535 elements."""
    return bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class _Marks(msgspec.Struct):
    """The correlation fields of an invalid frame: its request id and subscription."""

    id: Any = None
    sub: Any = None


class BadFrame(Exception):
    """A well-formed frame that fails validation."""

    def __init__(self, error: MillstreamError, id_: str | None, sub: str | None) -> None:
        super().__init__(error.detail)
        self.error = error
        self.id = id_
        self.sub = sub


def _decoder(decoder: Any) -> Callable[[msgspec.Raw], Any]:
    """Return a function that decodes a part of a frame. It raises ValidationFailed."""

    def decode(raw: msgspec.Raw) -> Any:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise from_msgspec(error, decoder.type) from None

    return decode


def _reader(decoder: Any) -> Callable[[msgspec.Raw], Any]:
    """Return a function that decodes an item of a publish. It raises ValidationFailed."""
    decode = _decoder(decoder)
    return lambda raw: decode(raw).to_domain()


class WireTypes(NamedTuple):
    """Types of the parts of frames that a subprotocol encodes in its own way."""

    message: type[MessageIn | PackedMessage]
    record: type[RecordIn | PackedRecord]
    publication: type[PublicationIn | PackedPublication]
    reply: type[SettlementReply | PackedSettlementReply]


class Wire:
    """Codec of one subprotocol.

    `binary`: frames are binary messages that carry bytes unencoded. `format`: the record format of the feeds.
    """

    def __init__(
        self,
        name: str,
        binary: bool,
        format_: str,
        codec: Any,
        types: WireTypes,
    ) -> None:
        self.name = name
        self.binary = binary
        self.format = format_
        self._encode: Callable[[Any], bytes] = codec.Encoder().encode
        self._frames = codec.Decoder(ClientFrame | list[ClientFrame])
        self._marks = codec.Decoder(_Marks)
        self.message: Callable[[msgspec.Raw], NewMessage] = _reader(codec.Decoder(types.message))
        """Decodes an item of a publish to a queue. Raises ValidationFailed."""
        self.record: Callable[[msgspec.Raw], Record] = _reader(codec.Decoder(types.record))
        """Decodes an item of a publish to a stream. Raises ValidationFailed."""
        self.publication: Callable[[msgspec.Raw], NewPublication] = _reader(
            codec.Decoder(types.publication)
        )
        """Decodes an item of a publish to a topic. Raises ValidationFailed."""
        self.reply: Callable[[msgspec.Raw], SettlementReply | PackedSettlementReply] = _decoder(
            codec.Decoder(types.reply)
        )
        """Decodes the reply to a request. Raises ValidationFailed."""

    def encode(self, frame: ServerFrame) -> bytes:
        """Encode one frame."""
        return self._encode(frame)

    def decode(self, payload: bytes | str) -> Sequence[ClientFrame]:
        """Decode the frames of one WebSocket message.

        Raises Malformed or BadFrame; then none of the frames is processed.
        """
        try:
            frames = self._frames.decode(payload)
        except msgspec.ValidationError as error:
            marks = self._marks_of(payload)
            raise BadFrame(
                from_msgspec(error, self._frames.type), _text(marks.id), _text(marks.sub)
            ) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise Malformed from None
        return frames if isinstance(frames, list) else (frames,)

    def _marks_of(self, payload: bytes | str) -> _Marks:
        try:
            marks: _Marks = self._marks.decode(payload)
        except msgspec.ValidationError:  # a list of frames: msgspec does not report which one
            return _Marks()
        except (msgspec.DecodeError, RecursionError):  # invalid before it was truncated
            raise Malformed from None
        return marks

    def message_out(self, message: ReceivedMessage) -> ReceivedMessageOut:
        """Convert a delivery to its wire form."""
        return ReceivedMessageOut.from_domain(message, self.binary)

    def encode_records(
        self, sub: str, seq: int, shard: int, joined: bytes, count: int, next_offset: int, tip: int
    ) -> bytes:
        """Encode a `records` frame around `count` encoded records.

        `joined`: the records, in JSON separated by commas.
        """
        head = self._encode(_RecordsHead(sub, seq, shard, next_offset, tip))
        if self.binary:
            return _ONE_FIELD_MORE + head[1:] + _PACKED_RECORDS + _array_head(count) + joined
        return b'%b,"records":[%b]}' % (head[:-1], joined)

    def failure(
        self,
        error: Exception,
        *,
        id_: str | None = None,
        sub: str | None = None,
        receipt_handles: list[str] | None = None,
    ) -> bytes:
        """Encode an `error` frame."""
        details = msgspec.json.decode(problem(error, instance=WHERE, request_id=id_ or "").body)
        return self._encode(
            ServerError(
                problem=details,
                id=msgspec.UNSET if id_ is None else id_,
                sub=msgspec.UNSET if sub is None else sub,
                receipt_handles=msgspec.UNSET if receipt_handles is None else receipt_handles,
            )
        )


_JSON_TYPES = WireTypes(MessageIn, RecordIn, PublicationIn, SettlementReply)
_MSGPACK_TYPES = WireTypes(PackedMessage, PackedRecord, PackedPublication, PackedSettlementReply)

JSON = Wire(JSON_PROTOCOL, False, record_formats.JSON, msgspec.json, _JSON_TYPES)
MSGPACK = Wire(MSGPACK_PROTOCOL, True, record_formats.MSGPACK, msgspec.msgpack, _MSGPACK_TYPES)
WIRES = {wire.name: wire for wire in (JSON, MSGPACK)}
