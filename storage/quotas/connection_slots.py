"""Connection slots: how many connections a namespace may have, over all processes.

Each process publishes its number, and renews it every ten seconds: the slots of a killed process are free after
thirty.
"""

import asyncio
import logging

from storage.catalog.namespaces import Namespaces
from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import OutcomeUnknown, QuotaExceeded, StorageUnavailable
from storage.hot_store.rates import RateStore

logger = logging.getLogger(__name__)

_RETRY_AFTER_S = 5  # a connection may close by then


class ConnectionSlots:
    """The connections of this process, by namespace."""

    def __init__(self, hot: RateStore, namespaces: Namespaces, clock: Clock) -> None:
        self._hot = hot
        self._namespaces = namespaces
        self._clock = clock
        self._acquired: dict[str, int] = {}
        self._published: set[str] = set()  # namespaces in which this process has published a number
        self._changed = asyncio.Event()
        self.refused: dict[str, int] = {}
        """Number of connections rejected since the last collection."""

    async def acquire(self, namespace: str) -> None:
        """Acquire a slot, to be released with `release`.

        Raises QuotaExceeded, NamespaceNotFound, StorageUnavailable.
        """
        slots_max = (await self._namespaces.find(namespace)).quotas.connections_max
        self._acquired[namespace] = self._acquired.get(namespace, 0) + 1
        if slots_max is None:
            return
        try:
            granted = await self._publish(namespace, slots_max)
        except BaseException:
            self.release(namespace)
            raise
        if not granted:
            self.release(namespace)
            self.refused["connections"] = self.refused.get("connections", 0) + 1
            raise QuotaExceeded(
                f"The namespace has reached its limit of {slots_max} concurrent connections.",
                policy="connections",
                limit=slots_max,
                retry_after_seconds=_RETRY_AFTER_S,
            )

    def release(self, namespace: str) -> None:
        """Release the slot of a closed connection; other processes see it a moment later."""
        left = self._acquired[namespace] - 1
        if left:
            self._acquired[namespace] = left
        else:
            del self._acquired[namespace]
        self._changed.set()

    async def publish(self) -> None:
        """Publish this process's connections, where they are limited or were published before."""
        limited = [name for name in self._acquired if self._is_limited(name)]
        for name in {*limited, *self._published}:
            await self._publish(name, None)
            if name not in self._acquired:
                self._published.discard(name)

    async def publish_loop(self) -> None:
        """Publish when slots are released, and every ten seconds, until cancelled."""
        interval_s = limits.CONNECTION_SLOTS_PUBLISH_MS / limits.SECOND_MS
        await periodic(interval_s, self.publish, "connection slots", wake=self._changed)

    async def _publish(self, namespace: str, slots_max: int | None) -> bool:
        self._published.add(namespace)
        slots = self._acquired.get(namespace, 0)
        try:
            return await self._hot.publish_slots(
                namespace, slots, slots_max, self._clock.script_time()
            )
        except OutcomeUnknown:  # it is published again
            raise StorageUnavailable("The store timed out.") from None

    def _is_limited(self, namespace: str) -> bool:
        definition = self._namespaces.table.get(namespace)
        return definition is not None and definition.quotas.connections_max is not None
