"""Order-preserving binary encoding of row keys.

Keys compare as bytes as their values do, part by part: null first, then numbers, times and text in ascending order. A part is
a tag, and then

    integer    8 bytes, big-endian, the sign inverted
    double     8 bytes of IEEE 754, a negative one inverted
    decimal    as a double, then its text
    text       UTF-8, a zero byte as 00 FF, ended by 00; times are text of fixed width
    window     its start, and its end

A key longer than VIEW_KEY_BYTES_MAX is cut there and ends with a digest: it is equal to itself alone, and ordered by its beginning. If
its last part is a window, the parts before it are cut instead.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.views.plan import KeyColumn

_NULL, _VALUE = b"\x00", b"\x01"
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_DIGEST_BYTES = 16
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_DOUBLES = frozenset({"float", "double"})
_decoder = msgspec.json.Decoder(float_hook=str)
WINDOW = "struct<start:timestamp,end:timestamp>"
"""Type of a window as a whole."""
_TIME = "2026-01-31T12:00:00.000000Z"
_SAMPLES: Mapping[str, Any] = {
    **dict.fromkeys(_INTEGERS | _DOUBLES, 0),
    "boolean": False,
    "timestamp": _TIME,
    "date": _TIME[:10],
    WINDOW: {"start": _TIME, "end": _TIME},
}
"""Values of the types whose encodings have the same width for all values."""


class SessionKey(NamedTuple):
    """Key of a session: the encoded parts before it, its start and its end."""

    others: bytes
    start: str
    end: str


def key_values(encoded: bytes | str) -> list[Any]:
    """Return the parts of a key that Spark wrote as a JSON object, in order; decimals as text."""
    return list(_decoder.decode(encoded).values())


def encode_key(values: Iterable[Any], columns: Sequence[KeyColumn]) -> bytes:
    """Encode a key or its first parts."""
    parts = [
        encode_part(value, column.type) for value, column in zip(values, columns, strict=False)
    ]
    ends = len(columns) - 1 if columns and columns[-1].type == WINDOW else len(columns)
    return _cut(b"".join(parts[:ends]), ordered_bytes(columns)) + b"".join(parts[ends:])


def ordered_bytes(columns: Sequence[KeyColumn]) -> int:
    """Return how many bytes of a key, before its window as a whole, are ordered."""
    if columns and columns[-1].type == WINDOW:
        return limits.VIEW_KEY_BYTES_MAX - WINDOW_BYTES - _DIGEST_BYTES
    return limits.VIEW_KEY_BYTES_MAX


def _cut(key: bytes, most: int) -> bytes:
    """Return a key within its limit."""
    if len(key) <= most:
        return key
    return key[:most] + blake2b(key, digest_size=_DIGEST_BYTES).digest()


def encode_part(value: Any, type_: str) -> bytes:
    """Encode one value of a Spark type, given as in JSON; a window may have its start alone."""
    if value is None:
        return _NULL
    if type_ == WINDOW:
        return b"".join(_VALUE + _text(value[name]) for name in ("start", "end") if name in value)
    if type_ == "boolean":
        return _VALUE + bytes([bool(value)])
    if type_ in _INTEGERS:
        return _VALUE + struct.pack(">Q", int(value) + _SIGN)
    if type_ in _DOUBLES:
        return _VALUE + _double(float(value))
    if type_.startswith("decimal"):
        return _VALUE + _double(float(value)) + _text(str(value))
    return _VALUE + _text(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def encoded_width(type_: str) -> int | None:
    """Return the bytes of each encoded value of a type, except null; None if they differ."""
    sample = _SAMPLES.get(type_)
    return None if sample is None else len(encode_part(sample, type_))


def session_key(key: bytes) -> SessionKey:
    """Return the parts of a key whose last part is a window."""
    size = WINDOW_BYTES // 2
    others, start, end = key[: -2 * size], key[-2 * size : -size], key[-size:]
    return SessionKey(others, start[1:-1].decode(), end[1:-1].decode())


def start_key(others: bytes, start: str) -> bytes:
    """Return the least key of a session that starts at a time."""
    return others + encode_part({"start": start}, WINDOW)


def text_prefix(prefix: str) -> bytes:
    """Return what the encoding of each text with this prefix begins with."""
    return _VALUE + _escaped(prefix)


def end_of_prefix(prefix: bytes) -> bytes | None:
    """Return the least key above all with this prefix; None if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _double(value: float) -> bytes:
    [bits] = struct.unpack(">Q", struct.pack(">d", value))
    return struct.pack(">Q", bits ^ (_ALL if bits & _SIGN else _SIGN))


def _text(value: str) -> bytes:
    return _escaped(value) + b"\x00"


def _escaped(value: str) -> bytes:
    return value.encode(errors="surrogatepass").replace(b"\x00", b"\x00\xff")


WINDOW_BYTES = len(encode_part(_SAMPLES[WINDOW], WINDOW))
"""Width of a window at the end of a key."""
