"""Receipt handles: identities of deliveries, as consumers hold them.

A handle is MessagePack in URL-safe base64: [log id, offset, arrival ms, delivery, received ms]. It is written with numbers of
fixed width, 54 bytes and 72 characters, so the handles of a whole call are encoded and decoded as one text; versions that
wrote shorter numbers read it, and their handles are read.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Sequence
from struct import Struct

import msgspec

from storage.domain.names import LogId

_ROW = Struct(">19sQcQcQcQ")
_HEAD = b"\x95\xb0%b\xcf"  # an array of five, a string of 16 characters, and a number of 64 bits
_NUMBER = b"\xcf"
_WIDTH = _ROW.size * 4 // 3
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = str.maketrans("-_", "+/")
_decoder = msgspec.msgpack.Decoder(tuple[LogId, int, int, int, int])


class ReceiptHandle(msgspec.Struct, frozen=True, gc=False):
    """Identity of one delivery of one message (Q2).

    `arrival_ms` and `offset` are the entry's id; `delivery`, counted over all stays of the message in its
    queue, and `received_ms` distinguish this delivery from every other one.
    """

    offset: int
    arrival_ms: int
    delivery: int
    received_ms: int


Delivery = tuple[int, int, int, int]
"""The fields of a receipt handle, in order."""


def encode_handles(log_id: LogId, deliveries: Iterable[Delivery]) -> list[str]:
    """Encode the handles of deliveries of one log for clients."""
    head = _HEAD % log_id.encode()
    packed = b"".join(
        [
            _ROW.pack(head, offset, _NUMBER, arrival_ms, _NUMBER, delivery, _NUMBER, received_ms)
            for offset, arrival_ms, delivery, received_ms in deliveries
        ]
    )
    text = b2a_base64(packed, newline=False).translate(_URL_SAFE).decode()
    return [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]


def decode_handles(log_id: LogId, handles: Sequence[str]) -> list[ReceiptHandle | None]:
    """Decode handles; None for what is not a handle that the log issued."""
    if set(map(len, handles)) == {_WIDTH}:
        try:
            return _decoded(log_id, "".join(handles))
        except ValueError:  # one of them is not one of ours
            pass
    return [_decoded_alone(log_id, handle) for handle in handles]


def _decoded(log_id: LogId, text: str) -> list[ReceiptHandle | None]:
    """Decode handles of the fixed width. Raises ValueError if one is none, or of another log."""
    packed = a2b_base64(text.translate(_FROM_URL_SAFE), strict_mode=True)
    expected = (_HEAD % log_id.encode(), _NUMBER, _NUMBER, _NUMBER)
    handles: list[ReceiptHandle | None] = []
    for head, offset, first, arrival_ms, second, delivery, third, received_ms in _ROW.iter_unpack(
        packed
    ):
        if (head, first, second, third) != expected:
            raise ValueError
        handles.append(ReceiptHandle(offset, arrival_ms, delivery, received_ms))
    return handles


def _decoded_alone(log_id: LogId, handle: str) -> ReceiptHandle | None:
    padded = handle.translate(_FROM_URL_SAFE) + "=" * (-len(handle) % 4)
    try:
        issuer, *delivery = _decoder.decode(a2b_base64(padded, strict_mode=True))
    except (ValueError, msgspec.DecodeError):
        return None
    return ReceiptHandle(*delivery) if issuer == log_id else None
