"""Request token: the address of replies, which only the service can make (T14).

    base64url( deadline ms · repeatable and replies at most · reply TTL s · nonce · HMAC-SHA256 truncated )
               6 bytes       1 bit          7 bits            2 bytes       12      10

The HMAC covers the namespace as well, so that a token means nothing in another one. Replies are stored under the nonce: a
repeat with the same idempotency key has the same nonce, so it waits where the first call waits, with a deadline of its own. The
message has the first token, so the replies to a request that can be repeated are stored until the last repeat's would expire.
"""

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Self

import msgspec

from storage.domain import limits
from storage.domain.errors import RequestNotFound
from storage.domain.names import LogId, ScopedName

REPLY_TO = ":reply_to"
"""Header of a message that is a request: its token."""

NONCE_BYTES = 12
_MAC_BYTES = 10
_FIELDS = struct.Struct(f">HIBH{NONCE_BYTES}s")  # the deadline as 16 and 32 bits
_TOKEN_BYTES = _FIELDS.size + _MAC_BYTES
_TOKEN_CHARACTERS = -(-_TOKEN_BYTES * 4 // 3)
_REPEATABLE = 0x80
_LOW_BITS = 32
_LOW_MASK = 2**_LOW_BITS - 1


class RequestId(ScopedName, frozen=True, gc=False):
    """Token of a request as a caller gives it, which may be forged."""

    @property
    def nonce(self) -> bytes:
        """Part of it that no other request has."""
        return _decode(self.name)[_FIELDS.size - NONCE_BYTES : _FIELDS.size]


class RequestToken(msgspec.Struct, frozen=True, gc=False):
    """Terms of a request: what it accepts, and until when.

    `is_repeatable`: it was sent with an idempotency key, so that others with a later deadline may have its nonce.
    """

    deadline_ms: int
    replies_max: int
    reply_ttl_ms: int
    nonce: bytes
    is_repeatable: bool = False

    @property
    def address(self) -> LogId:
        """Return the id under which its replies are stored, and their wake-up published."""
        return LogId(self.nonce.hex())

    @property
    def expires_ms(self) -> int:
        """Time at which its replies expire."""
        return self.deadline_ms + self.reply_ttl_ms

    @property
    def stored_until_ms(self) -> int:
        """Time at which its replies and those of its repeats have expired."""
        window_ms = limits.IDEMPOTENCY_WINDOW_MS if self.is_repeatable else 0
        return self.expires_ms + window_ms

    def sign(self, namespace: str, secret: bytes) -> str:
        """Return the token for clients."""
        fields = _FIELDS.pack(
            self.deadline_ms >> _LOW_BITS,
            self.deadline_ms & _LOW_MASK,
            self.replies_max | (_REPEATABLE if self.is_repeatable else 0),
            self.reply_ttl_ms // limits.SECOND_MS,
            self.nonce,
        )
        return urlsafe_b64encode(fields + _mac(fields, namespace, secret)).rstrip(b"=").decode()

    @classmethod
    def verify(cls, request: RequestId, secret: bytes) -> Self:
        """Return the terms of a token. Raises RequestNotFound for a forged or a foreign one."""
        decoded = _decode(request.name)
        fields, mac = decoded[: _FIELDS.size], decoded[_FIELDS.size :]
        if not hmac.compare_digest(mac, _mac(fields, request.namespace, secret)):
            raise RequestNotFound
        high, low, terms, ttl_s, nonce = _FIELDS.unpack(fields)
        return cls(
            high << _LOW_BITS | low,
            terms & ~_REPEATABLE,
            ttl_s * limits.SECOND_MS,
            nonce,
            bool(terms & _REPEATABLE),
        )


def deadline_of(token: str) -> int:
    """Return the deadline in a token that is not verified, in milliseconds."""
    high, low, *_ = _FIELDS.unpack(_decode(token)[: _FIELDS.size])
    return int(high) << _LOW_BITS | int(low)


def nonce_of(key: str, resource: str, secret: bytes) -> bytes:
    """Return the nonce that an idempotency key determines.

    `resource`: the queue or topic that the request is sent to, with its namespace, as `queue/default/orders`.
    """
    text = f"request-nonce\0{resource}\0{key}".encode()
    return hmac.digest(secret, text, "sha256")[:NONCE_BYTES]


def _mac(fields: bytes, namespace: str, secret: bytes) -> bytes:
    text = b"request-token\0%s\0%s" % (namespace.encode(), fields)
    return hmac.digest(secret, text, "sha256")[:_MAC_BYTES]


def _decode(token: str) -> bytes:
    """Return the bytes of a token. Raises RequestNotFound."""
    if len(token) == _TOKEN_CHARACTERS:
        try:
            padding = "=" * (-len(token) % 4)
            decoded = urlsafe_b64decode(token + padding)
        except ValueError:
            raise RequestNotFound from None
        if len(decoded) == _TOKEN_BYTES:
            return decoded
    raise RequestNotFound
