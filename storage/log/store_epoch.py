"""Store epoch: the fencing epoch of the hot store, decided in Postgres."""

import asyncio

from storage.domain.log.store_epoch import StoreIdentity, lossless_since, needs_new_epoch
from storage.hot_store.servers import HotServers
from storage.postgres.repositories.offset_reservations import (
    StoreIdentities,
)


class StoreEpoch:
    """The fencing epoch sent with this process's appends.

    It is decided in Postgres whenever the store was away. `is_replicated`: by the engine, before it acknowledges.
    """

    def __init__(
        self, store: HotServers, identities: StoreIdentities, *, is_replicated: bool = False
    ) -> None:
        self._store = store
        self._identities = identities
        self._is_replicated = is_replicated
        self._run_id = ""
        self._deciding = asyncio.Lock()
        self.current = 0

    async def check(self) -> int:
        """Check the server's identity before a new connection is used; return the current epoch.

        Another run id means that the server process was restarted or replaced.
        """
        run_id = await self._store.run_id()
        async with self._deciding:
            if run_id != self._run_id:
                await self._store.check_layout()
                await self._decide()
                self._run_id = run_id
            return self.current

    async def refresh(self, at_least: int) -> None:
        """Read the epoch again, after another process has a newer one."""
        async with self._deciding:
            self.current = (await self._identities.read()).epoch
            if self.current < at_least:
                await self._decide()

    async def _decide(self) -> None:
        async with self._identities.decide() as decision:
            remembered = decision.remembered
            facts = await self._store.facts(remembered)
            epoch = remembered.epoch
            if needs_new_epoch(remembered, facts):
                epoch = max(remembered.epoch, facts.epoch) + 1
                await self._store.write_epoch(epoch, max(remembered.beacon, facts.beacon))
            beacon = max(remembered.beacon, facts.beacon)
            since = lossless_since(remembered, facts, epoch, is_replicated=self._is_replicated)
            await decision.remember(StoreIdentity(epoch, facts.replid, beacon, since))
        self.current = epoch
