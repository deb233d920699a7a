"""Replay planner: an estimate of a replay's records, with a sample, and its duration."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import attrs
import msgspec

from storage.domain import limits
from storage.domain.errors import ShardNotFound, ValidationFailed
from storage.domain.groups.group import without_holes
from storage.domain.names import LogId
from storage.domain.replays.replay import OffsetRange, ReplayRequest
from storage.domain.streams.stream import LogRecord, Stream
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.replays.window import WindowResolver
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource

Holes = dict[LogId, list[tuple[int, int]]]


class Estimate(msgspec.Struct, frozen=True):
    """A number, and whether it is exact or estimated from samples."""

    count: int
    exact: bool


class SampleRecord(msgspec.Struct, frozen=True):
    """A record that would be sent, and its shard."""

    shard: int
    log_record: LogRecord


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a replay that was not started.

    `records` and `bytes`, keys and headers included, are what would be sent; `seconds` is how long that takes at the least.
    `expired` of the window's records no longer exist.
    """

    reaches: tuple[OffsetRange, ...]
    records: Estimate
    bytes: Estimate
    expired: int
    seconds: float
    sample: tuple[SampleRecord, ...]


class _Sampled(msgspec.Struct):
    """Observations of the window's records."""

    records: int = 0
    selected: int = 0
    bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    sample: list[SampleRecord] = []

    def add(self, shard: int, record: LogRecord, *, is_selected: bool) -> None:
        """Count one more record."""
        self.records += 1
        self.first_ms = (
            record.arrival_ms if self.first_ms is None else min(self.first_ms, record.arrival_ms)
        )
        self.last_ms = max(self.last_ms or 0, record.arrival_ms)
        if is_selected:
            self.selected += 1
            self.bytes += record.record.size_bytes
            self.sample.append(SampleRecord(shard, record))


@attrs.define(eq=False, slots=False)
class ReplayPlanner:
    """Read-only planner of replays."""

    _reader: RecordReader
    _windows: WindowResolver
    _rows: ArchiveRows

    async def plan(self, namespace: str, request: ReplayRequest, *, exact: bool = False) -> Plan:
        """Plan what a replay would do now.

        With `exact`, all of the window is read where that is needed. Raises ValidationFailed where that is too much, and what
        `WindowResolver` does.
        """
        source = await self._windows.source(namespace, request)
        await self._windows.target_id(namespace, request)
        reaches = await self._windows.reaches(source, request)
        existing, expired = await self._count_records(source, reaches)
        sampled = await self._sample(source, reaches, request, existing, whole=exact)
        return _plan(request, reaches, existing, expired, sampled)

    async def _count_records(
        self, source: Stream, reaches: Sequence[OffsetRange]
    ) -> tuple[int, int]:
        """Return how many records of the window exist, and how many no longer do."""
        states = {
            state.shard.index: state
            for state in await self._reader.shards(source.name, source.stream_id)
        }
        holes: Holes = await self._rows.holes([state.shard.log_id for state in states.values()])
        existing = expired = 0
        for reach in reaches:
            state = states[reach.shard]
            empty = holes.get(state.shard.log_id, [])
            existing += without_holes(max(reach.first, state.start), reach.end, empty)
            expired += without_holes(reach.first, min(state.start, reach.end), empty)
        return existing, expired

    async def _sample(
        self,
        source: Stream,
        reaches: Sequence[OffsetRange],
        request: ReplayRequest,
        existing: int,
        *,
        whole: bool,
    ) -> _Sampled:
        if whole and not request.filter.takes_all and existing > limits.REPLAY_SCAN_RECORDS_MAX:
            detail = f"The range has {existing} records; at most {limits.REPLAY_SCAN_RECORDS_MAX} can be counted exactly"
            raise ValidationFailed.at("/exact", detail, "too_many")
        sampled = _Sampled()
        records = RecordSource(self._reader, source.name, source.stream_id, request.filter)
        ranges = (
            list(reaches) if whole and not request.filter.takes_all else _ranges_to_sample(reaches)
        )
        for batch in _in_turn(ranges):
            await asyncio.gather(*(_sample_range(records, range_, sampled) for range_ in batch))
        return sampled


_READ_CONCURRENCY_MAX = 8  # ranges that are read


async def _sample_range(records: RecordSource, range_: OffsetRange, sampled: _Sampled) -> None:
    with suppress(ShardNotFound):  # it has expired
        async for read in records.reads(range_, bytes_max=limits.REPLAY_READ_BYTES):
            for record in read.records:
                if record.offset < range_.end:
                    is_selected = records.selects(range_.shard, record)
                    sampled.add(range_.shard, record, is_selected=is_selected)


def _in_turn(ranges: Sequence[OffsetRange]) -> list[Sequence[OffsetRange]]:
    return [
        ranges[nth : nth + _READ_CONCURRENCY_MAX]
        for nth in range(0, len(ranges), _READ_CONCURRENCY_MAX)
    ]


def _ranges_to_sample(reaches: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return the ranges to read for an estimate.

    All of a small shard, or a few ranges that lie apart; only of some shards, if there are many.
    """
    per_shard = limits.REPLAY_PROBES_PER_SHARD
    every = -(-len(reaches) * per_shard // limits.REPLAY_PROBES_MAX) or 1
    ranges = []
    for reach in reaches[::every]:
        whole, step = reach.end - reach.first, limits.REPLAY_PROBE_RECORDS
        if whole <= per_shard * step:
            ranges.append(reach)
            continue
        firsts = (reach.first + (whole - step) * nth // (per_shard - 1) for nth in range(per_shard))
        ranges += [OffsetRange(reach.shard, first, first + step) for first in firsts]
    return ranges


def _plan(
    request: ReplayRequest,
    reaches: Sequence[OffsetRange],
    existing: int,
    expired: int,
    sampled: _Sampled,
) -> Plan:
    saw_all = sampled.records >= existing
    share = sampled.selected / sampled.records if sampled.records else 0.0
    each = sampled.bytes / sampled.selected if sampled.selected else 0.0
    is_exact = saw_all or request.filter.takes_all
    count = (
        existing
        if request.filter.takes_all
        else sampled.selected
        if saw_all
        else int(existing * share)
    )
    count = count if request.max_records is None else min(count, request.max_records)
    size = sampled.bytes if saw_all and count == sampled.selected else int(count * each)
    span_ms = (sampled.last_ms or 0) - (sampled.first_ms or 0)
    seconds = request.pacing.seconds_for(count, size, span_ms)
    shown = sorted(sampled.sample, key=lambda example: (example.shard, example.log_record.offset))
    return Plan(
        reaches=tuple(reaches),
        records=Estimate(count, is_exact),
        bytes=Estimate(size, saw_all and count == sampled.selected),
        expired=expired,
        seconds=count / limits.REPLAY_RECORDS_PER_SECOND if seconds is None else seconds,
        sample=tuple(_spread(shown)),
    )


def _spread(records: Sequence[SampleRecord]) -> Sequence[SampleRecord]:
    """Return an evenly spread sample of the records."""
    most = limits.REPLAY_SAMPLE_MAX
    if len(records) <= most:
        return records
    return [records[nth * len(records) // most] for nth in range(most)]
