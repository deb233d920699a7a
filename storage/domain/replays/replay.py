"""Replays: send records of a stream again, to another stream or to a queue, each once.

A replay is a job (`storage.domain.jobs`). Its window is fixed when it starts, as parts: each part is offsets
[first, end) of one shard, is read in order, and is a monotonic producer of its own whose sequences are the
source's offsets. So any worker may read a part again from any position it has reached, and adds nothing twice
(R1).

    order   parts               parts that may run in parallel
    shard   one for each shard  all
    key     one for each shard  those whose parents are done: a key's records keep their order across reshards
    time    one for each shard  one writer merges all parts by arrival
    none    ranges of shards    all

With `max_records` parts run one after another, in the order of shards, so that the selected records do not
depend on which worker is faster. By time it is the records that arrived first.
"""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.jobs import JobPart
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    RESERVED,
    SOURCE_STREAM,
    Header,
    Headers,
)
from storage.domain.names import LogId, StreamName, check_name
from storage.domain.replays.pacing import Pacing
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import Shard

REPLAY_ID = ":replay_id"
SOURCE_SHARD = ":source_shard"
SOURCE_OFFSET = ":source_offset"
SOURCE_TIME = ":source_time"
ORIGIN_HEADERS = frozenset((REPLAY_ID, SOURCE_STREAM, SOURCE_SHARD, SOURCE_OFFSET, SOURCE_TIME))
"""Names of the headers that state a replayed record's origin. A replay of a replay states the last one."""


class Order(StrEnum):
    """Order that a replay preserves: within a shard, within a key, by arrival time, or none."""

    SHARD = "shard"
    KEY = "key"
    TIME = "time"
    NONE = "none"


class ShardMode(StrEnum):
    """Placement of records in a target stream."""

    REHASH = "rehash"
    """By their keys."""

    KEEP = "keep"
    """To the first hash key of their source shard: all records of a shard go to one shard."""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a window: exactly one of the three.

    `offsets` are pairs of a shard and an offset; a shard that is not named is not bounded. `bookmark` is
    (group, name); a shard that is younger than the bookmark had nothing then.
    """

    offsets: tuple[tuple[int, int], ...] | None = None
    time_ms: int | None = None
    bookmark: tuple[str, str] | None = None

    def faults(self, pointer: str) -> list[FieldFault]:
        """Return the bound's validation faults."""
        if sum(one is not None for one in (self.offsets, self.time_ms, self.bookmark)) != 1:
            return [
                FieldFault(
                    pointer, "Specify exactly one of offsets, time and bookmark", "exclusive"
                )
            ]
        if any(not 0 <= offset <= limits.OFFSET_MAX for _, offset in self.offsets or ()):
            return [
                FieldFault(f"{pointer}/offsets", "An offset must be at least 0", "out_of_range")
            ]
        return []


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Target of a replay: a stream or a queue of the namespace."""

    stream: str | None = None
    queue: str | None = None
    shard_mode: ShardMode = ShardMode.REHASH


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Replay as requested by its owner.

    The window extends from `start`, or the oldest record, to `end`, or the last record when the replay begins.
    """

    stream: str
    target: Target
    shards: tuple[int, ...] | None = None
    start: Bound | None = None
    end: Bound | None = None
    filter: Filter = Filter()
    order: Order = Order.SHARD
    pacing: Pacing = Pacing()
    max_records: int | None = None
    allow_same_stream: bool = False

    def check(self) -> None:
        """Raise ValidationFailed or MatchInvalid for what can be detected without a store."""
        faults = [
            *(self.start.faults("/from") if self.start else ()),
            *(self.end.faults("/to") if self.end else ()),
            *self._window_faults(),
            *self.filter.faults(),
            *self.pacing.faults(),
            *self._target_faults(),
        ]
        if self.max_records is not None and self.max_records < 1:
            faults.append(FieldFault("/max_records", "must be at least 1", "out_of_range"))
        if self.shards is not None and not self.shards:
            faults.append(
                FieldFault("/shards", "must have at least one entry, or be omitted", "too_few")
            )
        if faults:
            raise ValidationFailed("The replay is invalid.", *faults)
        self.filter.check()
        StreamName(self.stream)
        for name in (self.target.stream, self.target.queue):
            if name is not None:
                check_name(name)

    def _window_faults(self) -> list[FieldFault]:
        """Return faults of an end before its start, where both are of the same kind."""
        start, end = self.start or Bound(), self.end or Bound()
        firsts = dict(start.offsets or ())
        faults = [
            FieldFault(f"/to/offsets/{shard}", "must not be before the start", "out_of_range")
            for shard, last in end.offsets or ()
            if last < firsts.get(shard, 0)
        ]
        if end.time_ms is not None and end.time_ms < (start.time_ms or 0):
            faults.append(FieldFault("/to/time", "must not be before the start", "out_of_range"))
        return faults

    def _target_faults(self) -> list[FieldFault]:
        target, faults = self.target, []
        if (target.stream is None) == (target.queue is None):
            faults.append(
                FieldFault("/target", "Specify exactly one of stream and queue", "exclusive")
            )
        if target.queue is not None and target.shard_mode is ShardMode.KEEP:
            detail = "A queue target cannot preserve shards"
            faults.append(FieldFault("/target/shard_mode", detail, "not_allowed"))
        if target.stream == self.stream and not self.allow_same_stream:
            detail = (
                "Source and target are the same stream; set allow_same_stream to permit duplicates"
            )
            faults.append(FieldFault("/target/stream", detail, "same_stream"))
        return faults


class ReplaySpec(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions to a worker.

    Source and target are identified by id: resources re-created under the same names after the request are not
    meant.
    """

    replay_id: str
    request: ReplayRequest
    stream_id: LogId
    target_id: LogId


class OffsetRange(msgspec.Struct, frozen=True):
    """Offsets [first, end) of a shard."""

    shard: int
    first: int
    end: int


class PartProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a replay and its progress: `position` is the next offset to read.

    Of the records `read`, `selected` matched the filter; `sent` are new in the target, `duplicates` had been sent
    before, by this attempt or another. `expired` had expired before they could be read. `waiting_attempt`: the attempt of the
    job that waited here for its target or its pace; 0 for none since the part last moved.
    """

    part: str
    reach: OffsetRange
    position: int
    done: bool = False
    read: int = 0
    selected: int = 0
    sent: int = 0
    duplicates: int = 0
    bytes: int = 0
    expired: int = 0
    waiting_attempt: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Counters stored with the position."""
        mine = {name: getattr(self, name) for name in _COUNTS}
        return mine | {
            "shard": self.reach.shard,
            "first": self.reach.first,
            "end": self.reach.end,
            "waiting_attempt": self.waiting_attempt,
        }

    def to_job(self) -> JobPart:
        """Convert to the part as its job stores it."""
        return JobPart(self.part, self.position, self.done, self.counts)

    @classmethod
    def from_job(cls, stored: JobPart) -> "PartProgress":
        """Convert from the part that a job stored."""
        counts = stored.counts
        return cls(
            part=stored.part,
            reach=OffsetRange(counts["shard"], counts["first"], counts["end"]),
            position=stored.position,
            done=stored.done,
            waiting_attempt=counts.get("waiting_attempt", 0),
            **{name: counts.get(name, 0) for name in _COUNTS},
        )


_COUNTS = ("read", "selected", "sent", "duplicates", "bytes", "expired")

PLANNED = "planned"
"""Part that marks the plan as complete: all other parts exist, and the window is fixed."""


def parts_of(reaches: Sequence[OffsetRange], order: Order) -> list[PartProgress]:
    """Return the parts of a replay before its start."""
    if order is not Order.NONE:
        return [_part(f"shard {one.shard:06d}", one) for one in reaches]
    step = _step(reaches)
    return [
        _part(f"shard {one.shard:06d} range {nth:04d}", piece)
        for one in reaches
        for nth, piece in enumerate(_cut(one, step))
    ]


def _part(name: str, reach: OffsetRange) -> PartProgress:
    return PartProgress(part=name, reach=reach, position=reach.first)


def _step(reaches: Sequence[OffsetRange]) -> int:
    """Return the number of records of a range.

    Large enough to bound the number of parts, because a target keeps state for each.
    """
    whole = sum(reach.end - reach.first for reach in reaches)
    ranges_max = max(1, limits.REPLAY_RANGES_MAX - len(reaches))
    return max(limits.REPLAY_RANGE_RECORDS, -(-whole // ranges_max))


def _cut(reach: OffsetRange, step: int) -> list[OffsetRange]:
    firsts = range(reach.first, reach.end, step)
    return [OffsetRange(reach.shard, first, min(first + step, reach.end)) for first in firsts]


def records_to_read(parts: Iterable[PartProgress], request: ReplayRequest) -> int:
    """Return how many records a replay has yet to read, at most."""
    left = sum(part.reach.end - part.position for part in parts if not part.done)
    if request.max_records is None or not request.filter.takes_all:
        return left
    return min(left, request.max_records)


def producer_of(job_id: str, part: str) -> str:
    """Return the id of the part's monotonic producer."""
    digest = hashlib.blake2b(job_id.encode(), digest_size=12).hexdigest()
    return f"replay:{digest}:{part}"


def waves(parts: Sequence[PartProgress], shards: Sequence[Shard], order: Order) -> list[list[str]]:
    """Return the parts by name, in groups that may run in parallel, one group after another."""
    if order is not Order.KEY:
        return [[part.part for part in parts]] if parts else []
    depths = _depths(shards)
    by_depth: dict[int, list[str]] = {}
    for part in parts:
        by_depth.setdefault(depths.get(part.reach.shard, 0), []).append(part.part)
    return [by_depth[depth] for depth in sorted(by_depth)]


def _depths(shards: Iterable[Shard]) -> dict[int, int]:
    """Return the number of generations before each shard.

    Parents come before their children in `shards`.
    """
    depths: dict[int, int] = {}
    for shard in shards:
        above = [depths[parent] for parent in shard.parents if parent in depths]
        depths[shard.index] = max(above, default=-1) + 1
    return depths


def source_headers(stream: str, shard: int, offset: int, at_ms: int) -> Headers:
    """Return the headers that state the origin of a record's copy beside a replay."""
    facts = {
        SOURCE_STREAM: stream,
        SOURCE_SHARD: str(shard),
        SOURCE_OFFSET: str(offset),
        SOURCE_TIME: str(at_ms),
    }
    return tuple((name, "", fact.encode()) for name, fact in facts.items())


def origins(
    replay_id: str,
    stream: str,
    shard: int,
    offsets: Sequence[int],
    arrivals_ms: Sequence[int],
) -> list[Headers]:
    """Return the headers that state the origin of each of a shard's records."""
    place = tuple(
        (name, "", value.encode())
        for name, value in (
            (REPLAY_ID, replay_id),
            (SOURCE_STREAM, stream),
            (SOURCE_SHARD, str(shard)),
        )
    )
    times = {at_ms: (SOURCE_TIME, "", b"%d" % at_ms) for at_ms in set(arrivals_ms)}
    return [
        (*place, (SOURCE_OFFSET, "", b"%d" % offset), times[arrival_ms])
        for offset, arrival_ms in zip(offsets, arrivals_ms, strict=True)
    ]


def own_headers(headers: Headers) -> tuple[list[Header], str]:
    """Return a record's headers without reserved ones, and its content type."""
    own = [header for header in headers if not header[0].startswith(RESERVED)]
    content_type = next((value.decode() for name, _, value in headers if name == CONTENT_TYPE), "")
    return own, content_type


def replayed_headers(headers: Headers) -> Headers:
    """Return a record's headers without reserved ones but its content type, which is last."""
    if not headers:
        return headers
    own, content_type = own_headers(headers)
    return (*own, (CONTENT_TYPE, "", content_type.encode())) if content_type else tuple(own)


def group_for(key: str, shard: int, *, fifo: bool) -> str:
    """Return the message group of a record: its key, or a digest of a long one.

    In a FIFO queue records without a key keep the order of their shard.
    """
    if not key:
        return f"shard {shard}" if fifo else ""
    if len(key) <= limits.GROUP_CHARACTERS_MAX:
        return key
    return hashlib.sha256(key.encode()).hexdigest()


def progress_of(parts: Iterable[PartProgress]) -> dict[str, Any]:
    """Return the progress of a replay as a whole."""
    replayed = list(parts)
    total: dict[str, Any] = {
        name: sum(getattr(part, name) for part in replayed) for name in _COUNTS
    }
    total["records"] = sum(part.reach.end - part.reach.first for part in replayed)
    total["parts"] = len(replayed)
    total["parts_done"] = sum(part.done for part in replayed)
    return total
