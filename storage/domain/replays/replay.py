"""Replays: records of a stream are sent again, to another stream or to a queue, each once.

A replay is a job (`storage.domain.jobs`). Its window is fixed when it is begun, as parts: each is offsets
[first, end) of one shard, is read in order, and is a rising producer of its own whose sequences are the source's
offsets. So a part may be read again from any position it has reached, by anyone, and adds nothing twice (R1).

    order   parts               which may go at once
    shard   one for each shard  all
    key     one for each shard  those whose parents are done: a key's records keep their order across reshards
    time    one for each shard  one writer takes of all parts what arrived first
    none    ranges of shards    all

With `max_records` one part goes after another, in the order of shards, so that which records are meant does not
depend on who is faster. By time it is the first that arrived.
"""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.jobs import JobPart
from storage.domain.log.record_batch import CONTENT_TYPE, RESERVED, Header, Headers
from storage.domain.names import LogId, check_name
from storage.domain.replays.pacing import Pacing
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import LogRecord, Shard

REPLAY_ID = ":replay_id"
SOURCE_STREAM = ":source_stream"
SOURCE_SHARD = ":source_shard"
SOURCE_OFFSET = ":source_offset"
SOURCE_TIME = ":source_time"
ORIGIN_HEADERS = frozenset((REPLAY_ID, SOURCE_STREAM, SOURCE_SHARD, SOURCE_OFFSET, SOURCE_TIME))
"""Where a replayed record came from, in the names that a reader sees. A replay of a replay tells the last one."""

OWN_OF_REPLAYS = ORIGIN_HEADERS | {CONTENT_TYPE}


class Order(StrEnum):
    """What keeps its order: see above."""

    SHARD = "shard"
    KEY = "key"
    TIME = "time"
    NONE = "none"


class ShardMode(StrEnum):
    """Where records go in a target stream."""

    REHASH = "rehash"
    """By their keys."""

    KEEP = "keep"
    """To where their source shard begins on the ring, all of one shard to one place."""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """An end of a window; one of the three. `offsets` are pairs of a shard and an offset; a shard that is not named
    is not bounded there. `bookmark` is (group, name); a shard that is younger than the bookmark had nothing then."""

    offsets: tuple[tuple[int, int], ...] | None = None
    time_ms: int | None = None
    bookmark: tuple[str, str] | None = None

    def faults(self, pointer: str) -> list[FieldFault]:
        """What is wrong with it."""
        if sum(one is not None for one in (self.offsets, self.time_ms, self.bookmark)) != 1:
            return [FieldFault(pointer, "Exactly one of offsets, time and bookmark", "exclusive")]
        if any(not 0 <= offset <= limits.OFFSET_MAX for _, offset in self.offsets or ()):
            return [FieldFault(f"{pointer}/offsets", "An offset is at least 0", "out_of_range")]
        return []


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where records go: a stream or a queue of the namespace."""

    stream: str | None = None
    queue: str | None = None
    shard_mode: ShardMode = ShardMode.REHASH


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner asks for. The window goes from `start`, or the oldest record, up to `end`, or what there is when
    the replay begins."""

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
        """Raise ValidationFailed with every fault that can be seen without a store."""
        faults = [
            *(self.start.faults("/from") if self.start else ()),
            *(self.end.faults("/to") if self.end else ()),
            *self.filter.faults(),
            *self.pacing.faults(),
            *self._target_faults(),
        ]
        if self.max_records is not None and self.max_records < 1:
            faults.append(FieldFault("/max_records", "must be at least 1", "out_of_range"))
        if self.shards is not None and not self.shards:
            faults.append(FieldFault("/shards", "name one at least, or leave it out", "too_few"))
        if faults:
            raise ValidationFailed("The replay is not valid.", *faults)
        for name in (self.stream, self.target.stream, self.target.queue):
            if name is not None:
                check_name(name)

    def _target_faults(self) -> list[FieldFault]:
        target, faults = self.target, []
        if (target.stream is None) == (target.queue is None):
            faults.append(FieldFault("/target", "Exactly one of stream and queue", "exclusive"))
        if target.queue is not None and target.shard_mode is ShardMode.KEEP:
            detail = "A queue has no shards to keep"
            faults.append(FieldFault("/target/shard_mode", detail, "not_allowed"))
        if target.stream == self.stream and not self.allow_same_stream:
            detail = (
                "The target is the source: its records would be there twice. Say allow_same_stream"
                " if that is meant"
            )
            faults.append(FieldFault("/target/stream", detail, "same_stream"))
        return faults


class ReplaySpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told. Source and target are those of that name when the replay was asked for, and no others
    that were made anew since."""

    replay_id: str
    request: ReplayRequest
    stream_id: LogId
    target_id: LogId


class Reach(msgspec.Struct, frozen=True):
    """Offsets [first, end) of a shard."""

    shard: int
    first: int
    end: int


class Replaying(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a replay, and how far it is: `position` is the next offset to read.

    Of what was read `selected` were meant; `sent` are new in the target, `duplicates` had been sent before, by this
    attempt or another. `expired` had gone before they could be read.
    """

    part: str
    reach: Reach
    position: int
    done: bool = False
    read: int = 0
    selected: int = 0
    sent: int = 0
    duplicates: int = 0
    bytes: int = 0
    expired: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """What is stored beside the position."""
        mine = {name: getattr(self, name) for name in _COUNTS}
        return mine | {
            "shard": self.reach.shard,
            "first": self.reach.first,
            "end": self.reach.end,
        }

    def to_job(self) -> JobPart:
        """The part as its job stores it."""
        return JobPart(self.part, self.position, self.done, self.counts)

    @classmethod
    def from_job(cls, stored: JobPart) -> "Replaying":
        """The part that a job stored."""
        counts = stored.counts
        return cls(
            part=stored.part,
            reach=Reach(counts["shard"], counts["first"], counts["end"]),
            position=stored.position,
            done=stored.done,
            **{name: counts.get(name, 0) for name in _COUNTS},
        )


_COUNTS = ("read", "selected", "sent", "duplicates", "bytes", "expired")

PLANNED = "planned"
"""The part that says that all others are there: the window is fixed."""


def parts_of(reaches: Sequence[Reach], order: Order) -> list[Replaying]:
    """A replay's parts before it has begun."""
    if order is not Order.NONE:
        return [_part(f"shard {one.shard:06d}", one) for one in reaches]
    step = _step(reaches)
    return [
        _part(f"shard {one.shard:06d} range {nth:04d}", piece)
        for one in reaches
        for nth, piece in enumerate(_cut(one, step))
    ]


def _part(name: str, reach: Reach) -> Replaying:
    return Replaying(part=name, reach=reach, position=reach.first)


def _step(reaches: Sequence[Reach]) -> int:
    """How much a range holds: so much that the parts are not too many, for a target remembers each."""
    whole = sum(reach.end - reach.first for reach in reaches)
    room = max(1, limits.REPLAY_RANGES_MAX - len(reaches))
    return max(limits.REPLAY_RANGE_RECORDS, -(-whole // room))


def _cut(reach: Reach, step: int) -> list[Reach]:
    firsts = range(reach.first, reach.end, step)
    return [Reach(reach.shard, first, min(first + step, reach.end)) for first in firsts]


def producer_of(job_id: str, part: str) -> str:
    """The rising producer that a part is."""
    known_as = hashlib.blake2b(job_id.encode(), digest_size=12).hexdigest()
    return f"replay:{known_as}:{part}"


def waves(parts: Sequence[Replaying], shards: Sequence[Shard], order: Order) -> list[list[str]]:
    """The parts by name, in the groups that may go at once, one group after another."""
    if order is not Order.KEY:
        return [[part.part for part in parts]] if parts else []
    depths = _depths(shards)
    by_depth: dict[int, list[str]] = {}
    for part in parts:
        by_depth.setdefault(depths.get(part.reach.shard, 0), []).append(part.part)
    return [by_depth[depth] for depth in sorted(by_depth)]


def _depths(shards: Iterable[Shard]) -> dict[int, int]:
    """How many generations came before each shard; parents come before their children."""
    depths: dict[int, int] = {}
    for shard in shards:
        above = [depths[parent] for parent in shard.parents if parent in depths]
        depths[shard.index] = max(above, default=-1) + 1
    return depths


def origin(replay_id: str, stream: str, shard: int, at: LogRecord) -> Headers:
    """The headers that say where a record came from."""
    told = (
        (REPLAY_ID, replay_id),
        (SOURCE_STREAM, stream),
        (SOURCE_SHARD, str(shard)),
        (SOURCE_OFFSET, str(at.offset)),
        (SOURCE_TIME, str(at.arrival_ms)),
    )
    return tuple((name, "", word.encode()) for name, word in told)


def own_headers(headers: Headers) -> tuple[list[Header], str]:
    """A record's headers without reserved ones, and its content type."""
    own = [header for header in headers if not header[0].startswith(RESERVED)]
    content_type = next((value.decode() for name, _, value in headers if name == CONTENT_TYPE), "")
    return own, content_type


def group_for(key: str, shard: int, *, fifo: bool) -> str:
    """The message group of a record: its key, or a digest of a long one. In a fifo queue records without a key keep
    the order of their shard."""
    if not key:
        return f"shard {shard}" if fifo else ""
    if len(key) <= limits.GROUP_CHARACTERS_MAX:
        return key
    return hashlib.sha256(key.encode()).hexdigest()


def progress_of(parts: Iterable[Replaying]) -> dict[str, Any]:
    """A replay as a whole."""
    some = list(parts)
    total: dict[str, Any] = {name: sum(getattr(part, name) for part in some) for name in _COUNTS}
    total["records"] = sum(part.reach.end - part.reach.first for part in some)
    total["parts"] = len(some)
    total["parts_done"] = sum(part.done for part in some)
    return total
