"""What a replay would do, before it does it: how much, what for instance, and how long it would take."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.groups.group import without_holes
from storage.domain.names import LogId, StreamName
from storage.domain.replays.replay import Reach, ReplayRequest
from storage.domain.streams.record_filter import Selects, selects
from storage.domain.streams.stream import LogRecord, Stream
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.replays.window import WindowResolver
from storage.streams.engine import Streams

Holes = dict[LogId, list[tuple[int, int]]]


class Estimate(msgspec.Struct, frozen=True):
    """A number, and whether it is known rather than made up from examples."""

    count: int
    exact: bool


class Found(msgspec.Struct, frozen=True):
    """A record that would be sent, and its shard."""

    shard: int
    at: LogRecord


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A replay that was not begun. `records` and `bytes`, keys and headers included, are what would be sent;
    `seconds` is how long that takes at the least. `expired` of the window are gone already."""

    reaches: tuple[Reach, ...]
    records: Estimate
    bytes: Estimate
    expired: int
    seconds: float
    sample: tuple[Found, ...]


class _Looked(msgspec.Struct):
    """What was seen of the window."""

    records: int = 0
    selected: int = 0
    bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    found: list[Found] = []

    def add(self, shard: int, at: LogRecord, is_meant: Selects) -> None:
        """One more record was looked at."""
        self.records += 1
        self.first_ms = (
            at.arrival_ms if self.first_ms is None else min(self.first_ms, at.arrival_ms)
        )
        self.last_ms = max(self.last_ms or 0, at.arrival_ms)
        if is_meant(shard, at):
            self.selected += 1
            self.bytes += at.record.size_bytes
            self.found.append(Found(shard, at))


class ReplayPlanner:
    """Plans replays. Reads; changes nothing."""

    def __init__(self, streams: Streams, windows: WindowResolver, rows: ArchiveRows) -> None:
        self._streams = streams
        self._windows = windows
        self._rows = rows

    async def plan(self, namespace: str, request: ReplayRequest, *, exact: bool = False) -> Plan:
        """What a replay would do now. With `exact` all of the window is read where that is needed.

        Raises ValidationFailed where that is too much, and what `WindowResolver` does.
        """
        source = await self._windows.source(namespace, request)
        await self._windows.target_id(namespace, request)
        reaches = await self._windows.reaches(source, request)
        held, expired = await self._held(source, reaches)
        looked = await self._look(source, reaches, request, held, whole=exact)
        return _plan(request, reaches, held, expired, looked)

    async def _held(self, source: Stream, reaches: Sequence[Reach]) -> tuple[int, int]:
        """How many records the window has, and how many of it are gone."""
        states = {state.shard.index: state for state in await self._streams.shards(source.name)}
        holes: Holes = await self._rows.holes([state.shard.log_id for state in states.values()])
        held = expired = 0
        for reach in reaches:
            state = states[reach.shard]
            empty = holes.get(state.shard.log_id, [])
            held += without_holes(max(reach.first, state.start), reach.end, empty)
            expired += without_holes(reach.first, min(state.start, reach.end), empty)
        return held, expired

    async def _look(
        self,
        source: Stream,
        reaches: Sequence[Reach],
        request: ReplayRequest,
        held: int,
        *,
        whole: bool,
    ) -> _Looked:
        if whole and not request.filter.takes_all and held > limits.REPLAY_SCAN_RECORDS_MAX:
            detail = (
                f"The window has {held} records; at most {limits.REPLAY_SCAN_RECORDS_MAX} are"
                " counted one by one"
            )
            raise ValidationFailed.at("/exact", detail, "too_many")
        looked, is_meant = _Looked(), selects(request.filter)
        places = list(reaches) if whole and not request.filter.takes_all else _places(reaches)
        for some in _in_turn(places):
            await asyncio.gather(
                *(self._look_at(source.name, place, looked, is_meant) for place in some)
            )
        return looked

    async def _look_at(
        self, name: StreamName, place: Reach, looked: _Looked, is_meant: Selects
    ) -> None:
        async for at in self._records(name, place):
            looked.add(place.shard, at, is_meant)

    async def _records(self, name: StreamName, place: Reach) -> AsyncIterator[LogRecord]:
        offset = place.first
        while offset < place.end:
            most = min(limits.READ_RECORDS_MAX, place.end - offset)
            reads = await self._streams.read_shards(
                name, {place.shard: offset}, records_max=most, bytes_max=limits.REPLAY_READ_BYTES
            )
            if not reads or reads[0].next_offset <= offset:
                return
            for at in reads[0].records:
                if at.offset < place.end:
                    yield at
            offset = reads[0].next_offset


_AT_ONCE = 8  # places that are looked at


def _in_turn(places: Sequence[Reach]) -> list[Sequence[Reach]]:
    return [places[nth : nth + _AT_ONCE] for nth in range(0, len(places), _AT_ONCE)]


def _places(reaches: Sequence[Reach]) -> list[Reach]:
    """Where to look for an estimate: all of a small shard, or a few places that lie apart; of some shards, where
    there are many."""
    per_shard = limits.REPLAY_LOOKS_PER_SHARD
    every = -(-len(reaches) * per_shard // limits.REPLAY_LOOKS_MAX) or 1
    found = []
    for reach in reaches[::every]:
        whole, step = reach.end - reach.first, limits.REPLAY_LOOK_RECORDS
        if whole <= per_shard * step:
            found.append(reach)
            continue
        firsts = (reach.first + (whole - step) * nth // (per_shard - 1) for nth in range(per_shard))
        found += [Reach(reach.shard, first, first + step) for first in firsts]
    return found


def _plan(
    request: ReplayRequest, reaches: Sequence[Reach], held: int, expired: int, looked: _Looked
) -> Plan:
    saw_all = looked.records >= held
    share = looked.selected / looked.records if looked.records else 0.0
    each = looked.bytes / looked.selected if looked.selected else 0.0
    known = saw_all or request.filter.takes_all
    count = held if request.filter.takes_all else looked.selected if saw_all else int(held * share)
    count = count if request.max_records is None else min(count, request.max_records)
    size = looked.bytes if saw_all and count == looked.selected else int(count * each)
    span_ms = (looked.last_ms or 0) - (looked.first_ms or 0)
    seconds = request.pacing.seconds_for(count, size, span_ms)
    shown = sorted(looked.found, key=lambda one: (one.shard, one.at.offset))
    return Plan(
        reaches=tuple(reaches),
        records=Estimate(count, known),
        bytes=Estimate(size, saw_all and count == looked.selected),
        expired=expired,
        seconds=count / limits.REPLAY_RECORDS_PER_SECOND if seconds is None else seconds,
        sample=tuple(_spread(shown)),
    )


def _spread(found: Sequence[Found]) -> Sequence[Found]:
    """Some of them, over all."""
    most = limits.REPLAY_SAMPLE_MAX
    if len(found) <= most:
        return found
    return [found[nth * len(found) // most] for nth in range(most)]
