"""Sequence numbers: an offset, shard and times in one number of 47 hex digits, in decimal.

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

Nothing is stored and nothing is looked up: numbers are computed from the fields of a record. They increase with the
offset; a child's are above its parents', since it is opened in a later second. The Kinesis Client Library checks
version (bits 184 to 187) and shard index (bits 4 to 35) of exactly 186 bits, and accepts other numbers unchanged.
"""

from typing import NamedTuple

VERSION = 2
SECOND_MS = 1_000
OFFSET_MAX = 2**63 - 1
"""Offset in the ending number of a closed shard."""

_VERSION_HIGH, _OPENED, _NIBBLE, _OFFSET, _ARRIVAL, _INDEX = 184, 148, 144, 80, 36, 4
_SECONDS_MASK, _INDEX_MASK, _BITS = 2**36 - 1, 2**32 - 1, 186
STEP = 1 << _OFFSET
"""Difference between the numbers of two neighbours that arrived in the same second."""


class SequenceNumberFields(NamedTuple):
    """The fields of a sequence number."""

    opened_s: int
    shard: int
    offset: int
    arrival_s: int


def first_number(opened_ms: int, shard: int, offset: int, arrival_ms: int) -> int:
    """Return the sequence number of a record; its neighbours follow in steps of `STEP`.

    A neighbour is the next record that arrived in the same second. A shard opens in a later second than its parent did, and
    accepts records before: their numbers lie above its start, too.
    """
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
    """Return a record's sequence number."""
    return str(first_number(opened_ms, shard, offset, arrival_ms))


def starting_number(opened_ms: int, shard: int) -> str:
    """Return the number at which a shard starts: below its first record's, as at Amazon.

    Its arrival is in the second before the shard was opened, where no record's is. Readers that continue after it
    begin with the first record.
    """
    return str(_number(opened_ms, shard, 0, opened_ms - SECOND_MS))


def ending_number(opened_ms: int, shard: int, closed_ms: int) -> str:
    """Return the number at which a closed shard ends, above every record's."""
    return sequence_number(opened_ms, shard, OFFSET_MAX, closed_ms)


def number_before(opened_ms: int, shard: int) -> str:
    """Return the position of a reader that has read nothing.

    It is below every number of the shard, in the second before.
    """
    return sequence_number(opened_ms - SECOND_MS, shard, OFFSET_MAX, opened_ms - SECOND_MS)


def read_number(text: str) -> SequenceNumberFields | None:
    """Parse a number; None for one that this service cannot have created."""
    number = int(text)
    fields = SequenceNumberFields(
        number >> _OPENED & _SECONDS_MASK,
        number >> _INDEX & _INDEX_MASK,
        number >> _OFFSET & 2**64 - 1,
        number >> _ARRIVAL & _SECONDS_MASK,
    )
    again = _number(
        fields.opened_s * SECOND_MS, fields.shard, fields.offset, fields.arrival_s * SECOND_MS
    )
    if number.bit_length() != _BITS or number != again or fields.offset > OFFSET_MAX:
        return None
    return fields
