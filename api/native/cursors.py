"""Cursors: positions in a list or in a read of all shards.

They are opaque to clients, and bound to what they list.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from storage.domain.errors import InvalidCursor

Item = TypeVar("Item")
Place = TypeVar("Place")

_RECORDS = "records"
_encoder = msgspec.msgpack.Encoder()


class Page(NamedTuple, Generic[Item]):
    """One page of a list: its items that the caller may see, and the cursor of the next page.

    The cursor is None after the last page. A page may have fewer items than requested, and even none, before the last.
    """

    items: list[Item]
    next_cursor: str | None


def page_of(
    results: Sequence[Item],
    limit: int,
    about: Sequence[str],
    place: Callable[[Item], Any],
    may_see: Callable[[Item], bool] = lambda _: True,
) -> Page[Item]:
    """Return the page of `results`, which has one item too many if there is another page.

    `place`: the position after an item, where the next page begins.
    """
    page = results[:limit]
    cursor = encode_cursor(about, place(page[-1])) if len(results) > limit else None
    return Page([item for item in page if may_see(item)], cursor)


def encode_cursor(about: Sequence[str], place: Any) -> str:
    """Encode a position in the list that `about` identifies."""
    packed = _encoder.encode((tuple(about), place))
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def decode_cursor(cursor: str, about: Sequence[str], kind: type[Place]) -> Place:
    """Decode the position of a cursor.

    Raises InvalidCursor when it is not a cursor, or belongs to another list.
    """
    subject, place = _decode(cursor, kind)
    if subject != list(about):
        raise InvalidCursor("The cursor belongs to a different list.")
    return place


def encode_records_cursor(stream_id: str, positions: Mapping[int, int]) -> str:
    """Encode a reader's positions in a stream."""
    return encode_cursor((_RECORDS, stream_id), positions)


def decode_records_cursor(cursor: str) -> tuple[str, dict[int, int]]:
    """Decode a reader's positions, and the id of the stream that they belong to.

    The caller passes the id to what reads on, which checks it. Raises InvalidCursor.
    """
    subject, positions = _decode(cursor, dict[int, int])
    if len(subject) != 2 or subject[0] != _RECORDS:
        raise InvalidCursor("The cursor belongs to a different list.")
    return subject[1], positions


def _decode(cursor: str, kind: type[Place]) -> tuple[list[str], Place]:
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        subject, place = msgspec.msgpack.decode(packed, type=tuple[list[str], kind])  # type: ignore[valid-type]
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise InvalidCursor from None
    return subject, place
