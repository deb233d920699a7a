"""Cursors: where a list or a read of all shards goes on. Opaque to clients, and bound to what they list."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from storage.domain.errors import InvalidCursor

Place = TypeVar("Place")

_encoder = msgspec.msgpack.Encoder()


def encode_cursor(about: Sequence[str], place: Any) -> str:
    """A cursor into what `about` names, at `place`."""
    packed = _encoder.encode((tuple(about), place))
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def decode_cursor(cursor: str, about: Sequence[str], kind: type[Place]) -> Place:
    """The place a cursor names. Raises InvalidCursor when it is not one, or is about something else."""
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        told, place = msgspec.msgpack.decode(packed, type=tuple[list[str], kind])  # type: ignore[valid-type]
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise InvalidCursor from None
    if told != list(about):
        raise InvalidCursor("The cursor belongs to another list.")
    return place
