"""What processes share of quotas: rates, of which each takes a little at a time, and places for connections."""

import secrets
from collections.abc import Mapping
from typing import NamedTuple

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.redis.keys import places_key, rate_key
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline


class Wanted(NamedTuple):
    """What a process would like of one measure: what a unit takes and the bucket holds; how many units, and without
    how many it takes none."""

    unit_us: float
    holds_us: float
    least: int
    units: int


class Granted(NamedTuple):
    """What it got, and the debt that there is then."""

    units: int
    debt_us: float


class HotRates:
    """Buckets by name, and places by namespace. Every method raises StorageUnavailable, and may be repeated."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._process = secrets.token_hex(8)

    async def lease(
        self, namespace: str, bucket: str, wanted: Mapping[str, Wanted], now: ScriptTime
    ) -> dict[str, Granted]:
        """Take of the bucket's measures, by name, as much of what is wanted as there is."""
        asked: list[Argument] = []
        for measure, want in wanted.items():
            asked += (measure, repr(want.unit_us), repr(want.holds_us), want.least, want.units)
        reply = await self._pipeline.write("lease_rate", [rate_key(namespace, bucket)], now, *asked)
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return {name: Granted(*pair) for name, pair in zip(wanted, pairs, strict=True)}

    async def hold_places(
        self, namespace: str, places: int, most: int | None, now: ScriptTime
    ) -> bool:
        """Say that this process has so many places; False when all would be more than `most`, and nothing changed."""
        reply = await self._pipeline.write(
            "renew_connection_slots",
            [places_key(namespace)],
            now,
            self._process,
            places,
            limits.PLACES_MS,
            "" if most is None else most,
        )
        return bool(reply[0])
