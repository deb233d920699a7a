"""Sequence numbers: an offset with its shard and times, as one number of 47 hex digits, told in decimal.

    2  oooooooooo…   what                                                  hex digits
    ─  ────────────────────────────────────────────────────────────────────────────
       2             the version                                           1
       shard         second in which the shard was opened                  9
       index         the shard's index, lowest four bits                   1
       offset        first digit at most 7                                 16
       00                                                                  2
       arrival       second in which the record arrived, or the shard      9
                     was opened, if that is later
       index         the shard's index                                     8
       2             the version                                           1

Nothing is stored and nothing is looked up: numbers are computed from what a record has anyway. They rise with the
offset; a child's lie above its parents', since it is opened in a later second. The Kinesis Client Library checks
version (bits 184 to 187) and shard index (bits 4 to 35) of exactly 186 bits, and takes other numbers as they are.
"""

from typing import NamedTuple

VERSION = 2
SECOND_MS = 1_000
OFFSET_MAX = 2**63 - 1
"""Stands in the number at which a closed shard ends."""

_VERSION_HIGH, _OPENED, _NIBBLE, _OFFSET, _ARRIVAL, _INDEX = 184, 148, 144, 80, 36, 4
_SECONDS_MASK, _INDEX_MASK, _BITS = 2**36 - 1, 2**32 - 1, 186
STEP = 1 << _OFFSET
"""Between the numbers of two neighbours that arrived in the same second."""


class Place(NamedTuple):
    """What a sequence number says."""

    opened_s: int
    shard: int
    offset: int
    arrival_s: int


def first_number(opened_ms: int, shard: int, offset: int, arrival_ms: int) -> int:
    """The sequence number of a record; each neighbour that arrived in the same second has `STEP` more. A shard opens in a
    later second than its parent did, and takes records before: they lie above where it starts, too."""
    return _number(opened_ms, shard, offset, max(arrival_ms, opened_ms))


def _number(opened_ms: int, shard: int, offset: int, arrival_ms: int) -> int:
    return (
        (VERSION << _VERSION_HIGH)
        | (opened_ms // SECOND_MS << _OPENED)
        | ((shard & 0xF) << _NIBBLE)
        | (offset << _OFFSET)
        | (arrival_ms // SECOND_MS << _ARRIVAL)
        | (shard << _INDEX)
        | VERSION
    )


def sequence_number(opened_ms: int, shard: int, offset: int, arrival_ms: int) -> str:
    """A record's sequence number."""
    return str(first_number(opened_ms, shard, offset, arrival_ms))


def starting_number(opened_ms: int, shard: int) -> str:
    """Where a shard begins: not above its first record's."""
    return sequence_number(opened_ms, shard, 0, opened_ms)


def ending_number(opened_ms: int, shard: int, closed_ms: int) -> str:
    """Where a closed shard ends: above every record's."""
    return sequence_number(opened_ms, shard, OFFSET_MAX, closed_ms)


def number_before(opened_ms: int, shard: int) -> str:
    """Where a reader stands that has seen nothing: below every number of the shard, in the second before."""
    return sequence_number(opened_ms - SECOND_MS, shard, OFFSET_MAX, opened_ms - SECOND_MS)


def read_number(text: str) -> Place | None:
    """What a number says; None for one that this service cannot have made."""
    number = int(text)
    place = Place(
        number >> _OPENED & _SECONDS_MASK,
        number >> _INDEX & _INDEX_MASK,
        number >> _OFFSET & 2**64 - 1,
        number >> _ARRIVAL & _SECONDS_MASK,
    )
    again = _number(
        place.opened_s * SECOND_MS, place.shard, place.offset, place.arrival_s * SECOND_MS
    )
    if number.bit_length() != _BITS or number != again or place.offset > OFFSET_MAX:
        return None
    return place
