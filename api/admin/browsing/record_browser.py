"""Paged browsing and search of a stream's records.

A position is an offset in each of some shards, as every reader of a stream has it; in a URL it is a cursor that
`GET /v1/streams/{stream}/records` takes too. A search scans `SCANNED_MAX` records and reports where it stopped, so
that no page reads a stream to its end.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.record_filter import Filter, Selects, has_text, selects
from storage.domain.streams.stream import (
    Gap,
    LogRecord,
    ShardRead,
    ShardState,
    Stream,
    Tier,
    slowest,
)
from storage.streams.seek import offset_since, positions_since

ROWS = 50
"""Records on one page."""

SCANNED_MAX = 5_000
_READ_BYTES_MAX = 4 * limits.MIB
_SCANNED_BYTES_MAX = 4 * _READ_BYTES_MAX
_READ_RECORDS = 1_000

Positions = Mapping[int, int]


class BrowseStart(StrEnum):
    """Start of browsing. live: at the next records, which are shown as they arrive."""

    LATEST = "latest"
    EARLIEST = "earliest"
    OFFSET = "offset"
    TIME = "time"
    KEY = "key"
    LIVE = "live"


class ShardRecord(NamedTuple):
    """A record and its shard."""

    shard: int
    record: LogRecord


class BrowsedPage(NamedTuple):
    """Page of records, by arrival.

    `after`: the start of the next page; None where no more records exist now.
    `scanned`: the number of records that were scanned to find these.
    """

    records: list[ShardRecord]
    after: Positions | None
    scanned: int
    gaps: list[tuple[int, Gap]]
    tier: Tier


class BrowsePosition(NamedTuple):
    """Start of a page.

    `shard`: only that one is read; otherwise all are, children after their parents.
    """

    positions: Positions
    shard: int | None


async def scan_records(
    storage: Storage,
    stream: Stream,
    start: BrowsePosition,
    predicate: Selects | None,
    rows: int = ROWS,
) -> BrowsedPage:
    """Return the first records from a position on that match."""
    position, records, gaps = start, list[ShardRecord](), list[tuple[int, Gap]]()
    tier, scanned, size = Tier.HOT, 0, 0
    while len(records) < rows and scanned < SCANNED_MAX and size < _SCANNED_BYTES_MAX:
        most = _READ_RECORDS if predicate else rows - len(records)
        reads, after = await _read(storage, stream, position, most)
        arrived = [ShardRecord(read.shard, record) for read in reads for record in read.records]
        gaps += [(read.shard, read.gap) for read in reads if read.gap]
        tier = Tier.ARCHIVE if slowest(reads) is Tier.ARCHIVE else tier
        if not arrived and after.positions == position.positions:
            return BrowsedPage(_by_arrival(records), None, scanned, gaps, tier)
        matching = [one for one in arrived if predicate is None or predicate(one.shard, one.record)]
        selected, position = _cut(matching, after, rows - len(records))
        records += selected
        scanned += len(arrived)
        size += sum(len(one.record.record.data) for one in arrived)
    return BrowsedPage(_by_arrival(records), position.positions, scanned, gaps, tier)


async def _read(
    storage: Storage, stream: Stream, position: BrowsePosition, records_max: int
) -> tuple[Sequence[ShardRead], BrowsePosition]:
    many: dict[str, Any] = {"records_max": records_max, "bytes_max": _READ_BYTES_MAX}
    many |= {"stream_id": stream.stream_id}
    if position.shard is None:
        read = await storage.record_reader.read(stream.name, position.positions, **many)
        return read.shards, BrowsePosition(read.positions, None)
    reads = await storage.record_reader.read_shards(stream.name, position.positions, **many)
    return reads, BrowsePosition({read.shard: read.next_offset for read in reads}, position.shard)


def _cut(
    matching: Sequence[ShardRecord], after: BrowsePosition, capacity: int
) -> tuple[list[ShardRecord], BrowsePosition]:
    """Return as many records as fit, and the position of the others.

    All are returned where a shard has ended.
    """
    ordered = _by_arrival(matching)
    selected, left = ordered[:capacity], ordered[capacity:]
    back: dict[int, int] = {}
    for record in left:
        back.setdefault(record.shard, record.record.offset)
    if any(after.positions.get(shard, FULLY_READ) == FULLY_READ for shard in back):
        return ordered, after
    return selected, after._replace(positions={**after.positions, **back})


def _by_arrival(records: Sequence[ShardRecord]) -> list[ShardRecord]:
    """Sort by arrival; each shard keeps its order.

    Arrivals of a shard never decrease and the sort is stable.
    """
    return sorted(records, key=lambda record: record.record.arrival_ms)


async def position_of(
    storage: Storage,
    stream: Stream,
    begin: BrowseStart,
    shard: int | None,
    *,
    offset: int = 0,
    time_ms: int = 0,
    back: int = ROWS,
) -> BrowsePosition:
    """Return the position where browsing begins.

    `back`: the number of records before the end, of all shards together.
    """
    name = stream.name
    states = await storage.record_reader.shards(name, stream.stream_id)
    chosen = [state for state in states if shard is None or state.shard.index == shard]
    match begin:
        case BrowseStart.LATEST | BrowseStart.LIVE:
            chosen = [state for state in chosen if shard is not None or state.shard.is_open]
            each = -(-back // max(1, len(chosen)))
            return BrowsePosition(
                {one.shard.index: max(one.start, one.next - each) for one in chosen}, shard
            )
        case BrowseStart.TIME if shard is None:
            return BrowsePosition(
                await positions_since(storage.record_reader, storage.catalog, name, time_ms), None
            )
        case BrowseStart.TIME if shard is not None:
            first = await offset_since(storage.record_reader, name, shard, time_ms)
            return BrowsePosition({shard: first}, shard)
        case BrowseStart.OFFSET if shard is not None:
            return BrowsePosition({one.shard.index: _within(one, offset) for one in chosen}, shard)
        case _:
            return BrowsePosition({} if shard is None else {shard: chosen[0].start}, shard)


def _within(state: ShardState, offset: int) -> int:
    """Return the readable offset nearest to the requested one."""
    return min(max(offset, state.start), state.next)


def predicate_of(text: str, record_filter: Filter) -> Selects | None:
    """Return a predicate for records, or None if all match.

    It matches records of the filter that have `text` in the body, key or a header, ignoring case.
    """
    selected = selects(record_filter)
    if not text:
        return selected

    def matches(shard: int, log_record: LogRecord) -> bool:
        return (not selected or selected(shard, log_record)) and has_text(log_record.record, text)

    return matches
