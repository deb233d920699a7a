"""Cursors: where a list or a read of all shards goes on. Opaque to clients, and bound to what they list."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from storage.domain.errors import InvalidCursor

Item = TypeVar("Item")
Place = TypeVar("Place")

_encoder = msgspec.msgpack.Encoder()


class Page(NamedTuple, Generic[Item]):
    """One page of a list: what its caller may see of it, and where the next begins; None after the last.

    A page may so have fewer items than were asked for, and even none, before the last.
    """

    items: list[Item]
    next_cursor: str | None


def page_of(
    found: Sequence[Item],
    limit: int,
    about: Sequence[str],
    place: Callable[[Item], Any],
    may_see: Callable[[Item], bool] = lambda _: True,
) -> Page[Item]:
    """The page of which `found` has one item too many if there is another. `place`: where a page after an item begins."""
    shown = found[:limit]
    cursor = encode_cursor(about, place(shown[-1])) if len(found) > limit else None
    return Page([item for item in shown if may_see(item)], cursor)


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
