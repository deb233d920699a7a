"""Receipt handles: identities of deliveries, as consumers hold them.

    log id │ offset │ arrival ms │ received ms │ delivery      36 bytes: 48 characters of URL-safe base64
       8   │   8    │     8      │      8      │    4

The width is a multiple of three bytes, so the handles of a whole call are encoded and decoded as one text.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Sequence
from struct import Struct

import msgspec

from storage.domain.names import LogId

_ROW = Struct(">QQQQI")
_WIDTH = _ROW.size * 4 // 3
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = str.maketrans("-_", "+/")


class ReceiptHandle(msgspec.Struct, frozen=True, gc=False):
    """Identity of one delivery of one message (Q2).

    `arrival_ms` and `offset` are the entry's id; `delivery`, counted over all stays of the message in its
    queue, and `received_ms` distinguish this delivery from every other one.
    """

    offset: int
    arrival_ms: int
    received_ms: int
    delivery: int


Delivery = tuple[int, int, int, int]
"""The fields of a receipt handle, in order."""


def encode_handles(log_id: LogId, deliveries: Iterable[Delivery]) -> list[str]:
    """Encode the handles of deliveries of one log for clients."""
    log_number = int(log_id, 16)
    packed = b"".join([_ROW.pack(log_number, *delivery) for delivery in deliveries])
    text = b2a_base64(packed, newline=False).translate(_URL_SAFE).decode()
    return [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]


def decode_handles(log_id: LogId, handles: Sequence[str]) -> list[ReceiptHandle | None]:
    """Decode handles; None for what is not a handle that the log issued."""
    if set(map(len, handles)) == {_WIDTH}:
        try:
            return _decoded(log_id, "".join(handles))
        except ValueError:  # one of them is not base64
            pass
    return [_decoded_alone(log_id, handle) for handle in handles]


def _decoded(log_id: LogId, text: str) -> list[ReceiptHandle | None]:
    log_number = int(log_id, 16)
    packed = a2b_base64(text.translate(_FROM_URL_SAFE), strict_mode=True)
    return [
        ReceiptHandle(*delivery) if issuer == log_number else None
        for issuer, *delivery in _ROW.iter_unpack(packed)
    ]


def _decoded_alone(log_id: LogId, handle: str) -> ReceiptHandle | None:
    try:
        if len(handle) == _WIDTH:
            [decoded] = _decoded(log_id, handle)
            return decoded
        return _decode_former(log_id, handle)
    except (ValueError, msgspec.DecodeError):
        return None


# Handles of the version before, for messages that were in flight during the upgrade

_FormerHandle = tuple[LogId, int, int, int, int]
_former_decoder = msgspec.msgpack.Decoder(_FormerHandle)


def _decode_former(log_id: LogId, handle: str) -> ReceiptHandle | None:
    """Decode (log id, offset, arrival, delivery, received) as MessagePack in base64."""
    padded = handle + "=" * (-len(handle) % 4)
    issuer, offset, arrival_ms, delivery, received_ms = _former_decoder.decode(
        a2b_base64(padded.translate(_FROM_URL_SAFE))
    )
    handle_of_log = ReceiptHandle(offset, arrival_ms, received_ms, delivery)
    return handle_of_log if issuer == log_id else None
