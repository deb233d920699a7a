"""Verbs of rates shared by processes: leased token buckets, connection slots, paces."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from storage.domain.clock import ScriptTime
from storage.domain.replays.pacing import Pacing


class LeaseRequest(NamedTuple):
    """A process's request for units of one measure.

    `unit_us` is the cost of a unit and `holds_us` the capacity of the bucket; `units` are requested, and none are
    granted if fewer than `least` are available.
    """

    unit_us: float
    holds_us: float
    least: int
    units: int


class Granted(NamedTuple):
    """Granted units, and the bucket's debt afterwards."""

    units: int
    debt_us: float


class RateStore(Protocol):
    """Token buckets by name, and connection slots by namespace.

    Every method raises StorageUnavailable, and may be repeated.
    """

    async def lease(
        self, namespace: str, bucket: str, requests: Mapping[str, LeaseRequest], now: ScriptTime
    ) -> dict[str, Granted]:
        """Lease as many of the requested units as the bucket has, by measure."""
        ...

    async def publish_slots(
        self, namespace: str, slots: int, slots_max: int | None, now: ScriptTime
    ) -> bool:
        """Publish the number of this process's connection slots.

        False when the total would exceed `slots_max`; then nothing changed.
        """
        ...


class PaceStore(Protocol):
    """Reservations on shared rates, by name."""

    async def reserve(
        self, namespace: str, name: str, pacing: Pacing, records: int, size_bytes: int
    ) -> int:
        """Reserve time for these records and bytes; return the delay before they are sent, in ms."""
        ...
