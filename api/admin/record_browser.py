"""Looking through a stream's records: from where, through which shards, for what; a page at a time.

A place is a position in each of some shards, as every reader of a stream has it; where it is spelled in an address,
it is a cursor that `GET /v1/streams/{stream}/records` takes too. A search looks at `LOOKED_AT_MAX` records and says
where it stopped, so that no page reads a stream to its end.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from api.native.fields import moment_ms
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.names import StreamName
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import (
    Gap,
    LogRecord,
    ReadFrom,
    ShardRead,
    ShardState,
    Stream,
    Tier,
    slowest,
)
from storage.streams.seek import positions_since

ROWS = 50
"""Records on one page."""

LOOKED_AT_MAX = 5_000
_READ_BYTES_MAX = 4 * limits.MIB
_LOOKED_AT_BYTES_MAX = 4 * _READ_BYTES_MAX
_READ_RECORDS = 1_000

Wanted = Callable[[LogRecord], bool]
Positions = Mapping[int, int]


class From(StrEnum):
    """Where looking begins. live: at what comes next, which is told as it comes."""

    LATEST = "latest"
    EARLIEST = "earliest"
    OFFSET = "offset"
    TIME = "time"
    KEY = "key"
    LIVE = "live"


class At(NamedTuple):
    """A record and its shard."""

    shard: int
    record: LogRecord


class Found(NamedTuple):
    """A page of records, by arrival. `after`: where the next page begins; None where there is no more now.
    `looked_at`: so many were looked at to find these."""

    records: list[At]
    after: Positions | None
    looked_at: int
    gaps: list[tuple[int, Gap]]
    tier: Tier


class Place(NamedTuple):
    """Where a page begins. `shard`: that one is read and no other; else all are, children after their parents."""

    positions: Positions
    shard: int | None


async def look(
    storage: Storage, name: StreamName, place: Place, wanted: Wanted | None, rows: int = ROWS
) -> Found:
    """The first records from a place on that are wanted."""
    at, found, gaps = place, list[At](), list[tuple[int, Gap]]()
    tier, looked_at, size = Tier.HOT, 0, 0
    while len(found) < rows and looked_at < LOOKED_AT_MAX and size < _LOOKED_AT_BYTES_MAX:
        most = _READ_RECORDS if wanted else rows - len(found)
        reads, after = await _read(storage, name, at, most)
        came = [At(read.shard, record) for read in reads for record in read.records]
        gaps += [(read.shard, read.gap) for read in reads if read.gap]
        tier = Tier.ARCHIVE if slowest(reads) is Tier.ARCHIVE else tier
        if not came and after.positions == at.positions:
            return Found(_by_arrival(found), None, looked_at, gaps, tier)
        meant = [one for one in came if wanted is None or wanted(one.record)]
        taken, at = _cut(meant, after, rows - len(found))
        found += taken
        looked_at += len(came)
        size += sum(len(one.record.record.data) for one in came)
    return Found(_by_arrival(found), at.positions, looked_at, gaps, tier)


async def _read(
    storage: Storage, name: StreamName, place: Place, records_max: int
) -> tuple[Sequence[ShardRead], Place]:
    many = {"records_max": records_max, "bytes_max": _READ_BYTES_MAX}
    if place.shard is None:
        read = await storage.streams.read(name, place.positions, **many)
        return read.shards, Place(read.positions, None)
    reads = await storage.streams.read_shards(name, place.positions, **many)
    return reads, Place({read.shard: read.next_offset for read in reads}, place.shard)


def _cut(meant: Sequence[At], after: Place, room: int) -> tuple[list[At], Place]:
    """So many of them as there is room for, and where the others begin. All, where a shard of them has ended."""
    ordered = _by_arrival(meant)
    taken, left = ordered[:room], ordered[room:]
    back: dict[int, int] = {}
    for one in left:
        back.setdefault(one.shard, one.record.offset)
    if any(after.positions.get(shard, FULLY_READ) == FULLY_READ for shard in back):
        return ordered, after
    return taken, after._replace(positions={**after.positions, **back})


def _by_arrival(found: Sequence[At]) -> list[At]:
    """Arrivals of a shard never fall and the sort is stable: each shard keeps its order."""
    return sorted(found, key=lambda one: one.record.arrival_ms)


async def place_at(
    storage: Storage,
    stream: Stream,
    begin: From,
    shard: int | None,
    *,
    offset: int = 0,
    time_ms: int = 0,
    back: int = ROWS,
) -> Place:
    """Where looking begins. `back`: so many records before the end, of all shards together."""
    name = stream.name
    states = await storage.streams.shards(name)
    chosen = [state for state in states if shard is None or state.shard.index == shard]
    match begin:
        case From.LATEST | From.LIVE:
            chosen = [state for state in chosen if shard is not None or state.shard.is_open]
            each = -(-back // max(1, len(chosen)))
            return Place(
                {one.shard.index: max(one.start, one.next - each) for one in chosen}, shard
            )
        case From.TIME if shard is None:
            return Place(
                await positions_since(storage.streams, storage.catalog, name, time_ms), None
            )
        case From.TIME:
            since = ReadFrom(time_ms=time_ms)
            read = await storage.streams.read_shard(
                name, shard or 0, since, records_max=1, bytes_max=1
            )
            first = read.records[0].offset if read.records else read.next_offset
            return Place({read.shard: first}, shard)
        case From.OFFSET if shard is not None:
            return Place({one.shard.index: _within(one, offset) for one in chosen}, shard)
        case _:
            return Place({} if shard is None else {shard: chosen[0].start}, shard)


def _within(state: ShardState, offset: int) -> int:
    """The nearest offset to the one that was asked for which can be read."""
    return min(max(offset, state.start), state.next)


def wants(text: str, key: str = "") -> Wanted | None:
    """Which records are meant: those with `text` in body, key or a header, whatever its case, and of that key."""
    if not text and not key:
        return None
    sought = text.lower().encode()

    def wanted(at: LogRecord) -> bool:
        record = at.record
        if key and record.key != key:
            return False
        return (
            not sought
            or sought in record.data.lower()
            or sought in record.key.lower().encode()
            or any(
                sought in value.lower() or sought in name.lower().encode()
                for name, _, value in record.headers
            )
        )

    return wanted


def moment(text: str) -> int:
    """Milliseconds since 1970 of what was typed: a time, UTC unless it says otherwise. Raises ValidationFailed."""
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValidationFailed.at(
            "/time", "Expected a time such as 2026-01-31 12:00:00", "invalid"
        ) from None
    return moment_ms(told if told.tzinfo else told.replace(tzinfo=UTC))
