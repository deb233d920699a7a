"""Metrics of single queues, streams and groups, requested by name.

They have distinct names, so that a scraper of both endpoints adds nothing up twice. Their counts are those of the queue,
stream or group: a recreated one starts at zero.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import TypeVar

from prometheus_client.metrics_core import Metric

from api.observability.store_metrics import StateMetric, reasons_of, states_of
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.timeseries.samples import GroupSample, QueueSample, StreamSample
from storage.timeseries.query import HotShardExtent

T = TypeVar("T")

_SECOND = float(limits.SECOND_MS)


class ResourceKind(StrEnum):
    """Kinds of objects that have metrics by name."""

    QUEUES = "queues"
    STREAMS = "streams"
    GROUPS = "groups"


_QUEUE = ("namespace", "queue")
_STREAM = ("namespace", "stream")
_SHARD = (*_STREAM, "shard")
_GROUP = ("namespace", "stream", "group")


def _of(noun: str, what: str, text: str, labels: tuple[str, ...]) -> StateMetric:
    return StateMetric(f"millstream_object_{noun}_{what}", text, labels)


Q_MESSAGES = _of("queue", "messages", "Messages, by state", (*_QUEUE, "state"))
Q_BYTES = _of("queue", "bytes", "Bytes of messages, excluding dead letters", _QUEUE)
Q_AGE = _of("queue", "oldest_message_age_seconds", "Age of the oldest ready message", _QUEUE)
Q_CONSUMERS = _of("queue", "consumers", "Consumers in the last five minutes", _QUEUE)
Q_SENT = _of("queue", "sent_total", "Messages sent", _QUEUE)
Q_DELIVERED = _of("queue", "delivered_total", "Deliveries to consumers", _QUEUE)
Q_ACKED = _of("queue", "acknowledged_total", "Deliveries acknowledged", _QUEUE)
Q_FAILED = _of("queue", "failed_total", "Deliveries that failed or were not settled", _QUEUE)
Q_ACK_TIME = _of(
    "queue",
    "acknowledge_seconds",
    "Time from send to acknowledgement in the last sample",
    (*_QUEUE, "quantile"),
)
Q_EXPIRED = _of("queue", "expired_total", "Messages expired", _QUEUE)
Q_DEAD = _of("queue", "dead_lettered_total", "Messages dead-lettered", (*_QUEUE, "reason"))
S_RECORDS = _of("stream", "records", "Records in the hot store", _STREAM)
S_BYTES = _of("stream", "bytes", "Bytes of records in the hot store", _STREAM)
S_SHARDS = _of("stream", "shards", "Open shards", _STREAM)
S_RECORDS_IN = _of("stream", "records_in_total", "Records appended", _STREAM)
S_BYTES_IN = _of("stream", "bytes_in_total", "Bytes of records in the hot store", _STREAM)
S_ARCHIVE = _of("stream", "archive_lag_seconds", "Age of the oldest unarchived record", _STREAM)
S_FIRST = _of("stream", "first_offset", "Oldest offset in the hot store", _SHARD)
S_LAST = _of("stream", "last_offset", "Newest offset; -1 if the stream is empty", _SHARD)
G_LAG = _of("consumer_group", "lag_records", "Unread records", _GROUP)
G_LAG_SECONDS = _of("consumer_group", "lag_seconds", "Age of the oldest unread record", _GROUP)
G_MEMBERS = _of("consumer_group", "members", "Members", _GROUP)
G_COMMITTED = _of("consumer_group", "committed_total", "Records committed", _GROUP)
G_LAST = _of(
    "consumer_group",
    "last_commit_timestamp_seconds",
    "Time of the last commit, in seconds since the epoch",
    _GROUP,
)
TRUNCATED = StateMetric(
    "millstream_objects_truncated",
    f"1 if there are more than {limits.OBJECT_METRICS_MAX} objects of a type and the others are omitted",
    ("kind",),
)


async def object_families(
    storage: Storage,
    principal: Principal,
    kinds: Collection[ResourceKind],
    prefix: str,
    now_ms: int,
) -> list[Metric]:
    """Return the metrics of the objects in the namespace that the caller may see.

    At most OBJECT_METRICS_MAX of each kind, by name.
    """
    families: list[Metric] = []
    truncated: list[tuple[tuple[str, ...], float]] = []
    namespace = principal.namespace
    if ResourceKind.QUEUES in kinds:
        queues = await storage.time_series.latest_queues(namespace)
        visible, is_truncated = _visible_samples(queues, prefix, principal, Action.QUEUE_LIST)
        families += _queues(namespace, visible, now_ms)
        truncated.append(((ResourceKind.QUEUES,), is_truncated))
    if ResourceKind.STREAMS in kinds:
        streams = await storage.time_series.latest_streams(namespace)
        seen, is_truncated = _visible_samples(streams, prefix, principal, Action.STREAM_LIST)
        families += _streams(namespace, seen, now_ms)
        families += _offsets(namespace, seen, await storage.time_series.latest_shards(namespace))
        truncated.append(((ResourceKind.STREAMS,), is_truncated))
    if ResourceKind.GROUPS in kinds:
        groups = await storage.time_series.latest_groups(namespace)
        visible_groups, is_truncated = _visible_samples(
            groups, prefix, principal, Action.GROUP_LIST
        )
        families += _groups(
            namespace, visible_groups, await _streams_of(storage, namespace, visible_groups), now_ms
        )
        truncated.append(((ResourceKind.GROUPS,), is_truncated))
    return [*families, TRUNCATED.family(truncated)]


def _visible_samples(
    samples: Mapping[str, T], prefix: str, principal: Principal, see: Action
) -> tuple[dict[str, T], bool]:
    """Return the samples to show, and whether there are more."""
    allows = principal.policy.allows
    names = (
        name
        for name in sorted(samples)
        if name.startswith(prefix) and allows(see, name) and allows(Action.METRICS_READ, name)
    )
    first_names = list(islice(names, limits.OBJECT_METRICS_MAX + 1))
    visible = {name: samples[name] for name in first_names[: limits.OBJECT_METRICS_MAX]}
    return visible, len(first_names) > limits.OBJECT_METRICS_MAX


async def _streams_of(storage: Storage, namespace: str, groups: Iterable[str]) -> dict[str, str]:
    """Return the stream that each group reads."""
    streams: dict[str, str] = {}
    names = sorted(groups)
    if not names:
        return streams
    after = ""
    while page := await storage.groups.list_groups(
        namespace, prefix="", after=after, limit=limits.PAGE_ITEMS_MAX
    ):
        streams |= {group.name.name: group.spec.stream for group in page}
        after = page[-1].name.name
        if after >= names[-1]:
            break
    return streams


def _queues(namespace: str, queues: Mapping[str, QueueSample], now_ms: int) -> Iterator[Metric]:
    each = [((namespace, name), one) for name, one in queues.items()]
    yield Q_MESSAGES.family(
        ((*at, state), count) for at, one in each for state, count in states_of(one).items()
    )
    yield Q_BYTES.family((at, one.bytes_held) for at, one in each)
    yield Q_AGE.family((at, one.oldest_age_ms(now_ms) / _SECOND) for at, one in each)
    yield Q_CONSUMERS.family((at, one.consumers) for at, one in each)
    yield Q_SENT.family((at, one.sent) for at, one in each)
    yield Q_DELIVERED.family((at, one.received) for at, one in each)
    yield Q_ACKED.family((at, one.acknowledged) for at, one in each)
    yield Q_FAILED.family((at, one.failed) for at, one in each)
    yield Q_ACK_TIME.family(
        ((*at, quantile), ms / _SECOND)
        for at, one in each
        for quantile, ms in _acknowledge_times_of(one)
        if ms is not None
    )
    yield Q_EXPIRED.family((at, one.expired) for at, one in each)
    yield Q_DEAD.family(
        ((*at, reason), count) for at, one in each for reason, count in reasons_of(one).items()
    )


def _acknowledge_times_of(queue: QueueSample) -> tuple[tuple[str, int | None], ...]:
    return (
        ("0.5", queue.acknowledge_p50_ms),
        ("0.95", queue.acknowledge_p95_ms),
        ("0.99", queue.acknowledge_p99_ms),
    )


def _streams(namespace: str, streams: Mapping[str, StreamSample], now_ms: int) -> Iterator[Metric]:
    each = [((namespace, name), one) for name, one in streams.items()]
    yield S_RECORDS.family((at, one.records) for at, one in each)
    yield S_BYTES.family((at, one.bytes_held) for at, one in each)
    yield S_SHARDS.family((at, one.shards) for at, one in each)
    yield S_RECORDS_IN.family((at, one.records_in) for at, one in each)
    yield S_BYTES_IN.family((at, one.bytes_in) for at, one in each)
    yield S_ARCHIVE.family((at, one.archive_lag_ms(now_ms) / _SECOND) for at, one in each)


def _offsets(
    namespace: str, streams: Iterable[str], shards: Mapping[str, Sequence[HotShardExtent]]
) -> Iterator[Metric]:
    each = [
        ((namespace, name, str(place.shard)), place)
        for name in streams
        for place in shards.get(name, ())
    ]
    yield S_FIRST.family((at, place.start) for at, place in each)
    yield S_LAST.family((at, place.next - 1) for at, place in each)


def _groups(
    namespace: str, groups: Mapping[str, GroupSample], streams: Mapping[str, str], now_ms: int
) -> Iterator[Metric]:
    each = [((namespace, streams.get(name, ""), name), one) for name, one in groups.items()]
    yield G_LAG.family((at, one.lag_records) for at, one in each)
    yield G_LAG_SECONDS.family((at, one.lag_ms(now_ms) / _SECOND) for at, one in each)
    yield G_MEMBERS.family((at, one.members) for at, one in each)
    yield G_COMMITTED.family((at, one.committed) for at, one in each)
    yield G_LAST.family(
        (at, one.last_commit_ms / _SECOND) for at, one in each if one.last_commit_ms is not None
    )
