"""One round of the sampler: observations of a slot, and the resulting writes."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from storage.domain import limits
from storage.domain.timeseries.changes import LONGER, Addition, ResourceState, SlotProgress
from storage.domain.timeseries.rollup import is_sampled
from storage.domain.timeseries.samples import (
    FINEST,
    TOTAL,
    Shape,
    TotalSample,
    Values,
)
from storage.hot_store.time_series import LatestSample
from storage.postgres.repositories.sampled_resources import (
    MeasuredQueue,
    MeasuredStream,
)
from storage.timeseries.collector import (
    Baseline,
    Observation,
)
from storage.timeseries.recovery import KINDS, Place, SamplerState
from storage.timeseries.totals import (
    DEPLOYMENT,
    NAMESPACE,
    Increments,
    add_increments,
    total_of,
    total_of_all,
)

_R = TypeVar("_R", MeasuredQueue, MeasuredStream)


class _Changes(NamedTuple):
    """Latest samples of one kind in a namespace to store, and names to delete."""

    latest: dict[str, LatestSample]
    gone: list[str]


class SampleRound:
    """One slot's observations, and the resulting additions, updates and deletions."""

    def __init__(self, memory: SamplerState, at_ms: int, *, forced: bool) -> None:
        self.memory = memory
        self.at_ms = at_ms
        self.parts = 1
        self.additions: dict[tuple[str, str], list[Addition]] = {}  # by namespace and id
        self.changes: dict[tuple[str, str], _Changes] = {}  # by namespace and kind
        self.gone: list[tuple[str, str]] = []  # namespace and id
        self._forced = forced
        self._increments: dict[str, Increments] = {}  # by namespace
        self._slot = FINEST.slot(at_ms)

    # Turns

    def share(self, logs: int) -> None:
        """Set the number of logs: with too many, each is measured in one of several slots only."""
        self.parts = max(1, -(-logs // limits.SERIES_LOGS_PER_TICK))

    def due(self, resources: Iterable[_R]) -> list[_R]:
        """Return the resources that are due in this slot."""
        return [one for one in resources if is_sampled(one[2], self._slot, self.parts)]

    # Observations

    def last_state(
        self, shape: Shape[Any], namespace: str, name: str, resource_id: str
    ) -> ResourceState | None:
        """Return the state of a resource; None for one that was recreated."""
        resource = self.memory.resources[shape.kind].get((namespace, name))
        return resource if resource is not None and resource.resource_id == resource_id else None

    def record(self, shape: Shape[Any], seen: Observation) -> None:
        """Record the observation of a resource."""
        place = (seen.namespace, seen.name)
        resource = self.last_state(shape, *place, seen.resource_id)
        if resource is None:
            if old := self.memory.resources[shape.kind].get(place):
                self._evict(shape, place, old)
            resource = self.memory.resources[shape.kind][place] = ResourceState(
                shape, seen.resource_id
            )
        if shape is not TOTAL:
            increments = self._increments.setdefault(seen.namespace, {})
            add_increments(increments, shape, resource.values, seen.values)
        self._store_changes(place, resource, seen.values, seen.behind)

    def _store_changes(
        self, place: Place, resource: ResourceState, values: Values, behind: Baseline
    ) -> None:
        """Add the changes of a resource, and store its latest sample."""
        before = (resource.rates, resource.behind)
        additions = resource.record(
            values, self.at_ms, self.memory.progress, parts=self.parts, forced=self._forced
        )
        resource.behind = behind
        if additions:
            self._add(place[0], resource, additions)
            for nth in range(len(LONGER)):
                self.memory.open_bucket(place[0], resource, nth)
        if additions or before != (resource.rates, behind):
            sample = LatestSample(
                resource.resource_id,
                resource.changed_ms,
                values,
                _stored_rates(resource.rates),
                behind,
            )
            namespace, name = ("", place[0]) if resource.shape is TOTAL else place
            self._changes(namespace, resource.shape).latest[name] = sample

    def _add(self, namespace: str, resource: ResourceState, additions: Sequence[Addition]) -> None:
        self.additions.setdefault((namespace, resource.resource_id), []).extend(additions)

    def _changes(self, namespace: str, shape: Shape[Any]) -> _Changes:
        return self.changes.setdefault((namespace, shape.kind), _Changes({}, []))

    # Deletions

    def evict_missing(self, shape: Shape[Any], existing: Collection[Place]) -> None:
        """Delete all data of resources that no longer exist."""
        of_kind = self.memory.resources[shape.kind]
        for place in [place for place in of_kind if place not in existing]:
            namespace, name = ("", place[0]) if shape is TOTAL else place
            self._changes(namespace, shape).gone.append(name)
            self._evict(shape, place, of_kind[place])

    def _evict(self, shape: Shape[Any], place: Place, resource: ResourceState) -> None:
        del self.memory.resources[shape.kind][place]
        for still_open in self.memory.open:
            still_open.pop(id(resource), None)
        self.gone.append((place[0], resource.resource_id))

    # Longer slots

    def close_longer(self) -> None:
        """Add up the slots of the longer rings that are over."""
        if not self.memory.progress:
            self.memory.progress = [SlotProgress(ring.slot(self.at_ms), 0, 0) for ring in LONGER]
        for nth, ring in enumerate(LONGER):
            progress, now = self.memory.progress[nth], ring.slot(self.at_ms)
            if progress.slot != now:
                self._close(nth, progress)
                self.memory.progress[nth] = SlotProgress(now, 0, progress.last_at_ms)

    def _close(self, nth: int, progress: SlotProgress) -> None:
        opened, self.memory.open[nth] = self.memory.open[nth], {}
        for namespace, resource in opened.values():
            additions, unsettled = resource.close(LONGER[nth], progress)
            if additions:
                self._add(namespace, resource, additions)
            if unsettled:
                self.memory.open_bucket(namespace, resource, nth)

    # Totals

    def record_namespaces(self, namespaces: Iterable[str]) -> list[TotalSample]:
        """Record and return the totals of each namespace."""
        samples: dict[str, dict[str, list[Values]]] = {
            name: {shape.kind: [] for shape in KINDS} for name in namespaces
        }
        for shape in KINDS:
            for (namespace, _), resource in self.memory.resources[shape.kind].items():
                if namespace in samples and resource.values is not None:
                    samples[namespace][shape.kind].append(resource.values)
        totals = []
        for namespace, of_kinds in samples.items():
            increments = self._increments.get(namespace, {})
            total = total_of(self._total(namespace, NAMESPACE), of_kinds, increments)
            self.record(TOTAL, Observation(namespace, "", NAMESPACE, TOTAL.values(total)))
            totals.append(total)
        return totals

    def record_deployment(self, totals: Sequence[TotalSample], used: int, most: int) -> None:
        """Record the total of all namespaces, which marks this slot as measured for readers."""
        increments: Increments = {}
        for of_namespace in self._increments.values():
            for name, by in of_namespace.items():
                increments[name] = increments.get(name, 0) + by
        total = total_of_all(
            self._total("", DEPLOYMENT),
            totals,
            increments,
            memory_used_bytes=used,
            memory_max_bytes=most,
            sampled_at_ms=self.at_ms,
            parts=self.parts,
        )
        self.record(TOTAL, Observation("", "", DEPLOYMENT, TOTAL.values(total)))
        self.memory.progress = [
            SlotProgress(progress.slot, progress.samples + 1, self.at_ms)
            for progress in self.memory.progress
        ]

    def _total(self, namespace: str, resource_id: str) -> TotalSample | None:
        resource = self.last_state(TOTAL, namespace, "", resource_id)
        return (
            None if resource is None or resource.values is None else TOTAL.made(resource.values, ())
        )


def _stored_rates(rates: tuple[float | None, ...]) -> tuple[float | None, ...]:
    """Return rates as they are stored: if all are zero, nothing, to save space."""
    return () if all(one == 0 for one in rates) else rates
