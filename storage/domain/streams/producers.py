"""What a shard's closed parents know of a producer, and what that means for its first batch on a child.

A producer's numbers go on where its shards go on:

    shard 0     0 1 2 3 4 ┊ closed
    shard 1               ┊ 5 6 7 8     each child goes on behind the parent's last number, so that no new
    shard 2               ┊ 5 6         batch can be taken for one that the parent knows

A batch that a parent took is a duplicate there. Of two parents that both know the producer's epoch, the
child cannot tell whose batch a repeated number was: it is out of order, and asking at the parent's own
address tells for certain.
"""

from collections.abc import Sequence

import msgspec

from storage.domain.errors import DuplicateForgotten, ProducerFenced, SequenceOutOfOrder
from storage.domain.streams.stream import Producer


class Remembered(msgspec.Struct, frozen=True):
    """What a closed shard remembers of a producer: `batches` are (sequence, records, offset), newest last."""

    shard: int
    epoch: int
    last: int
    batches: tuple[tuple[int, int, int], ...]

    def offset_of(self, sequence: int, count: int) -> int | None:
        """Where the batch went, if it is one of those."""
        for first, records, offset in self.batches:
            if (first, records) == (sequence, count):
                return offset
        return None


class Known(msgspec.Struct, frozen=True):
    """A batch that a closed shard took: its place there."""

    shard: int
    offset: int


class Inherited(msgspec.Struct, frozen=True):
    """Where a producer's numbers go on: behind `last` in `epoch`."""

    epoch: int
    last: int


def judge(
    producer: Producer, count: int, parents: Sequence[Remembered]
) -> Known | Inherited | None:
    """What becomes of a batch of `count` records on a shard that does not know its producer.

    None when the parents do not know it either. Raises ProducerFenced, SequenceOutOfOrder,
    DuplicateForgotten.
    """
    if not parents:
        return None
    epoch = max(known.epoch for known in parents)
    if producer.epoch < epoch:
        raise ProducerFenced(current_epoch=epoch)
    current = [known for known in parents if known.epoch == epoch]
    last = max(known.last for known in current)
    if producer.epoch > epoch or producer.sequence > last:
        return Inherited(epoch, last)
    if len(current) > 1:
        raise SequenceOutOfOrder(expected_sequence=last + 1)
    offset = current[0].offset_of(producer.sequence, count)
    if offset is None:
        raise DuplicateForgotten
    return Known(current[0].shard, offset)
