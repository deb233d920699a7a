"""Sampler: one process observes everything every few seconds, and records the changes.

    claim     a slot; only the process that has it measures. Had another process the one before, its state is loaded
    look      at each queue, shard and group (`storage.timeseries.collector`)
    add       to the chunks of what changed; a slot of a longer ring that is over is added up (`series_memory`)
    keep      the latest sample of each; drop what was deleted
    total     namespaces, then the deployment, whose own series has a row for each slot that was measured
    finish    the slot

A crash in between leaves a slot that was claimed and not finished: some of the latest samples may be missing in the
rings, so the next look continues from the last finished slot, and adds everything once, whether it changed or not. What
was written to a stream, or committed by a group, between those two slots is then in no count.
"""

import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.timeseries.changes import LONGER, Addition, Known, Looked
from storage.domain.timeseries.rollup import looked_at
from storage.domain.timeseries.samples import (
    FINEST,
    GROUP,
    QUEUE,
    STREAM,
    TOTAL,
    Shape,
    TotalSample,
    Values,
)
from storage.postgres.repositories.sampled_resources import (
    MeasuredQueue,
    MeasuredRows,
    MeasuredStream,
)
from storage.redis.cluster_store import HotStore
from storage.redis.counters.timeseries import HotSeries, Kept
from storage.timeseries.collector import (
    Behind,
    ResourceCollector,
    Seen,
    SeenStream,
    group_sample,
    read_since,
    stream_sample,
    taken_by,
    taken_since,
    together,
)
from storage.timeseries.recovery import KINDS, Memory, Place, recall
from storage.timeseries.totals import (
    DEPLOYMENT,
    NAMESPACE,
    Increments,
    note_risen,
    total_of,
    total_of_all,
)

_R = TypeVar("_R", MeasuredQueue, MeasuredStream)


class _Forgotten(Exception):
    """The store lost the samples that this process had written to it."""


class Sampler:
    """Sampling task.

    Raises StorageUnavailable, and then the samples of this slot are incomplete.
    """

    def __init__(
        self,
        hot: HotSeries,
        looks: ResourceCollector,
        rows: MeasuredRows,
        store: HotStore,
        clock: Clock,
    ) -> None:
        self._hot = hot
        self._looks = looks
        self._rows = rows
        self._store = store
        self._clock = clock
        self._owner = secrets.token_hex(8)
        self._memory: Memory | None = None

    async def sample(self) -> int:
        """Measure unless another process has in this slot; return the number of resources."""
        at_ms = self._clock.now_ms()
        slot = FINEST.slot(at_ms)
        claimed = await self._hot.claim(slot, self._owner)
        if not claimed.mine:
            return 0
        memory, self._memory = self._memory, None  # after any error the next look loads it again
        whole = claimed.taken == claimed.done
        mine = claimed.after_me and memory is not None and memory.slot == claimed.done
        if memory is None or not mine or not whole:
            memory = await recall(self._hot, claimed.done, claimed.taken)
        look = _Look(memory, at_ms, forced=not whole)
        try:
            count = await self._look(look)
        except _Forgotten:
            return 0
        if await self._hot.finish(slot, self._owner):
            memory.slot = slot
            self._memory = memory
        return count

    async def _look(self, look: "_Look") -> int:
        namespaces = await self._rows.namespaces()
        await self._announce(look, namespaces)
        queues = [one async for page in self._rows.queues() for one in page]
        streams = [one async for page in self._rows.streams() for one in page]
        groups = await self._rows.group_names()
        look.share(len(queues) + sum(len(stream.shards) for stream in streams))
        look.close_longer()
        look.forget_all_but(QUEUE, {one[:2] for one in queues})
        look.forget_all_but(STREAM, {one[:2] for one in streams})
        look.forget_all_but(GROUP, groups)
        for queue in await self._looks.queues(look.in_turn(queues)):
            look.at(QUEUE, queue)
        turn = look.in_turn(streams)
        for begin in range(0, len(turn), limits.PAGE_ITEMS_MAX):
            for stream in await self._looks.streams(turn[begin : begin + limits.PAGE_ITEMS_MAX]):
                _look_at_stream(look, stream)
        await self._write(look)
        await self._write_totals(look, namespaces)
        return len(queues) + len(streams) + len(groups)

    async def _announce(self, look: "_Look", namespaces: Iterable[str]) -> None:
        """Store totals of new namespaces first: their samples are found by these totals."""
        totals = look.memory.known[TOTAL.kind]
        values = TOTAL.values(TotalSample())
        new = {
            name: Kept(NAMESPACE, look.at_ms, values)
            for name in namespaces
            if (name, "") not in totals
        }
        if new:
            await self._hot.keep("", TOTAL.kind, new, ())

    async def _write(self, look: "_Look") -> None:
        additions, look.additions = look.additions, {}

        async def add(place: tuple[str, str]) -> bool:
            return await self._hot.add(*place, additions[place])

        if not all(await together(add, additions)):
            raise _Forgotten
        for (namespace, kind), changes in look.changes.items():
            await self._hot.keep(namespace, kind, changes.kept, changes.gone)
        await together(lambda gone: self._hot.drop(*gone, look.at_ms), look.gone)
        look.changes, look.gone = {}, []

    async def _write_totals(self, look: "_Look", namespaces: Sequence[str]) -> None:
        look.forget_all_but(TOTAL, {("", ""), *((name, "") for name in namespaces)})
        totals = look.at_namespaces(namespaces)
        await self._write(look)
        used, most = await self._store.memory()
        look.at_deployment(totals, used, most)
        await self._write(look)


def _look_at_stream(look: "_Look", seen: SeenStream) -> None:
    namespace, name, stream_id, _ = seen.stream
    before, behind = look.last_of(STREAM, namespace, name, stream_id), taken_by(seen)
    since = taken_since(before.behind if before else (), behind)
    records, size = _count(before, "records_in"), _count(before, "bytes_in")
    values = STREAM.values(stream_sample(seen, records + since[0], size + since[1]))
    look.at(STREAM, Seen(namespace, name, stream_id, values, behind))
    for seen_group in seen.groups:
        namespace, name, group_id, *_ = seen_group.group
        previous = look.last_of(GROUP, namespace, name, group_id)
        committed = read_since(previous.behind if previous else (), seen_group.places)
        values = GROUP.values(group_sample(seen_group, _count(previous, "committed") + committed))
        look.at(GROUP, Seen(namespace, name, group_id, values, seen_group.places))


def _count(resource: Known | None, name: str) -> int:
    """Return the value of a count that only the sampler keeps."""
    if resource is None or resource.values is None:
        return 0
    return resource.values[resource.shape.names.index(name)] or 0


class _Changes(NamedTuple):
    """Latest samples of one kind in a namespace to store, and names to delete."""

    kept: dict[str, Kept]
    gone: list[str]


class _Look:
    """One slot's observations, and the resulting additions, updates and deletions."""

    def __init__(self, memory: Memory, at_ms: int, *, forced: bool) -> None:
        self.memory = memory
        self.at_ms = at_ms
        self.parts = 1
        self.additions: dict[tuple[str, str], list[Addition]] = {}  # by namespace and id
        self.changes: dict[tuple[str, str], _Changes] = {}  # by namespace and kind
        self.gone: list[tuple[str, str]] = []  # namespace and id
        self._forced = forced
        self._risen: dict[str, Increments] = {}  # by namespace
        self._slot = FINEST.slot(at_ms)

    # Turns

    def share(self, logs: int) -> None:
        """Set the number of logs: with too many, each is measured in one of several slots only."""
        self.parts = max(1, -(-logs // limits.SERIES_LOGS_PER_TICK))

    def in_turn(self, resources: Iterable[_R]) -> list[_R]:
        """Return the resources that are due in this slot."""
        return [one for one in resources if looked_at(one[2], self._slot, self.parts)]

    # Observations

    def last_of(
        self, shape: Shape[Any], namespace: str, name: str, resource_id: str
    ) -> Known | None:
        """Return the state of a resource; None for one that was recreated."""
        resource = self.memory.known[shape.kind].get((namespace, name))
        return resource if resource is not None and resource.resource_id == resource_id else None

    def at(self, shape: Shape[Any], seen: Seen) -> None:
        """Record the observation of a resource."""
        place = (seen.namespace, seen.name)
        resource = self.last_of(shape, *place, seen.resource_id)
        if resource is None:
            if old := self.memory.known[shape.kind].get(place):
                self._forget(shape, place, old)
            resource = self.memory.known[shape.kind][place] = Known(shape, seen.resource_id)
        if shape is not TOTAL:
            risen = self._risen.setdefault(seen.namespace, {})
            note_risen(risen, shape, resource.values, seen.values)
        self._note(place, resource, seen.values, seen.behind)

    def _note(self, place: Place, resource: Known, values: Values, behind: Behind) -> None:
        """Add the changes of a resource, and store its latest sample."""
        before = (resource.rates, resource.behind)
        additions = resource.look(
            values, self.at_ms, self.memory.looked, parts=self.parts, forced=self._forced
        )
        resource.behind = behind
        if additions:
            self._add(place[0], resource, additions)
            for nth in range(len(LONGER)):
                self.memory.open_up(place[0], resource, nth)
        if additions or before != (resource.rates, behind):
            sample = Kept(
                resource.resource_id, resource.changed_ms, values, _told(resource.rates), behind
            )
            namespace, name = ("", place[0]) if resource.shape is TOTAL else place
            self._changes(namespace, resource.shape).kept[name] = sample

    def _add(self, namespace: str, resource: Known, additions: Sequence[Addition]) -> None:
        self.additions.setdefault((namespace, resource.resource_id), []).extend(additions)

    def _changes(self, namespace: str, shape: Shape[Any]) -> _Changes:
        return self.changes.setdefault((namespace, shape.kind), _Changes({}, []))

    # Deletions

    def forget_all_but(self, shape: Shape[Any], existing: Collection[Place]) -> None:
        """Delete all data of resources that no longer exist."""
        of_kind = self.memory.known[shape.kind]
        for place in [place for place in of_kind if place not in existing]:
            namespace, name = ("", place[0]) if shape is TOTAL else place
            self._changes(namespace, shape).gone.append(name)
            self._forget(shape, place, of_kind[place])

    def _forget(self, shape: Shape[Any], place: Place, resource: Known) -> None:
        del self.memory.known[shape.kind][place]
        for still_open in self.memory.open:
            still_open.pop(id(resource), None)
        self.gone.append((place[0], resource.resource_id))

    # Longer slots

    def close_longer(self) -> None:
        """Add up the slots of the longer rings that are over."""
        if not self.memory.looked:
            self.memory.looked = [Looked(ring.slot(self.at_ms), 0, 0) for ring in LONGER]
        for nth, ring in enumerate(LONGER):
            looked, now = self.memory.looked[nth], ring.slot(self.at_ms)
            if looked.slot != now:
                self._close(nth, looked)
                self.memory.looked[nth] = Looked(now, 0, looked.last_at_ms)

    def _close(self, nth: int, looked: Looked) -> None:
        opened, self.memory.open[nth] = self.memory.open[nth], {}
        for namespace, resource in opened.values():
            additions, unsettled = resource.close(LONGER[nth], looked)
            if additions:
                self._add(namespace, resource, additions)
            if unsettled:
                self.memory.open_up(namespace, resource, nth)

    # Totals

    def at_namespaces(self, namespaces: Iterable[str]) -> list[TotalSample]:
        """Record and return the totals of each namespace."""
        samples: dict[str, dict[str, list[Values]]] = {
            name: {shape.kind: [] for shape in KINDS} for name in namespaces
        }
        for shape in KINDS:
            for (namespace, _), resource in self.memory.known[shape.kind].items():
                if namespace in samples and resource.values is not None:
                    samples[namespace][shape.kind].append(resource.values)
        totals = []
        for namespace, of_kinds in samples.items():
            risen = self._risen.get(namespace, {})
            total = total_of(self._total(namespace, NAMESPACE), of_kinds, risen)
            self.at(TOTAL, Seen(namespace, "", NAMESPACE, TOTAL.values(total)))
            totals.append(total)
        return totals

    def at_deployment(self, totals: Sequence[TotalSample], used: int, most: int) -> None:
        """Record the total of all namespaces, which marks this slot as measured for readers."""
        risen: Increments = {}
        for of_namespace in self._risen.values():
            for name, by in of_namespace.items():
                risen[name] = risen.get(name, 0) + by
        total = total_of_all(
            self._total("", DEPLOYMENT),
            totals,
            risen,
            memory_used_bytes=used,
            memory_max_bytes=most,
            sampled_at_ms=self.at_ms,
            parts=self.parts,
        )
        self.at(TOTAL, Seen("", "", DEPLOYMENT, TOTAL.values(total)))
        self.memory.looked = [
            Looked(looked.slot, looked.looks + 1, self.at_ms) for looked in self.memory.looked
        ]

    def _total(self, namespace: str, resource_id: str) -> TotalSample | None:
        resource = self.last_of(TOTAL, namespace, "", resource_id)
        return (
            None if resource is None or resource.values is None else TOTAL.made(resource.values, ())
        )


def _told(rates: tuple[float | None, ...]) -> tuple[float | None, ...]:
    """Return rates as they are stored: if all are zero, nothing, to save space."""
    return () if all(one == 0 for one in rates) else rates
