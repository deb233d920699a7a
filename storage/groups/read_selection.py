"""Selection of what a member's read returns: the records of a filter, within its limits."""

import heapq
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.groups.group import MemberShard
from storage.domain.names import StreamName
from storage.domain.streams.record_filter import Filter, Selects, selects
from storage.domain.streams.stream import LogRecord, ShardRead


def select_reads(
    reads: Sequence[ShardRead], matches: Selects, records_max: int, bytes_max: int
) -> list[ShardRead]:
    """Return each read with its selected records: in all, those that arrived first.

    While some of `bytes_max` is left, one more is selected, also a large one. A read that is cut continues at its next selected
    record.
    """
    selected = {
        read.shard: [record for record in read.records if matches(read.shard, record)]
        for read in reads
    }
    counts = _counts(selected, records_max, bytes_max)
    return [_part(read, selected[read.shard], counts[read.shard]) for read in reads]


def _counts(
    selected: Mapping[int, Sequence[LogRecord]], records_max: int, bytes_max: int
) -> dict[int, int]:
    """Return how many of each shard's records are within the limits."""
    by_arrival = heapq.merge(
        *(
            [(record.arrival_ms, shard, record.record.size_bytes) for record in records]
            for shard, records in selected.items()
        ),
        key=lambda entry: entry[:2],
    )
    counts = dict.fromkeys(selected, 0)
    for nth, (_, shard, size_bytes) in enumerate(by_arrival):
        if nth == records_max or bytes_max <= 0:
            break
        counts[shard] += 1
        bytes_max -= size_bytes
    return counts


def _part(read: ShardRead, selected: Sequence[LogRecord], count: int) -> ShardRead:
    if count == len(selected):
        return replace(read, records=selected)
    following = selected[count]
    later_ms = read.records[-1].arrival_ms - following.arrival_ms
    return replace(
        read,
        records=selected[:count],
        next_offset=following.offset,
        behind_ms=read.behind_ms + later_ms,
        ended=False,
        children=(),
    )


class ReadPositions:
    """Positions of a fetch ahead of the group's, each with the generation of its read."""

    def __init__(self, positions: Mapping[int, int], generation: int) -> None:
        self._ahead = {shard: (offset, generation) for shard, offset in positions.items()}
        self._passed: set[int] = set()

    def of_leases(self, places: Sequence[MemberShard]) -> dict[int, int]:
        """Return the positions of shards that have been the member's since they were read."""
        return {
            place.shard: self._ahead[place.shard][0]
            for place in places
            if place.shard in self._ahead and self._ahead[place.shard][1] >= place.generation
        }

    def pass_over(self, reads: Sequence[ShardRead], generation: int) -> None:
        """Advance past reads of which no record is selected."""
        for read in reads:
            self._ahead[read.shard] = read.next_offset, generation
            self._passed.add(read.shard)

    def passed(self, places: Sequence[MemberShard]) -> dict[int, int]:
        """Return the positions behind what was passed over, of the member's shards."""
        ahead = self.of_leases(places)
        return {shard: offset for shard, offset in ahead.items() if shard in self._passed}


class FetchSize:
    """Limits of a fetch and its filter; with one, more is read than is returned."""

    def __init__(self, records_max: int, bytes_max: int, record_filter: Filter) -> None:
        self.records_max = records_max
        self.bytes_max = bytes_max
        self._filter = record_filter
        self._matches: Selects | None = None
        takes_all = record_filter.takes_all
        self.raw_records_max = (
            records_max if takes_all else max(records_max, limits.GROUP_FILTER_RECORDS)
        )
        self.raw_bytes_max = bytes_max if takes_all else limits.READ_BYTES_MAX

    def matches(self, stream: StreamName) -> Selects | None:
        """Return the predicate of the filter, which is compiled once; None for all records."""
        if self._matches is None and not self._filter.takes_all:
            self._matches = selects(self._filter, stream)
        return self._matches
