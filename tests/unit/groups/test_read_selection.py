"""Selection of what a member's read returns."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.groups.group import MemberShard
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import LogRecord, ShardRead
from storage.groups.read_selection import ReadPositions, select_reads


def read_of(shard: int, records: list[LogRecord]) -> ShardRead:
    end = records[-1].offset + 1 if records else 0
    return ShardRead(shard, records, end, 0, end, 0, ended=True)


@st.composite
def shard_reads(draw) -> list[ShardRead]:
    reads = []
    for shard in range(draw(st.integers(0, 3))):
        arrivals = sorted(draw(st.lists(st.integers(0, 9), max_size=8)))
        sizes = [draw(st.integers(0, 3)) for _ in arrivals]
        records = [
            LogRecord(offset, at, Record(b"x" * size))
            for offset, (at, size) in enumerate(zip(arrivals, sizes, strict=True))
        ]
        reads.append(read_of(shard, records))
    return reads


def matches(shard: int, record: LogRecord) -> bool:
    return (shard + record.offset) % 2 == 0


@given(reads=shard_reads(), records_max=st.integers(1, 12), bytes_max=st.integers(1, 12))
def test_selection_is_oldest_records_within_limits(reads, records_max, bytes_max):
    wanted = sorted(
        (
            (read.shard, record)
            for read in reads
            for record in read.records
            if matches(read.shard, record)
        ),
        key=lambda pair: (pair[1].arrival_ms, pair[0]),
    )

    parts = select_reads(reads, matches, records_max, bytes_max)

    chosen = [(part.shard, record) for part in parts for record in part.records]
    ahead = wanted[: len(chosen)]
    assert sorted(chosen, key=lambda pair: (pair[1].arrival_ms, pair[0])) == ahead
    sizes = [len(record.record.data) for _, record in ahead]
    assert len(chosen) <= records_max
    assert sum(sizes[:-1]) < bytes_max
    if len(chosen) < min(records_max, len(wanted)):
        assert sum(sizes) >= bytes_max


@given(reads=shard_reads(), records_max=st.integers(1, 4))
def test_cut_read_continues_at_its_next_selected_record(reads, records_max):
    for read, part in zip(reads, select_reads(reads, matches, records_max, 100), strict=True):
        wanted = [record for record in read.records if matches(read.shard, record)]
        left = wanted[len(part.records) :]
        assert part.next_offset == (left[0].offset if left else read.next_offset)
        assert part.ended is not bool(left)


def test_position_of_earlier_lease_is_not_read_on_from():
    positions = ReadPositions({0: 5, 1: 6}, 7)
    places = [MemberShard(0, 7, None), MemberShard(1, 8, None), MemberShard(2, 1, None)]

    positions.pass_over([read_of(2, [LogRecord(3, 0, Record(b""))])], 1)

    assert positions.of_leases(places) == {0: 5, 2: 4}
    assert positions.passed(places) == {2: 4}
