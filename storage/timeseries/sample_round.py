"""One round of the sampler: observations of a slot, and the resulting writes."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from storage.domain import limits
from storage.domain.timeseries.rollup import Addition, is_sampled
from storage.domain.timeseries.samples import FINEST, TOTAL, Shape, TotalSample, Values
from storage.hot_store.time_series import LatestSample
from storage.postgres.repositories.sampled_resources import MeasuredQueue, MeasuredStream
from storage.timeseries.collector import Observation
from storage.timeseries.state import KINDS, Place, ResourceState, SamplerState
from storage.timeseries.totals import (
    DEPLOYMENT,
    NAMESPACE,
    Increments,
    add_all,
    increments_of,
    total_of,
    total_of_all,
    with_increments,
)

_R = TypeVar("_R", MeasuredQueue, MeasuredStream)


class LatestChanges(NamedTuple):
    """Latest samples of one kind in a namespace to store or delete, by name.

    `increments`: what the stored ones add to totals.
    """

    latest: dict[str, LatestSample]
    increments: dict[str, Increments]
    deleted: list[str]

    def batches(self, length: int) -> "Iterator[LatestChanges]":
        """Divide the changes into those that one call stores."""
        names = list(self.latest)
        for begin in range(0, max(len(names), len(self.deleted)), length):
            batch = names[begin : begin + length]
            yield LatestChanges(
                {name: self.latest[name] for name in batch},
                {name: self.increments[name] for name in batch if name in self.increments},
                self.deleted[begin : begin + length],
            )


class SampleRound:
    """One slot's observations, and the resulting additions, updates and deletions."""

    def __init__(self, state: SamplerState, at_ms: int) -> None:
        self.state = state
        self.at_ms = at_ms
        self.parts = 1
        self.additions: list[tuple[str, str, Addition]] = []  # with namespace and id
        self.changes: dict[tuple[str, str], LatestChanges] = {}  # by namespace and kind
        self.gone: list[tuple[str, str]] = []  # namespace and id
        self._increments: dict[str, Increments] = {}  # by namespace, '' for the deployment
        self._stored: dict[str, Increments] = {}  # those of them that the stored totals include
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
        resource = self.state.resources[shape.kind].get((namespace, name))
        return resource if resource is not None and resource.resource_id == resource_id else None

    def record(self, shape: Shape[Any], seen: Observation) -> None:
        """Record the observation of a resource."""
        place = (seen.namespace, seen.name)
        resource = self.last_state(shape, *place, seen.resource_id)
        if resource is None:
            if old := self.state.resources[shape.kind].get(place):
                self._evict(shape, place, old)
            resource = self.state.resources[shape.kind][place] = ResourceState(
                shape, seen.resource_id
            )
        changes, name = self._changes(shape, place)
        if shape is not TOTAL and resource.values != seen.values:
            increments = increments_of(shape, resource.values, seen.values)
            changes.increments[name] = increments
            self._count(self._increments, seen.namespace, increments)
        before = (resource.rates, resource.behind)
        addition = resource.record(seen.values, self.at_ms, parts=self.parts)
        resource.behind = seen.behind
        if addition is not None:
            self.additions.append((seen.namespace, resource.resource_id, addition))
        if addition is not None or before != (resource.rates, resource.behind):
            changes.latest[name] = resource.latest()

    @staticmethod
    def _count(counts: dict[str, Increments], namespace: str, increments: Increments) -> None:
        for total in (namespace, ""):
            add_all(counts.setdefault(total, {}), increments)

    def _changes(self, shape: Shape[Any], place: Place) -> tuple[LatestChanges, str]:
        """Return the changes that include a resource, and its name in them."""
        namespace, name = ("", place[0]) if shape is TOTAL else place
        changes = self.changes.setdefault((namespace, shape.kind), LatestChanges({}, {}, []))
        return changes, name

    # Deletions

    def evict_missing(self, shape: Shape[Any], existing: Collection[Place]) -> None:
        """Delete all data of resources that no longer exist."""
        of_kind = self.state.resources[shape.kind]
        for place in [place for place in of_kind if place not in existing]:
            changes, name = self._changes(shape, place)
            changes.deleted.append(name)
            self._evict(shape, place, of_kind[place])

    def _evict(self, shape: Shape[Any], place: Place, resource: ResourceState) -> None:
        del self.state.resources[shape.kind][place]
        self.gone.append((place[0], resource.resource_id))

    # Totals

    def record_namespaces(self, namespaces: Iterable[str]) -> list[TotalSample]:
        """Record and return the totals of each namespace."""
        samples: dict[str, dict[str, list[Values]]] = {
            name: {shape.kind: [] for shape in KINDS} for name in namespaces
        }
        for shape in KINDS:
            for (namespace, _), resource in self.state.resources[shape.kind].items():
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
        total = total_of_all(
            self._total("", DEPLOYMENT),
            totals,
            self._increments.get("", {}),
            memory_used_bytes=used,
            memory_max_bytes=most,
            sampled_at_ms=self.at_ms,
            parts=self.parts,
        )
        self.record(TOTAL, Observation("", "", DEPLOYMENT, TOTAL.values(total)))

    def totals_including(self, namespace: str, changes: LatestChanges) -> dict[str, LatestSample]:
        """Return the totals to store with these changes, by name."""
        for increments in changes.increments.values():
            self._count(self._stored, namespace, increments)
        return {
            name: self._stored_total(name, resource_id)
            for name, resource_id in ((namespace, NAMESPACE), ("", DEPLOYMENT))
        }

    def _stored_total(self, namespace: str, resource_id: str) -> LatestSample:
        total = self.last_state(TOTAL, namespace, "", resource_id)
        total = ResourceState(TOTAL, resource_id) if total is None else total
        values = with_increments(total.values, self._stored.get(namespace, {}))
        return msgspec.structs.replace(total.latest(), values=values)

    def _total(self, namespace: str, resource_id: str) -> TotalSample | None:
        resource = self.last_state(TOTAL, namespace, "", resource_id)
        return (
            None if resource is None or resource.values is None else TOTAL.made(resource.values, ())
        )
