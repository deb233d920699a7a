"""Quota state shared by processes: leased rates, and connection slots."""

import secrets
from collections.abc import Mapping
from typing import NamedTuple

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.redis.keys import rate_key, slots_key
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline


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


class HotRates:
    """Token buckets by name, and connection slots by namespace.

    Every method raises StorageUnavailable, and may be repeated.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._process = secrets.token_hex(8)

    async def lease(
        self, namespace: str, bucket: str, requests: Mapping[str, LeaseRequest], now: ScriptTime
    ) -> dict[str, Granted]:
        """Lease as many of the requested units as the bucket has, by measure."""
        arguments: list[Argument] = []
        for measure, request in requests.items():
            arguments += (
                measure,
                repr(request.unit_us),
                repr(request.holds_us),
                request.least,
                request.units,
            )
        reply = await self._pipeline.write(
            "lease_rate", [rate_key(namespace, bucket)], now, *arguments
        )
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return {name: Granted(*pair) for name, pair in zip(requests, pairs, strict=True)}

    async def publish_slots(
        self, namespace: str, slots: int, slots_max: int | None, now: ScriptTime
    ) -> bool:
        """Publish the number of this process's connection slots.

        False when the total would exceed `slots_max`; then nothing changed.
        """
        reply = await self._pipeline.write(
            "renew_connection_slots",
            [slots_key(namespace)],
            now,
            self._process,
            slots,
            limits.CONNECTION_SLOTS_TTL_MS,
            "" if slots_max is None else slots_max,
        )
        return bool(reply[0])
