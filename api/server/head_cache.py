"""Cache of parsed request heads.

A client on a persistent connection sends the same head with every request, byte for byte, but for its length. Parsing
costs a callback for each header; looking up the bytes costs one dictionary access. Equal bytes have an equal meaning,
because a head is only added after the parser has accepted it at the start of a message.
"""

from typing import NamedTuple

from api.http.responses import RouteMatch
from api.types import RequestHeaders
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits

HEAD_END = b"\r\n\r\n"


class ParsedHead(NamedTuple):
    """A head of a hot request, parsed. `body_bytes`: its declared length."""

    match: RouteMatch
    url: bytes
    headers: RequestHeaders
    query: bytes
    keep_alive: bool
    is_chunked: bool
    body_bytes: int


class HeadCache:
    """Heads of hot requests that arrived at least twice, by their bytes, of one process.

    A head is admitted at its second arrival, so that heads with a signature, a trace context or an idempotency key, which
    arrive once, displace no others.
    """

    def __init__(self) -> None:
        self._heads: BoundedCache[bytes, ParsedHead] = BoundedCache(limits.HEADS_CACHED_MAX)
        self._seen: BoundedCache[int, None] = BoundedCache(limits.HEADS_CACHED_MAX)
        self.find = self._heads.get
        """Return the parsed head of these bytes, or None."""

    def add(self, head: bytes, parsed: ParsedHead) -> None:
        """Add a head that the parser has accepted, if it arrived before."""
        fingerprint = hash(head)
        if fingerprint in self._seen:
            self._heads[head] = parsed
        else:
            self._seen[fingerprint] = None


def head_of(data: bytes) -> bytes:
    """Return the head with which the data begins; empty if it cannot be cached.

    The parser skips line breaks before a request; a head that begins with one would end elsewhere for it.
    """
    end = data.find(HEAD_END, 0, limits.HEAD_CACHED_BYTES_MAX)
    return data[: end + len(HEAD_END)] if end > 0 and data[0] > _SPACE else b""


_SPACE = 0x20
