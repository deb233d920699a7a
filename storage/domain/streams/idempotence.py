"""Idempotent append for monotonic writers: rules without a store.

A monotonic producer sends records that each have a sequence, in increasing order, with any gaps. A log
accepts the records above its high-water mark, the last sequence that it accepted of that producer; the rest
are duplicates. `storage.streams.idempotent_append` explains why a retry in different batches, also across a
reshard, adds each record once.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import lt

import msgspec

from storage.domain import limits
from storage.domain.errors import BatchTooLarge, ValidationFailed

NO_WATERMARK = -1
"""Last sequence of a producer from which a log has accepted nothing."""

WRITER_RETIRED = -2
"""Answer of a log for a producer whose state was retired."""


class SequenceRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Sequence range of a producer's records in a batch: from `first` to `last`."""

    producer_id: str
    first: int
    last: int


class AppendCounts(msgspec.Struct, frozen=True, gc=False):
    """Outcome of a batch: the number of records added, and of those added before."""

    added: int
    duplicates: int

    @property
    def total(self) -> int:
        """Return the number of the batch's records that the log has."""
        return self.added + self.duplicates

    def __add__(self, other: "AppendCounts") -> "AppendCounts":
        return AppendCounts(self.added + other.added, self.duplicates + other.duplicates)


class PartialDuplicate(Exception):
    """Part of a claim lies above the log's high-water mark, part below: nothing happened.

    `lasts`: the log's last sequence of each producer of the batch, in the order of the claims.
    """

    def __init__(self, lasts: Sequence[int]) -> None:
        super().__init__(lasts)
        self.lasts = lasts


class AncestorWatermark(msgspec.Struct, frozen=True, gc=False):
    """High-water mark of a closed ancestor of a log for a producer and a range of hash keys.

    The ancestor accepted all of the producer's records for these hash keys up to `last`.
    """

    first_hash_key: int
    last_hash_key: int
    last: int


def floor_at(floors: Iterable[AncestorWatermark], hash_key: int) -> int:
    """Return the last sequence that an ancestor accepted for the hash key, or NO_WATERMARK."""
    lasts = (
        floor.last for floor in floors if floor.first_hash_key <= hash_key <= floor.last_hash_key
    )
    return max(lasts, default=NO_WATERMARK)


class SequencedBatch(msgspec.Struct, frozen=True, gc=False):
    """Producer and sequence of each item of a batch, in the items' order."""

    producer_ids: Sequence[str]
    sequences: Sequence[int]

    @classmethod
    def of(cls, producer_id: str, sequences: Sequence[int]) -> "SequencedBatch":
        """Make a batch of a single producer."""
        return cls([producer_id] * len(sequences), sequences)

    def check(self, items: int, items_max: int = limits.BATCH_RECORDS_MAX) -> None:
        """Raise unless each item has a producer and a sequence above its producer's previous one.

        `items`: the number of items, of which a call may have up to `items_max`.
        """
        if not items:
            raise ValidationFailed.at(
                "/sequences", "A batch must have at least one item", "too_few"
            )
        if items > items_max:
            raise BatchTooLarge(f"A call can have at most {items_max} items.")
        if len(self.producer_ids) != items or len(self.sequences) != items:
            raise ValidationFailed.at("/sequences", "Must have one entry per item", "mismatch")
        for producer_id in set(self.producer_ids):
            if not 1 <= len(producer_id) <= limits.PRODUCER_ID_CHARACTERS_MAX:
                detail = (
                    f"A producer id must be 1 to {limits.PRODUCER_ID_CHARACTERS_MAX} characters"
                )
                raise ValidationFailed.at("/producer_id", detail, "out_of_range")
        if not self._is_increasing():
            raise ValidationFailed.at(
                "/sequences",
                "Sequences must be at least 0 and strictly increasing",
                "out_of_order",
            )

    def _is_increasing(self) -> bool:
        """Return whether each producer's sequences increase within [0, OFFSET_MAX]."""
        sequences = self.sequences
        if self._has_one_producer:
            within = sequences[0] >= 0 and sequences[-1] <= limits.OFFSET_MAX
            return within and all(map(lt, sequences, sequences[1:]))
        lasts: dict[str, int] = {}
        for producer_id, sequence in zip(self.producer_ids, sequences, strict=True):
            if not lasts.get(producer_id, NO_WATERMARK) < sequence <= limits.OFFSET_MAX:
                return False
            lasts[producer_id] = sequence
        return True

    @property
    def _has_one_producer(self) -> bool:
        return self.producer_ids.count(self.producer_ids[0]) == len(self.producer_ids)

    def claims(self, numbers: Sequence[int]) -> tuple[SequenceRange, ...]:
        """Return the sequence ranges of these items: one claim for each producer.

        `numbers` are the items' numbers in ascending order.
        """
        if self._has_one_producer:
            first, last = self.sequences[numbers[0]], self.sequences[numbers[-1]]
            return (SequenceRange(self.producer_ids[0], first, last),)
        ends: dict[str, tuple[int, int]] = {}
        for number in numbers:
            producer_id, sequence = self.producer_ids[number], self.sequences[number]
            first, _ = ends.get(producer_id, (sequence, sequence))
            ends[producer_id] = first, sequence
        return tuple(SequenceRange(producer_id, *span) for producer_id, span in ends.items())

    def above(self, numbers: Iterable[int], lasts: Mapping[str, int]) -> list[int]:
        """Return the items above their producers' last sequences."""
        return [
            number
            for number in numbers
            if self.sequences[number] > lasts.get(self.producer_ids[number], NO_WATERMARK)
        ]


def lasts_of(claims: Iterable[SequenceRange], lasts: Iterable[int]) -> dict[str, int]:
    """Return a log's answer to the claims, by producer."""
    return {claim.producer_id: last for claim, last in zip(claims, lasts, strict=True)}
