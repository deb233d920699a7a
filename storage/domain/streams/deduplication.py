"""Signed offsets: a log's results for records with deduplication keys.

offset         the record was added there
-1 - offset    a record with its key was added there before, within the window
0              of a closed log: it has no record with the key; its children may take the record
"""

from collections.abc import Sequence

from storage.domain.streams.stream import Appended


def appended_at(shard: int, signed_offset: int, arrival_ms: int) -> Appended:
    """Return the result of a record with a signed offset in a shard."""
    if signed_offset < 0:
        return Appended(shard, -1 - signed_offset, True)
    return Appended(shard, signed_offset, False, arrival_ms)


def new_numbers(numbers: Sequence[int], signed_offsets: Sequence[int]) -> list[int]:
    """Return the numbers of the records that a closed log does not have; all without offsets."""
    if not signed_offsets:
        return [*numbers]
    pairs = zip(numbers, signed_offsets, strict=True)
    return [number for number, signed_offset in pairs if signed_offset >= 0]
