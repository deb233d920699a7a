"""Measurements over time of a queue, a stream, a group, a namespace and the deployment.

A sample is a row of whole numbers, one for each column. A column's `Measure` defines how rows become a chart, and
how rows are combined for a longer step:

    measure   a row has                     a chart shows                 a longer step keeps
    LEVEL     the current value             that                          the mean
    PEAK      the current value             that, and `<name>_max`        the mean, and the maximum
    SINCE     since when something waits    for how long, 0 for nothing   the longest
    COUNT     an increasing count           the rate per second           the count at its end, so the mean rate
    HIGHEST   a value that may be absent    the value                     the maximum
    LAST      a value for the reader        nothing                       the last

Two rings reach back an hour and two weeks (`RINGS`).
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Generic, NamedTuple, TypeVar

import msgspec

from storage.domain import limits

Number = int | float | None
Values = tuple[int | None, ...]
"""A sample of one resource, a value for each column of its shape."""


class Measure(Enum):
    """Behaviour of a column over time: see the module."""

    LEVEL = auto()
    PEAK = auto()
    SINCE = auto()
    COUNT = auto()
    HIGHEST = auto()
    LAST = auto()


class SampleColumn(NamedTuple):
    """One number of a sample, and its name in charts."""

    name: str
    measure: Measure
    chart_name: str


class Ring(msgspec.Struct, frozen=True):
    """Retention of the samples of one step.

    A slot is a step's number since the epoch; a chunk is `chunk_slots` consecutive slots. `name` is part of the keys.
    """

    name: str
    step_ms: int
    reach_ms: int
    chunk_slots: int

    def slot(self, at_ms: int) -> int:
        """Return the slot that contains a time."""
        return at_ms // self.step_ms

    def chunk(self, slot: int) -> int:
        """Return the chunk that contains a slot."""
        return slot // self.chunk_slots

    def chunks(self, first: int, last: int) -> range:
        """Return the chunks of the slots from `first` to `last`, inclusive."""
        return range(self.chunk(first), self.chunk(last) + 1)

    @property
    def life_ms(self) -> int:
        """Time for which a chunk is of use, from its first slot on."""
        return self.reach_ms + 2 * self.chunk_slots * self.step_ms


FINEST = Ring("10s", limits.SERIES_STEP_MS, limits.SERIES_RETENTION_MS, limits.SERIES_CHUNK_SLOTS)
QUARTERS = Ring(
    "15m",
    limits.SERIES_QUARTER_STEP_MS,
    limits.SERIES_QUARTER_RETENTION_MS,
    limits.SERIES_QUARTER_CHUNK_SLOTS,
)
RINGS = (FINEST, QUARTERS)


def ring_for(window_ms: int) -> Ring:
    """Return the ring with the shortest step that covers the window.

    If none does, the one that reaches back furthest.
    """
    return FINEST if window_ms <= FINEST.reach_ms else QUARTERS


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """A chart: for each column a value at `start_ms`, and at every `step_ms` from there on.

    None: not measured. A rate is per second, over the step that ends there.
    """

    step_ms: int
    start_ms: int
    columns: Mapping[str, tuple[float | None, ...]]

    @property
    def times_ms(self) -> range:
        """Measurement time of each value, to the step."""
        length = len(next(iter(self.columns.values()), ()))
        return range(self.start_ms, self.start_ms + length * self.step_ms, self.step_ms)


def with_failure_ratio(samples: Samples) -> Samples:
    """Return a queue's chart with the failed deliveries among those that ended in each step."""
    failed, acknowledged = (
        samples.columns[name] for name in ("failed_per_second", "acknowledged_per_second")
    )
    ratios = tuple(map(failure_ratio, failed, acknowledged))
    return msgspec.structs.replace(samples, columns={**samples.columns, "failure_ratio": ratios})


def failure_ratio(failed: float | None, acknowledged: float | None) -> float | None:
    """Return the failed deliveries among those that ended, from 0 to 1; None without any."""
    ended = (failed or 0) + (acknowledged or 0)
    return (failed or 0) / ended if ended else None


class QueueSample(msgspec.Struct, frozen=True, gc=False):
    """Last sample of a queue: see QueueStats. Rates are None until there are two samples.

    `failed` counts deliveries that ended with a nack, a reject or without a verdict. The percentiles are those of the time
    from send to acknowledgement, of the messages acknowledged since the sample before; None without any.
    """

    ready: int = 0
    delayed: int = 0
    in_flight: int = 0
    dead_lettered: int = 0
    parked: int = 0
    moving: int = 0
    bytes_held: int = 0
    oldest_ready_at_ms: int | None = None
    sent: int = 0
    acknowledged: int = 0
    received: int = 0
    expired: int = 0
    purged: int = 0
    dropped: int = 0
    deduplicated: int = 0
    moved_in: int = 0
    moved_out: int = 0
    bytes_sent: int = 0
    dead_exhausted: int = 0
    dead_rejected: int = 0
    dead_full: int = 0
    consumers: int = 0
    failed: int = 0
    acknowledge_p50_ms: int | None = None
    acknowledge_p95_ms: int | None = None
    acknowledge_p99_ms: int | None = None
    sent_per_second: float | None = None
    acknowledged_per_second: float | None = None
    received_per_second: float | None = None
    expired_per_second: float | None = None
    purged_per_second: float | None = None
    dropped_per_second: float | None = None
    deduplicated_per_second: float | None = None
    moved_in_per_second: float | None = None
    moved_out_per_second: float | None = None
    bytes_sent_per_second: float | None = None
    dead_exhausted_per_second: float | None = None
    dead_rejected_per_second: float | None = None
    dead_full_per_second: float | None = None
    failed_per_second: float | None = None

    @property
    def failure_ratio(self) -> float | None:
        """Failed deliveries among those that ended since the sample before; None without any."""
        return failure_ratio(self.failed_per_second, self.acknowledged_per_second)

    def oldest_age_ms(self, now_ms: int) -> int:
        """Return the age of the oldest ready message; 0 when none is ready."""
        return _age_ms(self.oldest_ready_at_ms, now_ms)


class StreamSample(msgspec.Struct, frozen=True, gc=False):
    """Last sample of a stream.

    `shards`: the open ones; `records`, `bytes_held`: in the hot store; `lag_records`: of the group with the largest
    lag, None without groups.
    """

    records: int = 0
    bytes_held: int = 0
    shards: int = 0
    groups: int = 0
    lag_records: int | None = None
    unread_at_ms: int | None = None
    unarchived_at_ms: int | None = None
    records_in: int = 0
    bytes_in: int = 0
    records_in_per_second: float | None = None
    bytes_in_per_second: float | None = None

    def lag_ms(self, now_ms: int) -> int:
        """Return how long the oldest record has waited that some group has not read."""
        return _age_ms(self.unread_at_ms, now_ms)

    def archive_lag_ms(self, now_ms: int) -> int:
        """Return how long the oldest record has waited that is not archived."""
        return _age_ms(self.unarchived_at_ms, now_ms)


class GroupSample(msgspec.Struct, frozen=True, gc=False):
    """Last sample of a consumer group; `committed` counts records."""

    lag_records: int = 0
    unread_at_ms: int | None = None
    members: int = 0
    last_commit_ms: int | None = None
    committed: int = 0
    committed_per_second: float | None = None

    def lag_ms(self, now_ms: int) -> int:
        """Return how long the oldest record has waited that the group has not read."""
        return _age_ms(self.unread_at_ms, now_ms)


class TotalSample(msgspec.Struct, frozen=True, gc=False):
    """Totals of all queues, streams and groups of a namespace, or of the deployment.

    Counts are sums; lags and ages are the worst. The last fields are the deployment's: the store's memory (0: no
    limit), and the backlog of the archive.
    """

    queues: int = 0
    streams: int = 0
    groups: int = 0
    ready: int = 0
    delayed: int = 0
    in_flight: int = 0
    dead_lettered: int = 0
    parked: int = 0
    moving: int = 0
    bytes_held: int = 0
    oldest_ready_at_ms: int | None = None
    shards: int = 0
    stream_records: int = 0
    stream_bytes_held: int = 0
    lag_records: int = 0
    unread_at_ms: int | None = None
    members: int = 0
    sent: int = 0
    acknowledged: int = 0
    received: int = 0
    expired: int = 0
    purged: int = 0
    dropped: int = 0
    dead_exhausted: int = 0
    dead_rejected: int = 0
    dead_full: int = 0
    records_in: int = 0
    bytes_in: int = 0
    committed: int = 0
    messages_in: int = 0
    messages_out: int = 0
    namespaces: int = 0
    memory_used_bytes: int | None = None
    memory_max_bytes: int | None = None
    unarchived_at_ms: int | None = None
    sampled_at_ms: int = 0
    parts: int = 1
    sent_per_second: float | None = None
    acknowledged_per_second: float | None = None
    received_per_second: float | None = None
    expired_per_second: float | None = None
    purged_per_second: float | None = None
    dropped_per_second: float | None = None
    dead_exhausted_per_second: float | None = None
    dead_rejected_per_second: float | None = None
    dead_full_per_second: float | None = None
    records_in_per_second: float | None = None
    bytes_in_per_second: float | None = None
    committed_per_second: float | None = None
    messages_in_per_second: float | None = None
    messages_out_per_second: float | None = None

    def oldest_age_ms(self, now_ms: int) -> int:
        """Return the age of the oldest ready message of all queues."""
        return _age_ms(self.oldest_ready_at_ms, now_ms)

    def lag_ms(self, now_ms: int) -> int:
        """Return how long the oldest record has waited that some group has not read."""
        return _age_ms(self.unread_at_ms, now_ms)

    def archive_lag_ms(self, now_ms: int) -> int:
        """Return how long the oldest record has waited that is not archived."""
        return _age_ms(self.unarchived_at_ms, now_ms)


def _age_ms(since_ms: int | None, now_ms: int) -> int:
    return 0 if since_ms is None else max(0, now_ms - since_ms)


S = TypeVar("S", bound=msgspec.Struct)

_MEASURES = {
    Measure.PEAK: {"ready", "in_flight", "lag_records", "memory_used_bytes"},
    Measure.HIGHEST: {"acknowledge_p50_ms", "acknowledge_p95_ms", "acknowledge_p99_ms"},
    Measure.LAST: {"sampled_at_ms", "parts", "last_commit_ms"},
    Measure.SINCE: {"oldest_ready_at_ms", "unread_at_ms", "unarchived_at_ms"},
}
_CHART_NAMES = {
    "oldest_ready_at_ms": "oldest_age_ms",
    "unread_at_ms": "lag_ms",
    "unarchived_at_ms": "archive_lag_ms",
}


class Shape(Generic[S]):
    """Columns of one kind of resource; those that have a rate are its counts."""

    def __init__(self, kind: str, sample: type[S]) -> None:
        self.kind = kind
        self._make: Callable[..., S] = sample
        fields = sample.__struct_fields__
        rated = [name.removesuffix(_RATE) for name in fields if name.endswith(_RATE)]
        named = [name for name in fields if not name.endswith(_RATE)]
        self.columns = tuple(SampleColumn(name, *_how(name, name in rated)) for name in named)
        self.names = tuple(named)
        self.counts = tuple(nth for nth, name in enumerate(named) if name in rated)
        self.still = (0.0,) * len(self.counts)
        """Rates of a resource that does not change."""

    def values(self, sample: S) -> Values:
        """Return a sample without its rates."""
        return tuple(getattr(sample, name) for name in self.names)

    def made(self, values: Values, rates: tuple[float | None, ...]) -> S:
        """Build the sample of these values.

        Fields that an earlier version did not measure have their defaults.
        """
        if len(values) == len(self.names) and len(rates) == len(self.counts):
            return self._make(*values, *rates)
        fields = dict(zip(self.names, values, strict=False))
        rated = (self.names[nth] + _RATE for nth in self.counts)
        return self._make(**fields, **dict(zip(rated, rates, strict=False)))


_RATE = "_per_second"


def _how(name: str, is_count: bool) -> tuple[Measure, str]:
    if is_count:
        return Measure.COUNT, name + _RATE
    measure = next((one for one, names in _MEASURES.items() if name in names), Measure.LEVEL)
    return measure, _CHART_NAMES.get(name, name)


QUEUE = Shape("queues", QueueSample)
STREAM = Shape("streams", StreamSample)
GROUP = Shape("groups", GroupSample)
TOTAL = Shape("totals", TotalSample)


class Latest(Mapping[str, S]):
    """Last samples, by name. `at_ms`: when the last of them was taken, None for never.

    With more logs than are measured per tick (`limits.SERIES_LOGS_PER_TICK`), some samples are older by a few steps.
    """

    def __init__(self, at_ms: int | None, by_name: dict[str, S]) -> None:
        self.at_ms = at_ms
        self._by_name = by_name

    def __getitem__(self, name: str) -> S:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)
