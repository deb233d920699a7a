"""Limits on the number of values in a large body, checked before decoding.

A byte on the wire can become a hundred in memory.

JSON        counts braces and brackets, including those in strings: it costs a pass over the bytes
MessagePack, CBOR    counts items, by a walk over their heads that skips strings
"""

from collections.abc import Callable

from api.errors import HttpError, HttpErrorCode
from storage.domain import limits

_ITEMS_MAX = 100_000  # of MessagePack or CBOR; a batch of 1000 messages has about ten each


def check_json_items(payload: bytes) -> None:
    """Raise HttpError when a large body has more braces and brackets than any batch needs."""
    if len(payload) <= limits.BATCH_CHECKED_BYTES_MIN:
        return
    if payload.count(b"{") + payload.count(b"[") > limits.BATCH_CONTAINERS_MAX:
        raise _too_many()


def check_msgpack_items(payload: bytes) -> None:
    """Raise HttpError when a large body has more items than any batch needs."""
    if len(payload) > limits.BATCH_CHECKED_BYTES_MIN:
        _walk(payload, _after_msgpack)


def check_cbor_items(payload: bytes) -> None:
    """Raise HttpError when a large CBOR body has more items than any batch needs."""
    if len(payload) > limits.BATCH_CHECKED_BYTES_MIN:
        _walk(payload, _after_cbor)


def _walk(payload: bytes, after: Callable[[bytes, int], int]) -> None:
    """Walk from head to head regardless of nesting. The decoder reports malformed input."""
    position, items, size = 0, 0, len(payload)
    while position < size:
        items += 1
        if items > _ITEMS_MAX:
            raise _too_many()
        position = after(payload, position)


def _too_many() -> HttpError:
    return HttpError(HttpErrorCode.REQUEST_TOO_LARGE, "The body contains too many values.")


def _length(payload: bytes, start: int, width: int) -> int:
    return int.from_bytes(payload[start : start + width], "big")


_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_FIXED |= {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
_FIXED |= {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}  # arrays and maps: their items follow
_TEXTS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}


def _after_msgpack(payload: bytes, start: int) -> int:
    head = payload[start]
    if 0xA0 <= head <= 0xBF:
        return start + 1 + (head & 0x1F)
    if head in _TEXTS:
        width = _TEXTS[head]
        return start + 1 + width + _length(payload, start + 1, width)
    if head in _EXTENSIONS:
        width = _EXTENSIONS[head]
        return start + 2 + width + _length(payload, start + 1, width)
    return start + 1 + _FIXED.get(head, 0)


_BYTES, _TEXT = 2, 3
_WIDTHS = {24: 1, 25: 2, 26: 4, 27: 8}


def _after_cbor(payload: bytes, start: int) -> int:
    major, info = payload[start] >> 5, payload[start] & 0x1F
    width = _WIDTHS.get(info, 0)
    value = _length(payload, start + 1, width) if width else info
    is_text = major in (_BYTES, _TEXT) and info < 28
    return start + 1 + width + (value if is_text else 0)
