"""Rate shared by many processes: a caller reserves its time slot, and waits for it."""

from storage.domain import limits
from storage.domain.replays.pacing import Pacing
from storage.hot_store.rates import PaceStore
from storage.redis.keys import pace_key
from storage.redis.script_store import ScriptStore

_SECOND_US = 1_000_000


class RedisPaceStore(ScriptStore, PaceStore):
    """Paces as keys that expire by themselves."""

    async def reserve(
        self, namespace: str, name: str, pacing: Pacing, records: int, size_bytes: int
    ) -> int:
        costs: list[str | int] = []
        if pacing.records_per_second is not None:
            costs += ("records", round(records / pacing.records_per_second * _SECOND_US))
        if pacing.bytes_per_second is not None:
            costs += ("bytes", round(size_bytes / pacing.bytes_per_second * _SECOND_US))
        if not costs:
            return 0
        key = pace_key(namespace, name)
        reply = await self._pipeline.write("reserve_pace", [key], limits.HOUR_MS, *costs)
        return int(reply[0])
