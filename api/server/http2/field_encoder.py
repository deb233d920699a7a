"""HPACK encoder without a dynamic table: fields that repeat are encoded once."""

from collections.abc import Iterable
from functools import lru_cache

from hpack.hpack import encode_integer

Field = tuple[bytes, bytes]

_NO_TABLE = b"\x20"  # dynamic table size update to 0 (RFC 7541, section 6.3)
_VALUE_BYTES_MAX = 64  # longer values seldom repeat


class FieldEncoder:
    """Encoder of the header blocks of one connection, in place of the one of `hpack`.

    The dynamic table would make every block depend on all before it, and is searched linearly: a response would take twice
    as long to encode. Blocks are larger instead, about as large as the heads of HTTP/1.1.
    """

    def __init__(self) -> None:
        self.header_table_size = 0  # h2 assigns the peer's setting; 0 respects any
        self._prefix = _NO_TABLE

    def encode(self, fields: Iterable[Field]) -> bytes:
        """Encode a header block; the first one tells the peer that there is no table."""
        block = self._prefix + b"".join([_encoded(name, value) for name, value in fields])
        self._prefix = b""
        return block


def _encoded(name: bytes, value: bytes) -> bytes:
    if len(value) > _VALUE_BYTES_MAX or name in _VOLATILE:
        return _literal_name(name) + _string(value)
    return _repeated(name, value)


_VOLATILE = frozenset({b"content-length", b"x-request-id"})


@lru_cache(maxsize=1024)
def _repeated(name: bytes, value: bytes) -> bytes:
    return _literal_name(name) + _string(value)


@lru_cache(maxsize=256)
def _literal_name(name: bytes) -> bytes:
    """Begin a literal field that is not indexed (RFC 7541, section 6.2.2)."""
    return b"\x00" + _string(name)


def _string(text: bytes) -> bytes:
    """Encode a string literally: Huffman coding takes longer than sending what it saves."""
    size = len(text)
    return bytes((size,)) + text if size < 127 else bytes(encode_integer(size, 7)) + text
