"""Verbs of sampled time series."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.timeseries.changes import Addition
from storage.domain.timeseries.samples import Ring, Shape, Values


class LatestSample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Last sample of one resource, and when it last changed.

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


class Claimed(NamedTuple):
    """Result of claiming a slot.

    `mine`: this call claimed it. `after_me`: the same owner claimed the previous one, `previous_slot`; `done` is the last slot
    that was finished. -1 for none.
    """

    mine: bool
    after_me: bool
    previous_slot: int
    done: int


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


class TimeSeriesStore(Protocol):
    """Operations of sampling and of reading samples.

    Every method raises StorageUnavailable or OutcomeUnknown.
    """

    async def claim(self, slot: int, owner: str) -> Claimed:
        """Claim a slot, unless it is claimed."""
        ...

    async def finish(self, slot: int, owner: str) -> bool:
        """Mark the slot as measured; False when another process is further already."""
        ...

    async def sample_queue(
        self, namespace: str, log_id: LogId, now: ScriptTime
    ) -> Sequence[int] | None:
        """Return the counts of a queue as `sample_queue` reports them.

        Empty for a queue that never had a message; None when it is deleted.
        """
        ...

    async def sample_shard(self, log: LogAddress, positions: Sequence[int]) -> HotShard | None:
        """Return the sample of a shard; None for one that was never written, or is deleted."""
        ...

    async def add(self, namespace: str, resource_id: str, added: Sequence[Addition]) -> bool:
        """Append samples; False when a chunk did not exist that should have."""
        ...

    async def keep(
        self, namespace: str, kind: str, samples: Mapping[str, LatestSample], gone: Iterable[str]
    ) -> None:
        """Store these as the last samples, and delete those of the names that no longer exist."""
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
