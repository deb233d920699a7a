"""Producer state inherited from a shard's closed parents, and its use for a first batch.

A producer's numbers continue in the children of its shards:

    shard 0     0 1 2 3 4 ┊ closed
    shard 1               ┊ 5 6 7 8     each child continues behind the parent's last number, so that no new
    shard 2               ┊ 5 6         batch can be mistaken for one that the parent accepted

A batch that a parent accepted is a duplicate there. If two parents both know the producer's epoch, the
child cannot determine which of them a repeated number belongs to: the batch is out of order, and a
request addressed to the parent itself gives a definite answer.
"""

from collections.abc import Sequence

import msgspec

from storage.domain.errors import DuplicateForgotten, ProducerFenced, SequenceOutOfOrder
from storage.domain.streams.stream import Producer


class Remembered(msgspec.Struct, frozen=True):
    """A closed shard's state of a producer.

    `batches` are (sequence, records, offset), newest last.
    """

    shard: int
    epoch: int
    last: int
    batches: tuple[tuple[int, int, int], ...]

    def offset_of(self, sequence: int, count: int) -> int | None:
        """Return the offset of the batch, or None if it is not among the remembered ones."""
        for first, records, offset in self.batches:
            if (first, records) == (sequence, count):
                return offset
        return None


class AcceptedBatch(msgspec.Struct, frozen=True):
    """Batch that a closed shard accepted: its shard and offset."""

    shard: int
    offset: int


class Inherited(msgspec.Struct, frozen=True):
    """Continuation of a producer's numbers: behind `last` in `epoch`."""

    epoch: int
    last: int


def judge(
    producer: Producer, count: int, parents: Sequence[Remembered]
) -> AcceptedBatch | Inherited | None:
    """Classify a batch of `count` records on a shard that does not know its producer.

    None when the parents do not know it either. Raises ProducerFenced, SequenceOutOfOrder,
    DuplicateForgotten.
    """
    if not parents:
        return None
    epoch = max(remembered.epoch for remembered in parents)
    if producer.epoch < epoch:
        raise ProducerFenced(current_epoch=epoch)
    current = [remembered for remembered in parents if remembered.epoch == epoch]
    last = max(remembered.last for remembered in current)
    if producer.epoch > epoch or producer.sequence > last:
        return Inherited(epoch, last)
    if len(current) > 1:
        raise SequenceOutOfOrder(expected_sequence=last + 1)
    offset = current[0].offset_of(producer.sequence, count)
    if offset is None:
        raise DuplicateForgotten
    return AcceptedBatch(current[0].shard, offset)
