"""Writers whose sequences only rise, and that repeat what they sent: rules without a store.

A rising producer sends records that each carry a sequence, in rising order, with any gaps. A log takes what lies
above the last sequence that it took of that producer; the rest is a duplicate. `storage.streams.idempotent_append` says why a
repeat in other portions, also across a reshard, adds each record once.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from storage.domain import limits
from storage.domain.errors import BatchTooLarge, ValidationFailed

NOT_KNOWN = -1
"""The last sequence of a producer of which a log took nothing."""

IS_OVER = -2
"""What a log tells of a producer that it was told to forget."""


class Claim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A producer's part of a batch: its records there have sequences from `first` to `last`."""

    producer_id: str
    first: int
    last: int


class AppendCounts(msgspec.Struct, frozen=True, gc=False):
    """What became of a batch: so many records are new, so many had been taken before."""

    added: int
    duplicates: int


class PartialDuplicate(Exception):
    """Some of a part lies above what the log took, some not: nothing happened. `lasts`: its last sequence of
    each producer of the part, in the order of the claims."""

    def __init__(self, lasts: Sequence[int]) -> None:
        super().__init__(lasts)
        self.lasts = lasts


class AncestorWatermark(msgspec.Struct, frozen=True, gc=False):
    """A closed ancestor of a log took all of a producer's records for these hash keys up to `last`."""

    first_hash_key: int
    last_hash_key: int
    last: int


def floor_at(floors: Iterable[AncestorWatermark], place: int) -> int:
    """The last sequence that an ancestor took for the hash key, or NOT_KNOWN."""
    taken = (floor.last for floor in floors if floor.first_hash_key <= place <= floor.last_hash_key)
    return max(taken, default=NOT_KNOWN)


class SequencedBatch(msgspec.Struct, frozen=True, gc=False):
    """Whose each item of a batch is, and its sequence: both in the items' order."""

    producer_ids: Sequence[str]
    sequences: Sequence[int]

    @classmethod
    def of(cls, producer_id: str, sequences: Sequence[int]) -> "SequencedBatch":
        """Of one producer."""
        return cls([producer_id] * len(sequences), sequences)

    def check(self, items: int) -> None:
        """Raise unless each of so many items has a producer and a sequence above its producer's last one."""
        if not items:
            raise ValidationFailed.at("/sequences", "A batch has at least one item", "too_few")
        if items > limits.BATCH_RECORDS_MAX:
            raise BatchTooLarge(f"A call takes at most {limits.BATCH_RECORDS_MAX} items.")
        if len(self.producer_ids) != items or len(self.sequences) != items:
            raise ValidationFailed.at("/sequences", "One for each item", "mismatch")
        lasts: dict[str, int] = {}
        for producer_id, sequence in zip(self.producer_ids, self.sequences, strict=True):
            if not 1 <= len(producer_id) <= limits.PRODUCER_ID_CHARACTERS_MAX:
                detail = f"A producer id has 1 to {limits.PRODUCER_ID_CHARACTERS_MAX} characters"
                raise ValidationFailed.at("/producer_id", detail, "out_of_range")
            if not lasts.get(producer_id, NOT_KNOWN) < sequence <= limits.OFFSET_MAX:
                raise ValidationFailed.at("/sequences", "Sequences rise, from 0 on", "out_of_order")
            lasts[producer_id] = sequence

    def claims(self, numbers: Iterable[int]) -> tuple[Claim, ...]:
        """What these items, by their numbers in rising order, claim: one claim for each producer."""
        ends: dict[str, tuple[int, int]] = {}
        for number in numbers:
            producer_id, sequence = self.producer_ids[number], self.sequences[number]
            first, _ = ends.get(producer_id, (sequence, sequence))
            ends[producer_id] = first, sequence
        return tuple(Claim(producer_id, *span) for producer_id, span in ends.items())

    def above(self, numbers: Iterable[int], lasts: Mapping[str, int]) -> list[int]:
        """Those of the items that lie above their producers' last sequences."""
        return [
            number
            for number in numbers
            if self.sequences[number] > lasts.get(self.producer_ids[number], NOT_KNOWN)
        ]


def lasts_of(claims: Iterable[Claim], lasts: Iterable[int]) -> dict[str, int]:
    """What a log answered to the claims, by producer."""
    return {claim.producer_id: last for claim, last in zip(claims, lasts, strict=True)}
