"""Stream: shards over a ring of hash keys, records, and the types of appends and reads."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache

import msgspec

from storage.domain import limits
from storage.domain.definitions import check_range, tag_faults
from storage.domain.errors import FieldFault, MillstreamError, ShardNotFound, ValidationFailed
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId, StreamName
from storage.domain.streams.topic_spec import TopicSpec

RING_SIZE = 2**128
_KEYS_CACHED_MAX = 16_384  # a few megabytes; repeated keys are looked up, not hashed


class StreamMode(StrEnum):
    """Capacity mode: how the number of shards is determined."""

    PROVISIONED = "provisioned"
    """Its owner sets the number."""

    ON_DEMAND = "on_demand"
    """Follows the load, never below the number at creation: `storage.domain.streams.load_scaler`."""


class EventTimes(StrEnum):
    """Handling of the event times that producers give."""

    ARRIVAL = "arrival"
    """Ignored: a record's time is its arrival."""

    CLIENT_PREFER = "client_prefer"
    """Kept if given."""

    CLIENT_REQUIRE = "client_require"
    """Required: a record without one is refused."""


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a stream as requested by its owner. `shards` is the number at creation.

    A record is kept until one of the retentions no longer covers it: its age, and the bytes and records
    that are younger than it in its shard. None means no limit. With `drop_when_read` a record is dropped
    earlier, once every consumer group has committed it, if there is a group. `event_time_skew_ms_max` is
    the maximum distance of a producer's time from now, in either direction. With a `key_index` the newest
    record of a key is found by a lookup; the index covers records appended from then on. `annotations` are
    kept for an API endpoint and have no meaning here. `topic` is set if the stream is a topic.

    Where the deployment has an archive, records are copied there within about `archive_lag_ms`, and then
    leave the hot store when they are older than `hot_retention_ms` or a shard holds more than
    `hot_bytes_max`. A shard of which half of that is not archived yet rejects appends until it is.
    """

    shards: int = 1
    mode: StreamMode = StreamMode.PROVISIONED
    retention_ms: int | None = limits.STREAM_RETENTION_MS_DEFAULT
    retention_bytes: int | None = None
    retention_records: int | None = None
    drop_when_read: bool = False
    record_bytes_max: int = limits.RECORD_BYTES_MAX_DEFAULT
    event_times: EventTimes = EventTimes.CLIENT_PREFER
    event_time_skew_ms_max: int | None = None
    key_index: bool = False
    archive: bool = True
    archive_lag_ms: int = limits.ARCHIVE_LAG_MS_DEFAULT
    hot_retention_ms: int | None = limits.HOT_RETENTION_MS_DEFAULT
    hot_bytes_max: int | None = limits.HOT_BYTES_MAX_DEFAULT
    tags: dict[str, str] = {}
    annotations: dict[str, str] = {}
    topic: TopicSpec | None = None

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *check_range("/shards", self.shards, 1, limits.SHARDS_MAX),
            *check_range("/record_bytes_max", self.record_bytes_max, 1, limits.RECORD_BYTES_MAX),
            *tag_faults(self.tags),
            *_archive_faults(self),
            *(() if self.topic is None else self.topic.faults(self.shards)),
        ]
        if (
            self.retention_ms is not None
            and not limits.STREAM_RETENTION_MS_MIN
            <= self.retention_ms
            <= limits.STREAM_RETENTION_MS_MAX
        ):
            faults.append(
                FieldFault("/retention_seconds", "must be 60 to 315360000, or null", "out_of_range")
            )
        faults += [
            FieldFault(pointer, "must be at least 1, or null", "out_of_range")
            for pointer, value in (
                ("/retention_bytes", self.retention_bytes),
                ("/retention_records", self.retention_records),
                ("/event_time_skew_seconds_max", self.event_time_skew_ms_max),
            )
            if value is not None and value < 1
        ]
        if faults:
            raise ValidationFailed("The stream's configuration is invalid.", *faults)


def _archive_faults(spec: StreamSpec) -> list[FieldFault]:
    lag_ms, hot_ms, hot_bytes = spec.archive_lag_ms, spec.hot_retention_ms, spec.hot_bytes_max
    faults = []
    if not limits.ARCHIVE_LAG_MS_MIN <= lag_ms <= limits.ARCHIVE_LAG_MS_MAX:
        faults.append(FieldFault("/archive_lag_seconds", "must be 1 to 86400", "out_of_range"))
    if hot_ms is not None and not 0 <= hot_ms <= limits.STREAM_RETENTION_MS_MAX:
        detail = "must be 0 to 315360000, or null"
        faults.append(FieldFault("/hot_retention_seconds", detail, "out_of_range"))
    if hot_bytes is not None and hot_bytes < limits.HOT_BYTES_MIN:
        detail = f"must be at least {limits.HOT_BYTES_MIN}, or null"
        faults.append(FieldFault("/hot_bytes_max", detail, "out_of_range"))
    return faults


class Shard(msgspec.Struct, frozen=True, gc=False):
    """One log of a stream and its range of hash keys.

        open ──────────▶ closed ──────────────────────▶ expired
        accepts records  readable; its children accept  retention removed all records; the shard is
                         its records                    no longer part of the stream

    The range is `first_hash_key` to `last_hash_key`, inclusive. A split closes one shard and opens two, a
    merge closes two and opens one. `parents` are the indexes of the shards that it came from, also of
    expired ones; a shard opens in a later second than they did.
    """

    index: int
    log_id: LogId
    first_hash_key: int
    last_hash_key: int
    opened_at_ms: int
    closed_at_ms: int | None = None
    parents: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        """True while the shard accepts records."""
        return self.closed_at_ms is None

    def takes(self, hash_key: int) -> bool:
        """Return whether the hash key is in the shard's range."""
        return self.first_hash_key <= hash_key <= self.last_hash_key


class Stream(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A stream's stored definition.

    `shards` are the open and closed ones, by index: parents come before their children. `opening`
    are children whose parents are being closed, and `shards_target` the number of open shards that a
    running reshard is to reach. A view is a read-only stream over a queue. `routes_version` counts the changes of a topic's
    routes.
    """

    name: StreamName
    stream_id: LogId
    spec: StreamSpec
    shards: tuple[Shard, ...]
    version: int
    created_at_ms: int
    changed_at_ms: int
    opening: tuple[Shard, ...] = ()
    shards_target: int | None = None
    is_view: bool = False
    routes_version: int = 0

    @cached_property
    def open_shards(self) -> tuple[Shard, ...]:
        """Shards that accept records, in hash-key order: together they cover the ring."""
        return tuple(
            sorted(
                (shard for shard in self.shards if shard.is_open),
                key=lambda shard: shard.first_hash_key,
            )
        )

    @cached_property
    def _edges(self) -> list[int]:
        return [shard.first_hash_key for shard in self.open_shards]

    @cached_property
    def _by_index(self) -> dict[int, Shard]:
        return {shard.index: shard for shard in (*self.shards, *self.opening)}

    @cached_property
    def _children(self) -> dict[int, list[Shard]]:
        children: dict[int, list[Shard]] = {}
        for shard in self.shards:
            for parent in shard.parents:
                children.setdefault(parent, []).append(shard)
        return children

    def children_of(self, index: int) -> tuple[Shard, ...]:
        """Return the shards that a closed shard was split or merged into; empty for an open one."""
        return tuple(self._children.get(index, ()))

    def parents_of(self, shard: Shard) -> tuple[Shard, ...]:
        """Return the parents of a shard that have not expired."""
        parents = (self._by_index.get(index) for index in shard.parents)
        return tuple(parent for parent in parents if parent is not None)

    def shard(self, index: int) -> Shard:
        """Return the shard of that index, also one that is opening. Raises ShardNotFound."""
        shards = self.shards
        if 0 <= index < len(shards) and shards[index].index == index:  # none has expired
            return shards[index]
        match = self._by_index.get(index)
        if match is not None:
            return match
        raise ShardNotFound(f"Stream '{self.name.name}' has no shard {index}.")

    def open_shards_for(self, keys: Iterable[str]) -> list[Shard]:
        """Return the open shard for each partition key, in the keys' order."""
        shards, edges = self.open_shards, self._edges
        if len(shards) == 1:
            return [shards[0] for _ in keys]
        return [shards[bisect_right(edges, hash_key(key)) - 1] for key in keys]

    @cached_property
    def _position_of(self) -> Callable[[str], int]:
        edges = self._edges
        return lru_cache(_KEYS_CACHED_MAX)(lambda key: bisect_right(edges, hash_key(key)) - 1)

    def positions_of(self, keys: Iterable[str]) -> list[int]:
        """Return each partition key's shard as a position in `open_shards`.

        Repeated keys are looked up in a cache instead of being hashed.
        """
        return list(map(self._position_of, keys))

    @cached_property
    def _beside_expired_ms(self) -> int:
        """Latest closing time of a shard that was merged with one that has expired; 0 for none."""
        merged = [
            parent
            for shard in self.shards
            if len(parents := self.parents_of(shard)) < len(shard.parents)
            for parent in parents
        ]
        return max([parent.closed_at_ms or 0 for parent in merged], default=0)

    def shards_open_since(self, ms: int) -> tuple[Shard, ...]:
        """Return the eldest shards that were open at that time or later, in hash-key order.

        They cover the ring. The producer state of a shard ends when the shard expires, and so does that of a
        shard that was merged with it: both were closed at the same time. So their child is the eldest there,
        although one of its parents is left.
        """
        ms = max(ms, self._beside_expired_ms)
        since = {s.index: s for s in self.shards if s.closed_at_ms is None or s.closed_at_ms > ms}
        eldest = (shard for shard in since.values() if since.keys().isdisjoint(shard.parents))
        return tuple(sorted(eldest, key=lambda shard: shard.first_hash_key))


def by_shard(shards: Sequence[Shard], hash_keys: Iterable[int]) -> dict[Shard, list[int]]:
    """Group hash keys by the shard that accepts them, as the keys' numbers in order.

    `shards` are in hash-key order and cover the ring.
    """
    edges = [shard.first_hash_key for shard in shards]
    by_position: dict[int, list[int]] = {}
    for number, key in enumerate(hash_keys):
        by_position.setdefault(bisect_right(edges, key) - 1, []).append(number)
    return {shards[nth]: numbers for nth, numbers in by_position.items()}


@lru_cache(_KEYS_CACHED_MAX)
def hash_key(key: str) -> int:
    """Return the key's position on the ring.

    MD5 of its UTF-8, as a 128-bit big-endian number (as Kinesis).
    """
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest(), "big")


def even_ranges(count: int) -> list[tuple[int, int]]:
    """Divide the ring into `count` ranges (first, last), inclusive.

    The last one includes the remainder (as Kinesis).
    """
    width = RING_SIZE // count
    lasts = [width * (index + 1) - 1 for index in range(count - 1)] + [RING_SIZE - 1]
    return [(width * index, last) for index, last in enumerate(lasts)]


class Producer(msgspec.Struct, frozen=True, gc=False):
    """Idempotent producer's header of a batch.

    The first record has number `sequence`, the next ones follow. A lower epoch than the shard has seen is
    fenced; a repeat of one of the last batches is a duplicate; a new producer or epoch starts at 0 (as
    Kafka).
    """

    producer_id: str
    epoch: int
    sequence: int


class AppendCondition(msgspec.Struct, frozen=True, gc=False):
    """Precondition of an append to a shard.

    `fence`: the shard's fencing token; empty for none.
    """

    producer: Producer | None = None
    expected_offset: int | None = None
    fence: str = ""


UNCONDITIONAL = AppendCondition()


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Shard and offset of an appended record.

    `duplicate`: it had been appended before, and nothing was added. `arrival_ms` is that of this call,
    which a duplicate does not have.
    """

    shard: int
    offset: int
    duplicate: bool = False
    arrival_ms: int = 0


class AppendedRange(msgspec.Struct, frozen=True, gc=False):
    """Consecutive records of a call in a shard from `offset` on, or why they were refused.

    `numbers`: positions of the records in the call. `duplicate`: they had been appended before, and
    nothing was added. `arrival_ms` as in `Appended`.
    """

    numbers: Sequence[int]
    shard: int = -1
    offset: int = -1
    duplicate: bool = False
    error: MillstreamError | None = None
    arrival_ms: int = 0


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """A record with its offset and arrival time."""

    offset: int
    arrival_ms: int
    record: Record


class GapReason(StrEnum):
    """Reason of a gap.

    expired: retention deleted the records. failover: the stores have changed their primary, and no acknowledged record is
    among these offsets. hole: records may have been lost with the hot store, or no record ever had them.
    """

    EXPIRED = "expired"
    FAILOVER = "failover"
    HOLE = "hole"


class Gap(msgspec.Struct, frozen=True, gc=False):
    """Unreadable offsets [first, next)."""

    first: int
    next: int
    reason: GapReason


class Tier(StrEnum):
    """Storage tier that records were read from: offsets, values and order are the same."""

    HOT = "hot"
    ARCHIVE = "archive"


class ShardRead(msgspec.Struct, frozen=True):
    """Result of a read of one shard.

    `next_offset` is where the next read continues; `start` the oldest readable offset, `tip` the next one
    to be written; `behind_ms` the age of the next unread record, or 0 at the tip. `ended`: the shard is
    closed and nothing is left to read behind these records; then, and only then, `children` are the shards
    to continue with, each one after all its parents have ended. The offsets belong to the stream of `stream_id`.
    """

    shard: int
    records: Sequence[LogRecord]
    next_offset: int
    start: int
    tip: int
    behind_ms: int
    gap: Gap | None = None
    ended: bool = False
    children: tuple[Shard, ...] = ()
    tier: Tier = Tier.HOT
    stream_id: LogId = ""


class StreamRead(msgspec.Struct, frozen=True):
    """Result of a read of a whole stream, and the positions at which the next read continues.

    See `storage.domain.streams.lineage`. The positions belong to the stream of this id, whatever has its name later.
    """

    shards: Sequence[ShardRead]
    positions: dict[int, int]
    stream_id: LogId

    @property
    def tier(self) -> Tier:
        """Archive if any of the records came from there."""
        return slowest(self.shards)


def slowest(reads: Iterable[ShardRead]) -> Tier:
    """Return the archive tier if any of these reads came from there."""
    return Tier.ARCHIVE if any(read.tier is Tier.ARCHIVE for read in reads) else Tier.HOT


class ShardState(msgspec.Struct, frozen=True):
    """A shard of a stream and the extent of its log.

    `fenced`: only a writer with its token may append.
    """

    shard: Shard
    start: int
    next: int
    bytes: int
    fenced: bool = False
    stream_id: LogId = ""


class ReadFrom(msgspec.Struct, frozen=True, kw_only=True):
    """Start of a read: an offset, the first record that arrived at or after a time, or a tail.

    `tail`: the last N records. Exactly one is given.
    """

    offset: int | None = None
    time_ms: int | None = None
    tail: int | None = None
