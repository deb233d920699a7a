"""Repository of leaders' leases. The time is that of Postgres."""

from sqlalchemy import update
from sqlmodel import col

from storage.concurrency.leader_election import LeaderLease
from storage.domain.clock import Clock
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import LeaseRow


class LeaseRows:
    """Leases by name, with a fencing number that rises with each holder."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def acquire(self, name: str, holder: str, lease_ms: int) -> LeaderLease:
        """Acquire or renew the lease if it is free; return the lease of whoever has it now."""
        parameters = {"name": name, "now_ms": self._now_ms()}
        acquiring = {**parameters, "holder": holder, "lease_ms": lease_ms}
        async with self._database.autocommitting() as session:
            fence = await session.scalar(query("acquire_lease"), acquiring)
            if fence is not None:
                return LeaderLease(holder, fence, lease_ms)
            row = (await session.execute(query("lease_of"), parameters)).one()
            return LeaderLease(row.holder, row.fence, row.remaining_ms)

    async def release(self, name: str, holder: str) -> None:
        """Release the lease if the holder has it."""
        release = (
            update(LeaseRow)
            .where(col(LeaseRow.name) == name, col(LeaseRow.holder) == holder)
            .values(expires_at_ms=0)
        )
        async with self._database.autocommitting() as session:
            await session.execute(release)

    def _now_ms(self) -> int | None:
        """Return the time for the statement, or None to use the time of Postgres."""
        script_time = self._clock.script_time()
        return int(script_time) if script_time else None
