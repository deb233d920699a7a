"""Fencing tokens of a topic's logs, which name the version of its route table."""

import asyncio
from collections.abc import Sequence

import attrs

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import FenceMismatch, ShardClosed, StorageBusy
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId, TopicName
from storage.domain.streams.stream import Shard, Stream
from storage.domain.topics.topic import fence_of, version_of
from storage.hot_store.log_store import LogStore
from storage.log.provisioner import LogProvisioner
from storage.postgres.repositories.routes import LockedRoutes, RouteRows


@attrs.define(eq=False, slots=False, kw_only=True)
class RouteFences:
    """Writer of the fencing tokens of topics' logs.

    A token only rises, so that one on its way for long changes nothing. Children inherit that of a parent that is being closed:
    parents are set before their children, so that a reshard at the same time passes on either this token, or an earlier one
    that the children refuse.
    """

    _hot: LogStore
    _provisioner: LogProvisioner
    _catalog: Catalog
    _rows: RouteRows
    _slots: asyncio.Semaphore = attrs.field(
        factory=lambda: asyncio.Semaphore(limits.ROUTE_LOG_CONCURRENCY_MAX), init=False
    )

    async def advance(self, routes: LockedRoutes, stream: Stream) -> dict[int, int]:
        """Begin a version of the locked table on every log; return each shard's next offset.

        A message accepted before has a lower offset, and one accepted later was matched with this version. It is above those of
        changes that were rolled back, and of a database that was restored.
        """
        return await self._set_from(routes, stream, routes.version + 1)

    async def repair(self, topic: TopicName, stream_id: LogId) -> None:
        """Set the present version's token on every log again; does nothing without the topic.

        Where a log has a higher one, a later version begins.
        """
        async with self._rows.repairing(topic, stream_id) as routes:
            if routes is not None:
                stream = await self._catalog.fresh_stream(topic.stream, stream_id)
                await self._set_from(routes, stream, routes.version)

    async def _set_from(self, routes: LockedRoutes, stream: Stream, version: int) -> dict[int, int]:
        for _ in range(limits.STALE_ROUTES_RETRIES_MAX):
            try:
                offsets = await self._set(stream, fence_of(version))
            except FenceMismatch as mismatch:
                version = max(version, version_of(mismatch.token)) + 1
            else:
                await routes.advance(version)
                return offsets
        raise StorageBusy("The topic's shards are changing; try again.")

    async def _set(self, stream: Stream, fence: str) -> dict[int, int]:
        parents = await self._set_each(stream, stream.open_shards, fence)
        children = await self._set_each(stream, stream.opening, fence)
        return parents | children

    async def _set_each(
        self, stream: Stream, shards: Sequence[Shard], fence: str
    ) -> dict[int, int]:
        offsets = await asyncio.gather(*(self._set_one(stream, shard, fence) for shard in shards))
        return {
            shard.index: offset
            for shard, offset in zip(shards, offsets, strict=True)
            if offset is not None
        }

    async def _set_one(self, stream: Stream, shard: Shard, fence: str) -> int | None:
        log = LogAddress(stream.name.namespace, shard.log_id)

        async def set_fence() -> int:
            return await self._hot.set_fence(log, fence, None, self._provisioner.store_epoch)

        async with self._slots:
            try:
                return await self._provisioner.with_repair(log, set_fence)
            except ShardClosed:
                return None
