"""Unit tests of reads of two streams: neither runs ahead of what arrived in the other."""

from random import Random

import pytest

from spark_worker.views.inputs.reads import aligned, has_news
from storage.domain.log.record_batch import Record
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import Gap, GapReason, LogRecord, Shard, ShardRead, StreamRead


def shard_read(shard: int, arrivals: list[int], tip: int, first: int = 0, **fields) -> ShardRead:
    records = [LogRecord(first + nth, at, Record(b"x")) for nth, at in enumerate(arrivals)]
    return ShardRead(shard, records, first + len(records), 0, tip, 0, **fields)


def stream_read(*shards: ShardRead) -> StreamRead:
    positions = {one.shard: FULLY_READ if one.ended else one.next_offset for one in shards}
    return StreamRead(shards, positions, "s")


def arrivals_of(read: StreamRead) -> list[list[int]]:
    return [[one.arrival_ms for one in shard.records] for shard in read.shards]


def test_reads_to_the_end_are_whole():
    reads = [stream_read(shard_read(0, [1, 5, 9], 3)), stream_read(shard_read(0, [2], 1))]

    assert aligned(reads) == reads


def test_read_with_more_behind_it_cuts_the_other_one():
    long, short = aligned(
        [stream_read(shard_read(0, [1, 2, 3], 50)), stream_read(shard_read(0, [2, 3, 4, 5], 4))]
    )

    assert (arrivals_of(long), long.positions) == ([[1, 2, 3]], {0: 3})
    assert (arrivals_of(short), short.positions) == ([[2, 3]], {0: 2})


def test_read_whose_records_are_all_later_stays_where_it_was():
    gap = Gap(4, 7, GapReason.EXPIRED)
    _, later = aligned(
        [
            stream_read(shard_read(0, [1, 2], 50)),
            stream_read(shard_read(0, [8], 9, first=7, gap=gap), shard_read(1, [9], 1)),
        ]
    )

    assert arrivals_of(later) == [[], []]
    assert later.positions == {0: 7, 1: 0}
    assert later.shards[0].gap == gap


def test_children_that_are_not_read_yet_hold_back_the_other_stream():
    child = Shard(1, "l1", 0, 1, opened_at_ms=6, closed_at_ms=None, parents=(0,))
    split, other = aligned(
        [
            stream_read(shard_read(0, [3, 5], 2, ended=True, children=(child,))),
            stream_read(shard_read(0, [4, 6, 7], 3)),
        ]
    )

    assert (arrivals_of(split), split.positions) == ([[3, 5]], {0: FULLY_READ})
    assert (arrivals_of(other), other.positions) == ([[4, 6]], {0: 2})


def test_records_that_arrived_while_the_children_were_opened_are_read():
    """A reshard is planned before the shard is closed, which takes records meanwhile."""
    child = Shard(1, "l1", 0, 1, opened_at_ms=6, closed_at_ms=None, parents=(0,))
    split, other = aligned(
        [
            stream_read(shard_read(0, [5, 7], 2, ended=True, children=(child,))),
            stream_read(shard_read(0, [6, 7, 8], 3)),
        ]
    )

    assert (arrivals_of(split), split.positions) == ([[5, 7]], {0: FULLY_READ})
    assert (arrivals_of(other), other.positions) == ([[6, 7]], {0: 2})


def test_read_advances_when_a_clock_was_set_back():
    read, other = aligned(
        [stream_read(shard_read(0, [9, 4], 50)), stream_read(shard_read(0, [5, 10], 2))]
    )

    assert (arrivals_of(read), arrivals_of(other)) == ([[9, 4]], [[5]])


def test_shard_that_is_cut_has_not_ended():
    child = Shard(1, "l1", 0, 1, opened_at_ms=9, closed_at_ms=None, parents=(0,))
    _, cut = aligned(
        [
            stream_read(shard_read(0, [3], 50)),
            stream_read(shard_read(0, [3, 5], 2, ended=True, children=(child,))),
        ]
    )

    assert cut.positions == {0: 1}
    assert (cut.shards[0].ended, cut.shards[0].children) == (False, ())


@pytest.mark.parametrize("seed", range(200))
def test_streams_are_read_whole_in_the_order_of_arrival(seed):
    random = Random(seed)
    logs = [
        [sorted(random.randrange(40) for _ in range(random.randrange(15))) for _ in range(shards)]
        for shards in (1, random.choice((1, 2)))
    ]
    offsets = [[0] * len(shards) for shards in logs]
    newest = 0
    while any(
        end < len(shard)
        for at, shards in zip(offsets, logs, strict=True)
        for end, shard in zip(at, shards, strict=True)
    ):
        reads = [
            stream_read(
                *(
                    shard_read(
                        nth, shard[at[nth] : at[nth] + random.randrange(1, 5)], len(shard), at[nth]
                    )
                    for nth, shard in enumerate(shards)
                )
            )
            for at, shards in zip(offsets, logs, strict=True)
        ]
        cut = aligned(reads)
        records = [each for read in cut for shard in arrivals_of(read) for each in shard]
        assert records  # each batch has some
        assert min(records) >= newest  # none arrived before those of an earlier batch
        offsets = [[read.positions[nth] for nth in range(len(read.shards))] for read in cut]
        unread = [
            arrival
            for at, shards in zip(offsets, logs, strict=True)
            for end, shard in zip(at, shards, strict=True)
            for arrival in shard[end:]
        ]
        newest = max(records)
        assert min(unread, default=newest) >= newest


@pytest.mark.parametrize("seed", range(300))
def test_streams_that_are_split_are_read_to_their_ends(seed):
    """Each read advances, whatever the clocks say, and no record is read twice."""
    random = Random(seed)
    logs = [_Log(random), _Log(random)]
    while any(log.has_more for log in logs):
        reads = aligned([log.read() for log in logs])
        assert any(has_news(read) for read in reads)
        for log, read in zip(logs, reads, strict=True):
            log.advance(read)

    assert [log.seen for log in logs] == [log.arrivals for log in logs]


class _Log:
    """A shard that is split, whose children may be opened before its last records arrive."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.arrivals = [
            [random.randrange(30) for _ in range(random.randrange(9))] for _ in range(3)
        ]
        if random.random() < 0.5:  # clocks go forward
            self.arrivals = [sorted(each) for each in self.arrivals]
        self.seen: list[list[int]] = [[], [], []]
        self._children = tuple(
            Shard(nth, f"l{nth}", nth, nth, random.randrange(30), None, (0,)) for nth in (1, 2)
        )
        self._is_split = False

    @property
    def has_more(self) -> bool:
        return not self._is_split or self.seen != self.arrivals

    def read(self) -> StreamRead:
        shards = [1, 2] if self._is_split else [0]
        return stream_read(*map(self._read, shards))

    def _read(self, shard: int) -> ShardRead:
        first, tip = len(self.seen[shard]), len(self.arrivals[shard])
        end = min(tip, first + self._random.randrange(1, 5))
        arrivals = self.arrivals[shard][first:end]
        if shard == 0 and end == tip:
            return shard_read(0, arrivals, tip, first, ended=True, children=self._children)
        return shard_read(shard, arrivals, tip, first)

    def advance(self, read: StreamRead) -> None:
        """Note what a read has, which continues the one before it."""
        for shard in read.shards:
            assert [one.offset for one in shard.records][:1] in ([], [len(self.seen[shard.shard])])
            self.seen[shard.shard] += [one.arrival_ms for one in shard.records]
            self._is_split |= shard.ended
            assert read.positions[shard.shard] == (
                FULLY_READ if shard.ended else len(self.seen[shard.shard])
            )
