"""Leases of leaders in the hot store, which outlive an outage of Postgres."""

from storage.concurrency.leader_election import LeaderLease
from storage.domain.clock import Clock
from storage.redis.keys import lease_key
from storage.redis.transport.pipeline import Pipeline


class RedisLeaseStore:
    """Leases by name, with a fencing number that rises with each holder."""

    def __init__(self, pipeline: Pipeline, clock: Clock) -> None:
        self._pipeline = pipeline
        self._clock = clock

    async def acquire(self, name: str, holder: str, lease_ms: int) -> LeaderLease:
        """Acquire or renew the lease if it is free; return the lease as it is now."""
        now = self._clock.script_time()
        current, fence, remaining_ms = await self._pipeline.write(
            "acquire_lease", (lease_key(name),), now, holder, lease_ms
        )
        return LeaderLease(current.decode(), fence, remaining_ms)

    async def release(self, name: str, holder: str) -> None:
        """Release the lease if the holder has it."""
        await self._pipeline.write("release_lease", (lease_key(name),), holder)
