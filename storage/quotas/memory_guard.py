"""Admission control: shed writes above a store's memory limit or a namespace's quota.

                     85 % of maxmemory
    writes pass ───────────────────────▶ BacklogFull for every write
                ◀───────────────────────
                      below 80 %

Calls that add nothing continue: receives, settlements, reads, deletions, and moves, which free as much as they add.
They need some memory as well, and the last part of it is reserved for them. A store without maxmemory is not watched.
"""

import logging

from storage.catalog.namespaces import Namespaces
from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.errors import BacklogFull, QuotaExceeded
from storage.hot_store.servers import HotServers

logger = logging.getLogger(__name__)


def is_full(was_full: bool, used_bytes: int, most_bytes: int) -> bool:
    """Return whether a store is too full for writes; it stays so until it is well below."""
    if not most_bytes:
        return False
    share = limits.GUARD_ACCEPT_BELOW if was_full else limits.GUARD_SHED_ABOVE
    return used_bytes >= share * most_bytes


class MemoryGuard:
    """Guard that rejects writes to a store or a namespace that is full.

    `is_shedding`: there is something to reject.
    """

    def __init__(self, store: HotServers, namespaces: Namespaces) -> None:
        self._store = store
        self._namespaces = namespaces
        self._over: frozenset[str] = frozenset()
        self._used_bytes = 0
        self.full = False
        self.is_shedding = False
        self.refused: dict[str, int] = {}
        """Number of writes rejected since the last collection, by kind of limit."""
        namespaces.on_change.append(self._namespaces_changed)
        self._namespaces_changed()

    def check(self, namespace: str) -> None:
        """Raise BacklogFull or QuotaExceeded if nothing may be added to the namespace.

        To be called if `is_shedding`.
        """
        if self.full:
            self.refused["memory"] = self.refused.get("memory", 0) + 1
            raise BacklogFull(retry_after_seconds=limits.GUARD_RETRY_S)
        if namespace in self._over:
            self.refused["stored_bytes"] = self.refused.get("stored_bytes", 0) + 1
            most = self._namespaces.table[namespace].quotas.stored_bytes_max
            raise QuotaExceeded(
                f"The namespace exceeds its limit of {most} stored bytes. Writes are rejected until it is below the limit.",
                policy="stored_bytes",
                limit=most,
                retry_after_seconds=limits.STORED_BYTES_RETRY_S,
            )

    async def refresh(self) -> bool:
        """Check how full the store is; return whether it must be checked again soon.

        That is while its memory changes, or while it is nearly half full. Raises StorageUnavailable.
        """
        used_bytes, most_bytes = await self._store.memory()
        changed_bytes, self._used_bytes = abs(used_bytes - self._used_bytes), used_bytes
        full = is_full(self.full, used_bytes, most_bytes)
        if full is not self.full:
            state = "shedding" if full else "accepting"
            facts = {"state": state, "used_bytes": used_bytes, "limit_bytes": most_bytes}
            logger.warning("memory_guard_changed", extra=facts)
        self.full = full
        self._evaluate()
        return changed_bytes > limits.GUARD_CHANGE_BYTES or 2 * used_bytes >= most_bytes > 0

    async def refresh_loop(self) -> None:
        """Check the store every second, or less often while it is idle, until cancelled.

        The last result stands while the store does not answer.
        """
        await periodic(
            limits.GUARD_POLL_MS / limits.SECOND_MS,
            self.refresh,
            "memory guard",
            idle_s=limits.GUARD_IDLE_POLL_MS / limits.SECOND_MS,
        )

    def _namespaces_changed(self) -> None:
        table = self._namespaces.table
        self._over = frozenset(
            name for name, namespace in table.items() if namespace.over_storage_quota
        )
        self._evaluate()

    def _evaluate(self) -> None:
        self.is_shedding = self.full or bool(self._over)
