"""Metrics of the stores' contents, equal in every process and so never added up.

They come from the last measurement (`storage.timeseries.query`), at most ten seconds old. Counts among them are kept by
the measurement and never decrease when a queue is deleted.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from platform import python_version
from typing import NamedTuple

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from storage.bootstrap import Storage
from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.clock import SystemClock
from storage.domain.errors import MillstreamError
from storage.domain.jobs import JobKind, JobState
from storage.domain.replication.replica_set import MemberRole, MemberState, ReplicaSetStatus
from storage.domain.store_status import HotFigures
from storage.domain.timeseries.samples import QueueSample, TotalSample
from storage.mirrors.engine import MirrorLag
from storage.sources.backlog import SourceBacklog

Labels = tuple[str, ...]
Points = Iterable[tuple[Labels, float]]


class StateMetric(NamedTuple):
    """A metric by name; a counter's ends in _total, an info's in _info."""

    name: str
    help: str
    labels: Labels = ()

    @property
    def kind(self) -> str:
        """Type of the metric, which its name ends with; a gauge's name has no ending."""
        return {"total": "counter", "info": "info"}.get(self.name.rpartition("_")[2], "gauge")

    def family(self, points: Points) -> Metric:
        """Return the metric with these values, by labels."""
        family: CounterMetricFamily | GaugeMetricFamily
        if self.kind == "counter":
            family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        else:
            family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in points:
            family.add_metric(labels, value)
        return family


def _metric(name: str, help: str, labels: Labels = ()) -> StateMetric:
    return StateMetric(f"millstream_{name}", help, labels)


BUILD_INFO = _metric(
    "build_info",
    "Always 1; the labels describe the running version",
    ("version", "python", "redis_version", "redis_flavor"),
)


STATE_UP = _metric(
    "state_up", "1 if the stores could be queried for the following metrics, otherwise 0"
)
SERIES_AGE = _metric("series_age_seconds", "Age of the last measurement of the stores")
QUEUES = _metric("queues", "Queues")
STREAMS = _metric("streams", "Streams")
GROUPS = _metric("consumer_groups", "Consumer groups")
QUEUE_MESSAGES = _metric("queue_messages", "Messages in queues, by state", ("state",))
QUEUE_BYTES = _metric("queue_bytes", "Bytes of messages in queues, excluding dead letters")
QUEUE_AGE = _metric("queue_oldest_message_age_seconds", "Age of the oldest ready message")
STREAM_RECORDS = _metric("stream_records", "Records of streams in the hot store")
STREAM_BYTES = _metric("stream_bytes", "Bytes of the records of streams in the hot store")
LAG_RECORDS = _metric(
    "consumer_group_lag_records", "Unread records of the group with the largest lag"
)
LAG_SECONDS = _metric(
    "consumer_group_lag_seconds", "Age of the oldest record that a group has not read"
)
MEMBERS = _metric("consumer_group_members", "Members of consumer groups")
EXPIRED = _metric("messages_expired_total", "Messages expired", ("kind",))
DROPPED = _metric(
    "messages_dropped_total", "Messages dropped from full queues for newer ones", ("kind",)
)
DEAD_LETTERED = _metric(
    "messages_dead_lettered_total", "Messages dead-lettered, by reason", ("reason",)
)
ARCHIVE_LAG = _metric("archive_lag_seconds", "Age of the oldest unarchived record")
REPLAY_JOBS = _metric("replay_jobs", "Replays, by state", ("state",))
SOURCES = _metric("sources", "Sources")
SOURCE_EVENTS_WAITING = _metric(
    "source_events_waiting", "Events that sources have accepted and their targets do not have yet"
)
SOURCE_EVENT_AGE = _metric(
    "source_oldest_event_age_seconds", "Age of the oldest event that waits for its target"
)
SOURCES_BLOCKED = _metric(
    "sources_blocked", "Sources whose oldest waiting event is more than a minute old"
)
MIRROR_LAG_SECONDS = _metric(
    "mirror_lag_seconds",
    "Age of the oldest record that a mirror may not have yet",
    ("namespace", "mirror"),
)
MIRROR_FAILURES = _metric(
    "mirror_failures",
    "Reasons for which a mirror fails at present, for its origin, shards or groups",
    ("namespace", "mirror"),
)
MIRROR_SILENCE_SECONDS = _metric(
    "mirror_origin_silence_seconds",
    "Time since the origin of a mirror last listed its streams",
    ("namespace", "mirror"),
)
MIRROR_LAG_RECORDS = _metric(
    "mirror_lag_records", "Records that a mirror does not have yet", ("namespace", "mirror")
)
MEMORY_USED = _metric("redis_memory_used_bytes", "Memory used by the hot store")
MEMORY_MAX = _metric("redis_memory_max_bytes", "Memory limit of the hot store; 0: no limit")
AOF_OK = _metric(
    "redis_aof_ok", "1 if the hot store has an append-only file and its last write succeeded"
)
EVICTED = _metric(
    "redis_evicted_keys_total", "Keys evicted by the hot store; each eviction loses messages"
)
STORE_MEMBERS = _metric(
    "store_members", "Replicated stores, by state; absent for one store", ("state",)
)
INSYNC_REPLICAS = _metric(
    "store_insync_replicas", "Replicated stores that are in sync, including the primary"
)
MIN_INSYNC_REPLICAS = _metric(
    "store_min_insync_replicas", "Replicated stores that a write needs, including the primary"
)
STORE_EPOCH = _metric("store_epoch", "Epoch of the primary; it rises with each change of it")
STORE_TERM = _metric("store_term", "Attempts to change the primary")
REPLICATION_LAG = _metric(
    "store_replication_lag_bytes", "Bytes that a replica has not confirmed", ("member",)
)
FULL_RESYNCS = _metric(
    "store_full_resyncs_total",
    "Complete copies of the data that a store has sent to replicas since it started",
    ("member",),
)
UNKNOWN_REPLICAS = _metric("store_unknown_replicas", "Replicas of the primary that are not members")

SNAPSHOT_TTL_MS = 5 * limits.SECOND_MS  # however many scrapers a process has

_SECOND = float(limits.SECOND_MS)


class StoreSnapshot(NamedTuple):
    """Values read from the stores."""

    measured_at_ms: int | None
    total: TotalSample
    store: HotFigures
    replays: Mapping[JobState, int]
    sources: SourceBacklog
    mirrors: Sequence[MirrorLag]
    stores: ReplicaSetStatus | None


class StateMetrics:
    """Metrics of the stores' contents, read at most every five seconds."""

    def __init__(self, storage: Storage, version: str) -> None:
        self._storage = storage
        self._version = version
        self._clock = SystemClock()
        self._snapshots: TtlCache[StoreSnapshot] = TtlCache(SNAPSHOT_TTL_MS, self._clock)

    async def families(self) -> list[Metric]:
        """Return the metrics; if a store is unreachable, only the metric of its availability."""
        try:
            state = await self._snapshots.get("state", self._read_snapshot)
        except MillstreamError:
            return [STATE_UP.family([((), 0)])]
        return list(_families(state, self._version, self._clock.now_ms()))

    async def _read_snapshot(self) -> StoreSnapshot:
        measured, store, replays, sources, lags, stores = await asyncio.gather(
            self._storage.time_series.latest_namespaces(),
            self._storage.health.hot_figures(),
            self._storage.jobs.count(JobKind.REPLAY),
            self._storage.source_backlog.read(),
            self._storage.mirrors.lags(),
            self._replica_set(),
        )
        total = measured.get("", TotalSample())
        return StoreSnapshot(measured.at_ms, total, store, replays, sources, lags, stores)

    async def _replica_set(self) -> ReplicaSetStatus | None:
        stores = self._storage.stores
        return await stores.status() if stores.is_replica_set else None


def _families(state: StoreSnapshot, version: str, now_ms: int) -> Iterator[Metric]:
    yield _build_info(version, state.store)
    yield STATE_UP.family([((), 1)])
    if state.measured_at_ms is not None:
        yield SERIES_AGE.family([((), max(0, now_ms - state.measured_at_ms) / _SECOND)])
        yield from _of_total(state.total, now_ms)
    yield REPLAY_JOBS.family(((one.value,), state.replays.get(one, 0)) for one in JobState)
    yield from _of_sources(state.sources)
    yield from _of_mirrors(state.mirrors)
    yield MEMORY_USED.family([((), state.store.memory_used_bytes)])
    yield MEMORY_MAX.family([((), state.store.memory_max_bytes)])
    yield AOF_OK.family([((), state.store.aof_ok)])
    yield EVICTED.family([((), state.store.evicted_keys)])
    if state.stores is not None:
        yield from _of_replica_set(state.stores)


def _of_replica_set(status: ReplicaSetStatus) -> Iterator[Metric]:
    states = Counter(
        "primary" if member.role is MemberRole.PRIMARY else member.state.value
        for member in status.members
    )
    yield STORE_MEMBERS.family(((state,), states[state]) for state in ("primary", *MemberState))
    yield INSYNC_REPLICAS.family([((), status.insync_replicas)])
    yield MIN_INSYNC_REPLICAS.family([((), status.replica_set.min_insync_replicas)])
    yield STORE_EPOCH.family([((), status.replica_set.epoch)])
    yield STORE_TERM.family([((), status.replica_set.term)])
    yield REPLICATION_LAG.family(
        ((member.address,), member.lag_bytes)
        for member in status.members
        if member.lag_bytes is not None
    )
    yield FULL_RESYNCS.family(
        ((member.address,), member.full_resyncs)
        for member in status.members
        if member.full_resyncs is not None
    )
    yield UNKNOWN_REPLICAS.family([((), len(status.unknown_replicas))])


def _of_sources(backlog: SourceBacklog) -> Iterator[Metric]:
    yield SOURCES.family([((), backlog.sources)])
    yield SOURCE_EVENTS_WAITING.family([((), backlog.waiting)])
    yield SOURCE_EVENT_AGE.family([((), backlog.oldest_age_ms / _SECOND)])
    yield SOURCES_BLOCKED.family([((), backlog.blocked)])


def _of_mirrors(mirrors: Sequence[MirrorLag]) -> Iterator[Metric]:
    if mirrors:
        yield MIRROR_LAG_SECONDS.family((one.labels, one.lag_ms / _SECOND) for one in mirrors)
        yield MIRROR_LAG_RECORDS.family((one.labels, one.lag_records) for one in mirrors)
        yield MIRROR_FAILURES.family((one.labels, len(one.failures)) for one in mirrors)
        yield MIRROR_SILENCE_SECONDS.family(
            (one.labels, one.silence_ms / _SECOND) for one in mirrors
        )


def _build_info(version: str, store: HotFigures) -> Metric:
    family = InfoMetricFamily(BUILD_INFO.name.removesuffix("_info"), BUILD_INFO.help)
    words = (version, python_version(), store.version, store.flavor)
    family.add_metric((), dict(zip(BUILD_INFO.labels, words, strict=True)))
    return family


def states_of(sample: QueueSample | TotalSample) -> dict[str, int]:
    """Return the number of messages by state, as in the label."""
    return {
        "ready": sample.ready,
        "in_flight": sample.in_flight,
        "delayed": sample.delayed,
        "parked": sample.parked,
        "moving": sample.moving,
        "dead": sample.dead_lettered,
    }


def reasons_of(sample: QueueSample | TotalSample) -> dict[str, int]:
    """Return the number of dead letters by reason, as in the label."""
    return {
        "max_receives": sample.dead_exhausted,
        "rejected": sample.dead_rejected,
        "maxlen": sample.dead_full,
    }


def _of_total(total: TotalSample, now_ms: int) -> Iterator[Metric]:
    yield QUEUES.family([((), total.queues)])
    yield STREAMS.family([((), total.streams)])
    yield GROUPS.family([((), total.groups)])
    yield QUEUE_MESSAGES.family(((state,), count) for state, count in states_of(total).items())
    yield QUEUE_BYTES.family([((), total.bytes_held)])
    yield QUEUE_AGE.family([((), total.oldest_age_ms(now_ms) / _SECOND)])
    yield STREAM_RECORDS.family([((), total.stream_records)])
    yield STREAM_BYTES.family([((), total.stream_bytes_held)])
    yield LAG_RECORDS.family([((), total.lag_records)])
    yield LAG_SECONDS.family([((), total.lag_ms(now_ms) / _SECOND)])
    yield MEMBERS.family([((), total.members)])
    yield EXPIRED.family([(("queue",), total.expired)])
    yield DROPPED.family([(("queue",), total.dropped)])
    yield DEAD_LETTERED.family(((reason,), count) for reason, count in reasons_of(total).items())
    yield ARCHIVE_LAG.family([((), total.archive_lag_ms(now_ms) / _SECOND)])
