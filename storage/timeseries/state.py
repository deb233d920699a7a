"""State of the sampler: the last sample of each resource."""

from typing import Any

from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.timeseries.rollup import Addition, encode_row, rate
from storage.domain.timeseries.samples import (
    FINEST,
    GROUP,
    QUEUE,
    STREAM,
    TOTAL,
    Shape,
    Values,
)
from storage.hot_store.time_series import LatestSample, TimeSeriesStore
from storage.timeseries.collector import Baseline

KINDS: tuple[Shape[Any], ...] = (QUEUE, STREAM, GROUP)

Place = tuple[str, str]
"""A namespace and a name in it; totals have the name '', the deployment's also the namespace ''."""


class ResourceState:
    """The last sample of one resource.

    `is_loaded`: since that sample, an interrupted round may have written a row.
    """

    __slots__ = (
        "behind",
        "changed_ms",
        "is_loaded",
        "rates",
        "resource_id",
        "seen_ms",
        "shape",
        "values",
    )

    def __init__(self, shape: Shape[Any], resource_id: str) -> None:
        self.shape = shape
        self.resource_id = resource_id
        self.values: Values | None = None
        self.rates: tuple[float | None, ...] = ()
        self.behind: Baseline = ()
        self.changed_ms = 0
        self.is_loaded = False
        self.seen_ms = 0

    def record(self, values: Values, at_ms: int, *, parts: int = 1) -> Addition | None:
        """Record a sample and return the row to write, None when nothing changed."""
        before = self.values
        self.rates = self._rates(values, at_ms, parts)
        self.seen_ms = at_ms
        if values == before and not self.is_loaded:
            return None
        self.values, self.changed_ms, self.is_loaded = values, at_ms, False
        row_before = None if before is None else encode_row(self.shape, before)
        return Addition(FINEST, FINEST.slot(at_ms), row_before, encode_row(self.shape, values))

    def latest(self) -> LatestSample:
        """Return the last sample as it is stored: rates that are all zero take no space."""
        rates = () if all(one == 0 for one in self.rates) else self.rates
        return LatestSample(
            self.resource_id, self.changed_ms, self.values or (), rates, self.behind
        )

    def _rates(self, values: Values, at_ms: int, parts: int) -> tuple[float | None, ...]:
        before, ms = self.values, at_ms - self.seen_ms
        longest_ms = limits.SERIES_RATE_STEPS * parts * FINEST.step_ms
        if before is None or ms > longest_ms:
            return (None,) * len(self.shape.counts)
        if values == before and ms > 0:
            return self.shape.still
        return tuple(rate(before[nth] or 0, values[nth] or 0, ms) for nth in self.shape.counts)


class SamplerState:
    """All last samples; `at_ms` is when the last complete round was, 0 before the first."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.resources: dict[str, dict[Place, ResourceState]] = {
            shape.kind: {} for shape in (*KINDS, TOTAL)
        }


async def load_state(hot: TimeSeriesStore) -> SamplerState:
    """Load the state from the latest samples, when a process takes over."""
    state = SamplerState()
    totals = await hot.latest("", TOTAL.kind)
    if "" in totals:
        state.at_ms = totals[""].values[TOTAL.names.index("sampled_at_ms")] or 0
    for namespace, latest in totals.items():
        state.resources[TOTAL.kind][namespace, ""] = _resource_state(TOTAL, latest, state.at_ms)

    async def load(kind: tuple[str, Shape[Any]]) -> None:
        namespace, shape = kind
        resources = state.resources[shape.kind]
        for name, latest in (await hot.latest(namespace, shape.kind)).items():
            resources[namespace, name] = _resource_state(shape, latest, state.at_ms)

    kinds = [(namespace, shape) for namespace in totals if namespace for shape in KINDS]
    await in_batches(kinds, load, limits.SERIES_MEASURE_CONCURRENCY_MAX)
    return state


def _resource_state(shape: Shape[Any], latest: LatestSample, at_ms: int) -> ResourceState:
    resource = ResourceState(shape, latest.resource_id)
    resource.values = shape.values(shape.made(latest.values, latest.rates))
    resource.rates, resource.behind = latest.rates_of(shape), latest.behind
    resource.changed_ms, resource.seen_ms, resource.is_loaded = latest.changed_ms, at_ms, True
    return resource
