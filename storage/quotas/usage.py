"""Storage usage of namespaces in the hot store, for quotas of stored bytes."""

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.log.address import LogAddress
from storage.domain.names import ROUTE_PREFIX, TOPIC_PREFIX
from storage.domain.queues.queue import Queue
from storage.domain.quotas import Namespace
from storage.domain.streams.stream import Stream
from storage.hot_store.log_store import LogStore


@attrs.define(eq=False, slots=False)
class StorageUsage:
    """Maintenance task that measures the namespaces whose stored bytes are limited.

    A namespace that is over its limit is marked so.
    """

    _logs: LogStore
    _catalog: Catalog
    _isolation: Isolation

    async def measure_all(self) -> int:
        """Measure every namespace that has a limit; return their number."""
        await self._catalog.namespaces.read_again()
        limited = [
            namespace
            for namespace in self._catalog.namespaces.table.values()
            if namespace.quotas.stored_bytes_max is not None
        ]
        for namespace in limited:
            subject = f"namespaces/{namespace.name}"
            await self._isolation.visit("weights", subject, partial(self._update, namespace), None)
        return len(limited)

    async def _update(self, namespace: Namespace) -> None:
        await self._catalog.namespaces.weigh(namespace, await self.measure(namespace))

    async def measure(self, namespace: Namespace) -> int:
        """Return the log bytes of all its queues and streams, dead letters and views included."""
        total = 0
        for prefix in ("", ROUTE_PREFIX):
            total += await self._measure_queues(namespace.name, prefix)
        for prefix in ("", TOPIC_PREFIX):
            total += await self._measure_streams(namespace.name, prefix)
        return total

    async def _measure_queues(self, namespace: str, prefix: str) -> int:
        total = 0
        after = ""
        while page := await self._catalog.list_queues(
            namespace, prefix=prefix, after=after, limit=limits.PAGE_ITEMS_MAX
        ):
            total += await self._sum(address for queue in page for address in _logs_of_queue(queue))
            after = page[-1].name.name
        return total

    async def _measure_streams(self, namespace: str, prefix: str) -> int:
        total = 0
        after = ""
        while streams := await self._catalog.list_streams(
            namespace, prefix=prefix, after=after, limit=limits.PAGE_ITEMS_MAX
        ):
            total += await self._sum(
                address for stream in streams for address in _logs_of_stream(stream)
            )
            after = streams[-1].name.name
        return total

    async def _sum(self, addresses: Iterable[LogAddress]) -> int:
        batch: list[LogAddress] = []
        total = 0
        for address in addresses:
            batch.append(address)
            if len(batch) == limits.USAGE_MEASURE_CONCURRENCY_MAX:
                total += sum(await asyncio.gather(*map(self._logs.weigh, batch)))
                batch = []
        return total + sum(await asyncio.gather(*map(self._logs.weigh, batch)))


def _logs_of_queue(queue: Queue) -> Iterator[LogAddress]:
    for log in queue.logs:
        yield LogAddress(queue.name.namespace, log.log_id)
        if queue.spec.stream_view:
            yield LogAddress(queue.name.namespace, log.log_id, is_view=True)


def _logs_of_stream(stream: Stream) -> Iterator[LogAddress]:
    for shard in (*stream.shards, *stream.opening):
        yield LogAddress(stream.name.namespace, shard.log_id)
