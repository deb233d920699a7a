"""Verbs of sampled time series."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec

from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.timeseries.rollup import Addition
from storage.domain.timeseries.samples import Ring, Shape, Values


class LatestSample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Last sample of one resource, and when it was last written to its ring.

    `rates` are empty when all are zero; `behind` is what the next sample is compared with.
    """

    resource_id: str
    changed_ms: int
    values: Values
    rates: tuple[float | None, ...] = ()
    behind: tuple[tuple[int, ...], ...] = ()

    def rates_of(self, shape: Shape[Any]) -> tuple[float | None, ...]:
        """Return the rates of all counts of its shape."""
        return self.rates or shape.still


class Claim(Enum):
    """Result of claiming a slot."""

    REJECTED = 0
    NEW_OWNER = 1
    """The slot is claimed; another sampler had the one before."""
    CONTINUED = 2
    """The slot is claimed; the same sampler had the one before."""


class QueueCounts(NamedTuple):
    """Counts of a queue as `sample_queue` reports them.

    `counts` is empty for a queue that never had a message.
    `acknowledge_times`: the lately growing histogram of times from send to acknowledgement, by bucket.
    """

    counts: Sequence[int] = ()
    acknowledge_times: Mapping[int, int] = {}


class HotShard(NamedTuple):
    """A shard's log: its extent, the bytes it ever accepted, and arrival times.

    `waits_since_ms` has the arrival of the first record from each requested position on, None where there is none yet.
    """

    start: int
    next: int
    bytes_in: int
    bytes_held: int
    log_epoch: int
    waits_since_ms: tuple[int | None, ...]


class LatestUpdate(NamedTuple):
    """Last samples to store by name, names to delete, and the totals of both."""

    samples: Mapping[str, LatestSample]
    deleted: Sequence[str]
    totals: Mapping[str, LatestSample]


class TimeSeriesStore(Protocol):
    """Operations of sampling and of reading samples.

    Every method raises StorageUnavailable or OutcomeUnknown.
    """

    async def claim(self, slot: int, owner: str) -> Claim:
        """Claim a slot, unless it is claimed."""
        ...

    async def sample_queue(
        self, namespace: str, log_id: LogId, now: ScriptTime
    ) -> QueueCounts | None:
        """Return the counts of a queue; None when it is deleted."""
        ...

    async def sample_shard(self, log: LogAddress, positions: Sequence[int]) -> HotShard | None:
        """Return the sample of a shard; None for one that was never written, or is deleted."""
        ...

    async def add(self, namespace: str, resource_id: str, addition: Addition) -> None:
        """Append a row to a ring; the later row of a slot counts."""
        ...

    async def store_latest(
        self, owner: str, namespace: str, kind: str, update: LatestUpdate
    ) -> bool:
        """Store and delete last samples, with the totals that include them, in one step.

        Returns False, with no effect, when another sampler has claimed a slot since.
        """
        ...

    async def drop(self, namespace: str, resource_id: str, now_ms: int) -> None:
        """Delete the samples of a resource that no longer exists."""
        ...

    async def latest(self, namespace: str, kind: str) -> dict[str, LatestSample]:
        """Return the last samples of all resources of a kind, by name."""
        ...

    async def latest_of(
        self, namespace: str, kind: str, names: Sequence[str]
    ) -> list[LatestSample | None]:
        """Return the last samples of the named resources."""
        ...

    async def chunks(
        self, namespace: str, resource_id: str, ring: Ring, numbers: range
    ) -> dict[int, bytes]:
        """Return those of the chunks that exist."""
        ...
