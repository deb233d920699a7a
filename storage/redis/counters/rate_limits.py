"""Quota state shared by processes: leased rates, and connection slots."""

import secrets
from collections.abc import Mapping

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.hot_store.rates import Granted, LeaseRequest, RateStore
from storage.redis.keys import rate_key, slots_key
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline


class RedisRateStore(RateStore):
    """Rate verbs as one script each."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._process = secrets.token_hex(8)

    async def lease(
        self, namespace: str, bucket: str, requests: Mapping[str, LeaseRequest], now: ScriptTime
    ) -> dict[str, Granted]:
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
