"""Signed tokens for clients: shard iterators and list tokens, valid for five minutes.

    base64url( MessagePack of the token ‖ 16 bytes of keyed BLAKE2b )

The key is the deployment's secret, so that a token of one process is valid in every other. The signature, which may begin
with anything, comes last: a value that begins with "-" is an option to a command line, and `aws` refuses it as an iterator.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Any, TypeVar

import msgspec

LIFETIME_MS = 300_000
_SIGNATURE_BYTES = 16

T = TypeVar("T", bound=msgspec.Struct)


class ShardIterator(msgspec.Struct, frozen=True, array_like=True, tag="i"):
    """The next offset to read of a shard of a stream."""

    namespace: str
    stream: str
    stream_id: str
    shard: int
    offset: int
    issued_ms: int


class ListToken(msgspec.Struct, frozen=True, array_like=True, tag="l"):
    """Continuation of a list after `after`.

    `about`: the type of the list and its subject; `rest`: the parameters of the request.
    """

    about: str
    namespace: str
    stream: str
    stream_id: str
    after: str
    rest: Any
    issued_ms: int


class NotOurs(ValueError):
    """The token was not created by this deployment, or is of another type."""


_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type[Any], msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (ShardIterator, ListToken)
}


def seal(token: msgspec.Struct, secret: bytes) -> str:
    """Encode and sign a token."""
    packed = _encoder.encode(token)
    return base64.urlsafe_b64encode(packed + _signature(packed, secret)).decode()


def unseal(text: str, kind: type[T], secret: bytes) -> T:
    """Verify and decode a token. Raises NotOurs."""
    try:
        raw = base64.b64decode(text.encode(), b"-_", validate=True)
        packed, signature = raw[:-_SIGNATURE_BYTES], raw[-_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, _signature(packed, secret)):
            raise NotOurs
        token: T = _decoders[kind].decode(packed)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise NotOurs from None
    return token


def _signature(packed: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(
        packed, digest_size=_SIGNATURE_BYTES, key=secret, person=b"kinesis token"
    ).digest()
