"""What a stream is: shards over a ring of hash keys, records, and how they are written and read."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, MillstreamError, ShardNotFound, ValidationFailed
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId, StreamName
from storage.domain.queues.queue import Queue, check_range, tag_faults

RING_SIZE = 2**128
_KEYS_REMEMBERED_MAX = 16_384  # a few megabytes; keys that come back are looked up, not hashed


class StreamMode(StrEnum):
    """Who sees to the number of shards."""

    PROVISIONED = "provisioned"
    """Its owner."""

    ON_DEMAND = "on_demand"
    """Its load, never below the number that it was made with: `storage.domain.streams.load_scaling`."""


class EventTimes(StrEnum):
    """What a stream makes of the times that its producers give."""

    ARRIVAL = "arrival"
    """They are dropped: a record's time is its arrival."""

    CLIENT_PREFER = "client_prefer"
    """They are kept where they are given."""

    CLIENT_REQUIRE = "client_require"
    """A record without one is refused."""


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner asked of a stream. `shards` is the number at creation.

    A record is kept until one of the retentions no longer covers it: its age, and the bytes and records
    that are younger than it in its shard. None covers all. `event_time_skew_ms_max` is how far a producer's
    time may be from now, either way. With a `key_index` the newest record of a key is found at once; it
    begins with the records that are appended from then on. `annotations` are kept for a front door and mean
    nothing here. With `drop_when_read` also until every consumer group has
    committed it, if there is one.

    Where the deployment has an archive, records are copied there within about `archive_lag_ms`, and then
    leave the hot store when they are older than `hot_retention_ms` or a shard holds more than `hot_bytes_max`.
    A shard of which half of that is not archived yet takes no more until it is.
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

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *check_range("/shards", self.shards, 1, limits.SHARDS_MAX),
            *check_range("/record_bytes_max", self.record_bytes_max, 1, limits.RECORD_BYTES_MAX),
            *tag_faults(self.tags),
            *_archive_faults(self),
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
            raise ValidationFailed("The stream's configuration is not valid.", *faults)


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
    """One log of a stream and the hash keys it takes: `first_hash_key` to `last_hash_key`, inclusive.

        open ──────────▶ closed ─────────────────────▶ expired
        takes records    is read; its children take    retention took all of it, and so it is no
                         its records                   part of the stream any more

    A split closes one shard and opens two, a merge closes two and opens one. `parents` are the indexes
    of the shards that it came from, also of expired ones; a shard opens in a later second than they did.
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
        """It takes records."""
        return self.closed_at_ms is None

    def takes(self, place: int) -> bool:
        """Whether the hash key is in its range."""
        return self.first_hash_key <= place <= self.last_hash_key


class Stream(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A stream's stored definition.

    `shards` are those that are open or closed, by index: parents come before their children. `opening`
    are children whose parents are being closed, and `shards_target` the number of open shards that a
    reshard under way is to reach. A view shows a queue, and can only be read.
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

    @cached_property
    def open_shards(self) -> tuple[Shard, ...]:
        """Those that take records, in the order of their hash keys: together they cover the ring."""
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
        """The shards that go on where that one was closed; empty for an open one."""
        return tuple(self._children.get(index, ()))

    def parents_of(self, shard: Shard) -> tuple[Shard, ...]:
        """The shards it came from that have not expired."""
        found = (self._by_index.get(index) for index in shard.parents)
        return tuple(parent for parent in found if parent is not None)

    def shard(self, index: int) -> Shard:
        """The shard of that number, also one that is opening. Raises ShardNotFound."""
        found = self._by_index.get(index)
        if found is not None:
            return found
        raise ShardNotFound(f"Stream '{self.name.name}' has no shard {index}.")

    def open_shards_for(self, keys: Iterable[str]) -> list[Shard]:
        """The shard that takes records of each partition key, in the keys' order."""
        shards, edges = self.open_shards, self._edges
        if len(shards) == 1:
            return [shards[0] for _ in keys]
        return [shards[bisect_right(edges, hash_key(key)) - 1] for key in keys]

    @cached_property
    def _known_places(self) -> dict[str, int]:
        return {}

    def places_of(self, keys: Sequence[str]) -> list[int]:
        """For each partition key the place among `open_shards` of the shard that takes it. Keys that come back are
        looked up."""
        known = self._known_places
        try:
            return [known[key] for key in keys]
        except KeyError:
            pass
        if len(known) > _KEYS_REMEMBERED_MAX:
            known.clear()
        edges = self._edges
        for key in keys:
            if key not in known:
                known[key] = bisect_right(edges, hash_key(key)) - 1
        return [known[key] for key in keys]

    @cached_property
    def _beside_expired_ms(self) -> int:
        """When the last shard was closed that was merged with one that has expired; 0 for none."""
        merged = [
            parent
            for shard in self.shards
            if len(parents := self.parents_of(shard)) < len(shard.parents)
            for parent in parents
        ]
        return max([parent.closed_at_ms or 0 for parent in merged], default=0)

    def shards_open_since(self, ms: int) -> tuple[Shard, ...]:
        """The eldest shards that were open then or later, in hash-key order: they cover the ring.

        What a shard knew is over when it expires, and what a shard knew that was merged with it: both were closed at one
        time. So their child is the eldest there, although one of its parents is left.
        """
        ms = max(ms, self._beside_expired_ms)
        since = {s.index: s for s in self.shards if s.closed_at_ms is None or s.closed_at_ms > ms}
        eldest = (shard for shard in since.values() if since.keys().isdisjoint(shard.parents))
        return tuple(sorted(eldest, key=lambda shard: shard.first_hash_key))


def view_of(queue: Queue) -> Stream:
    """A queue as a stream of one shard."""
    shard = Shard(0, queue.log_id, 0, RING_SIZE - 1, queue.created_at_ms)
    return Stream(
        name=StreamName(queue.name.name, queue.name.namespace),
        stream_id=queue.log_id,
        spec=StreamSpec(
            retention_ms=queue.spec.retention_ms,
            archive=queue.spec.archive,
            hot_bytes_max=None,
            tags=queue.spec.tags,
        ),
        shards=(shard,),
        version=queue.version,
        created_at_ms=queue.created_at_ms,
        changed_at_ms=queue.changed_at_ms,
        is_view=True,
    )


def by_shard(shards: Sequence[Shard], places: Iterable[int]) -> dict[Shard, list[int]]:
    """The shards that take these hash keys, each with the numbers of those it takes, in order.

    `shards` are in the order of their hash keys, and cover the ring.
    """
    edges = [shard.first_hash_key for shard in shards]
    taken: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        taken.setdefault(bisect_right(edges, place) - 1, []).append(number)
    return {shards[nth]: numbers for nth, numbers in taken.items()}


@lru_cache(_KEYS_REMEMBERED_MAX)
def hash_key(key: str) -> int:
    """The key's place on the ring: MD5 of its UTF-8, as a 128-bit big-endian number (as Kinesis)."""
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest(), "big")


def even_ranges(count: int) -> list[tuple[int, int]]:
    """The ring in `count` ranges (first, last), inclusive; the last one takes the remainder (as Kinesis)."""
    width = RING_SIZE // count
    lasts = [width * (index + 1) - 1 for index in range(count - 1)] + [RING_SIZE - 1]
    return [(width * index, last) for index, last in enumerate(lasts)]


class Producer(msgspec.Struct, frozen=True, gc=False):
    """An idempotent producer's word on its batch: the first record carries `sequence`, the next ones follow.

    A lower epoch than the shard has seen is fenced; a repeat of one of the last batches is a duplicate;
    a new producer or epoch starts at 0 (as Kafka).
    """

    producer_id: str
    epoch: int
    sequence: int


class AppendCondition(msgspec.Struct, frozen=True, gc=False):
    """What must hold for an append to a shard to be accepted. `fence`: the shard's token; empty for none."""

    producer: Producer | None = None
    expected_offset: int | None = None
    fence: str = ""


UNCONDITIONAL = AppendCondition()


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a record went. `duplicate`: it had been appended before, and nothing was added.

    `arrival_ms` is that of this call, which a duplicate does not have.
    """

    shard: int
    offset: int
    duplicate: bool = False
    arrival_ms: int = 0


class AppendedRange(msgspec.Struct, frozen=True, gc=False):
    """Records of a call, by their numbers, that follow one another in a shard from `offset` on; or why they were
    refused. `duplicate`: they had been appended before, and nothing was added. `arrival_ms` as in `Appended`."""

    numbers: Sequence[int]
    shard: int = -1
    offset: int = -1
    duplicate: bool = False
    error: MillstreamError | None = None
    arrival_ms: int = 0


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """A record at its place."""

    offset: int
    arrival_ms: int
    record: Record


class Gap(msgspec.Struct, frozen=True, gc=False):
    """Offsets [first, next) that cannot be read: 'expired' by retention, or a 'hole' never filled."""

    first: int
    next: int
    reason: str


class Tier(StrEnum):
    """Where records were read from: offsets, values and order are the same."""

    HOT = "hot"
    ARCHIVE = "archive"


class ShardRead(msgspec.Struct, frozen=True):
    """What a read of one shard found.

    `next_offset` is where to go on; `start` the oldest readable offset, `tip` the next one to be
    written; `behind_ms` how old the next unread record is, or 0 at the tip. `ended`: the shard is closed
    and nothing is left to read behind these records; then, and only then, `children` are the shards to go
    on with, each one after all its parents have ended.
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


class StreamRead(msgspec.Struct, frozen=True):
    """What a read of a whole stream found, and the positions to go on from: see `storage.domain.streams.lineage`."""

    shards: Sequence[ShardRead]
    positions: dict[int, int]

    @property
    def tier(self) -> Tier:
        """The archive, when any of it came from there."""
        return slowest(self.shards)


def slowest(reads: Iterable[ShardRead]) -> Tier:
    """The archive, when one of these reads came from there."""
    return Tier.ARCHIVE if any(read.tier is Tier.ARCHIVE for read in reads) else Tier.HOT


class ShardState(msgspec.Struct, frozen=True):
    """A shard and the extent of its log. `fenced`: only a writer with its token may append."""

    shard: Shard
    start: int
    next: int
    bytes: int
    fenced: bool = False


class ReadFrom(msgspec.Struct, frozen=True, kw_only=True):
    """Where a read starts: at an offset, at the first record that arrived at or after a time, or the last N.

    Exactly one is given.
    """

    offset: int | None = None
    time_ms: int | None = None
    tail: int | None = None
