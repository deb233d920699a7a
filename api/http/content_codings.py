"""Content codings (RFC 9110, section 8.4): gzip, deflate, br and zstd in, gzip out."""

import asyncio
import zlib
from collections.abc import Callable, Iterator

from api.errors import HttpError, HttpErrorCode
from api.http.codecs import too_large
from api.types import RequestHeaders
from storage.domain import limits

CONTENT_ENCODING = b"content-encoding"
ACCEPT_ENCODING = b"accept-encoding"
VARY = (b"vary", ACCEPT_ENCODING)

Decode = Callable[[bytes, int], bytes]
"""Decodes a body, and stops after so many bytes; raises ValueError for a malformed one."""

_GZIP = 16 + zlib.MAX_WBITS


async def decoded(body: bytes, headers: RequestHeaders, bytes_max: int) -> bytes:
    """Return a request's body without its content codings.

    Memory is bounded by `bytes_max`, whatever the body expands to. Raises HttpError: 413 beyond that, 415 for an unknown
    coding, 400 for a malformed body.
    """
    codings = list(_codings(headers[CONTENT_ENCODING]))
    if len(body) <= limits.CODED_INLINE_BYTES_MAX and not {"br", "zstd"} & {*codings}:
        return _decode_all(body, codings, bytes_max)
    return await asyncio.to_thread(_decode_all, body, codings, bytes_max)


def _codings(header: bytes) -> Iterator[str]:
    """Yield the codings in the order in which they are removed."""
    named = [part.strip().lower().decode("latin-1") for part in header.split(b",")]
    if len(named) > limits.CONTENT_CODINGS_MAX:
        raise _unsupported(header.decode("latin-1"))
    for coding in reversed(named):
        if coding in _DECODERS:
            yield coding
        elif coding not in ("identity", ""):
            raise _unsupported(coding)


def _decode_all(body: bytes, codings: list[str], bytes_max: int) -> bytes:
    for coding in codings:
        try:
            body = _DECODERS[coding](body, bytes_max + 1)
        except (ValueError, OSError, zlib.error) as error:
            detail = f"The body is not valid {coding}: {error}."
            raise HttpError(HttpErrorCode.BAD_REQUEST, detail) from None
        if len(body) > bytes_max:
            raise too_large(bytes_max)
    return body


def _unsupported(coding: str) -> HttpError:
    accepted = "gzip, deflate, br, zstd"
    return HttpError(
        HttpErrorCode.UNSUPPORTED_MEDIA_TYPE,
        f"Content-Encoding '{coding[:80]}' is not supported; send {accepted}, or none.",
        ((ACCEPT_ENCODING, accepted.encode()),),
    )


def _gunzip(body: bytes, size_max: int) -> bytes:
    """Decode gzip, of one or several members."""
    pieces: list[bytes] = []
    while body and size_max > 0:
        piece, body = _inflated(body, size_max, _GZIP)
        pieces.append(piece)
        size_max -= len(piece)
    return b"".join(pieces)


def _inflate(body: bytes, size_max: int) -> bytes:
    """Decode deflate, with its zlib header or, as some clients send it, without."""
    header = int.from_bytes(body[:2])
    has_header = header >> 8 & 0x0F == zlib.DEFLATED and header % 31 == 0  # RFC 1950
    return _inflated(body, size_max, zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)[0]


def _inflated(body: bytes, size_max: int, window_bits: int) -> tuple[bytes, bytes]:
    """Return at most `size_max` decoded bytes, and what follows the end of the coded data."""
    decoder = zlib.decompressobj(window_bits)
    piece = decoder.decompress(body, size_max)
    if len(piece) < size_max and not decoder.eof:
        raise ValueError("it is truncated")
    return piece, decoder.unused_data


def _with_arrow(codec: str) -> Decode:
    def decode(body: bytes, size_max: int) -> bytes:
        import pyarrow as pa  # not needed before the first such body

        stream = pa.CompressedInputStream(pa.BufferReader(body), codec)
        return bytes(stream.read(size_max))

    return decode


_DECODERS: dict[str, Decode] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _with_arrow("brotli"),
    "zstd": _with_arrow("zstd"),
}


async def gzipped(body: bytes, accepted: bytes) -> bytes | None:
    """Return the body compressed, or None if the client does not accept gzip.

    `accepted` is the value of Accept-Encoding. The level is the fastest: most of the gain for a fraction of the time.
    """
    qualities = dict(_qualities(accepted))
    quality = qualities.get("gzip", qualities.get("*", 0.0))
    if quality <= 0 or quality < qualities.get("identity", 0.0):
        return None
    if len(body) <= limits.CODED_INLINE_BYTES_MAX:
        return _gzip(body)
    return await asyncio.to_thread(_gzip, body)


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, zlib.Z_BEST_SPEED, _GZIP)


def _qualities(accepted: bytes) -> Iterator[tuple[str, float]]:
    for part in accepted.decode("latin-1").lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.strip().partition("=")
        try:
            yield coding.strip(), float(value) if name == "q" else 1.0
        except ValueError:
            continue
