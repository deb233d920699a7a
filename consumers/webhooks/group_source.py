"""Delivery of a consumer group's records: the webhook is one member of its group.

The member has the webhook's name, whichever deliverer serves it. A deliverer that takes a webhook over joins again as that
member, which fences its predecessor immediately; the shards assigned to it are delivered in parallel, each in its order.
"""

import asyncio
from contextlib import suppress

from consumers.webhooks.endpoint import Endpoint
from consumers.webhooks.shard_source import MemberGeneration, ShardSource
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import (
    MemberUnknown,
    MillstreamError,
    StaleGeneration,
)
from storage.domain.groups.group import Membership
from storage.domain.names import GroupName


class GroupSource:
    """Delivery of one group's shards to one receiver."""

    def __init__(self, endpoint: Endpoint, storage: Storage) -> None:
        self._endpoint = endpoint
        self._storage = storage
        webhook = endpoint.webhook
        self._group = GroupName(webhook.spec.source.name, webhook.name.namespace)
        self._mine = MemberGeneration(self._group, f"webhook.{webhook.webhook_id}")
        self._sources: dict[int, ShardSource] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Deliver until cancelled, then leave the group.

        Raises StaleGeneration once a later instance of the member has joined.
        """
        try:
            while True:
                try:
                    await self._be_a_member()
                except (MemberUnknown, MillstreamError) as error:
                    if isinstance(error, StaleGeneration):
                        raise
                    self._endpoint.report_source_error(error.detail)
                    await self._wind_up()
                    await asyncio.sleep(limits.WEBHOOK_SOURCE_RETRY_MS / limits.SECOND_MS)
        except asyncio.CancelledError:
            await self._wind_up()
            await self._leave()
            raise
        finally:
            await self._wind_up()

    async def _be_a_member(self) -> None:
        membership = await self.join()
        while True:
            await self._run_tasks()
            await asyncio.sleep(membership.group.spec.heartbeat_ms / limits.SECOND_MS)
            membership = await self.heartbeat()

    async def join(self) -> Membership:
        """Become the member, and start with the assigned shards.

        Raises GroupNotFound, GroupFull.
        """
        membership = await self._storage.groups.join(self._group, member_id=self._mine.member_id)
        await self._arrange(membership)
        return membership

    async def heartbeat(self) -> Membership:
        """Send a heartbeat, and start and stop shards as assigned.

        Raises MemberUnknown, StaleGeneration.
        """
        membership = await self._storage.groups.heartbeat(
            self._group,
            self._mine.member_id,
            generation=self._mine.generation,
            owned=set(self._sources),
        )
        await self._arrange(membership)
        return membership

    async def _arrange(self, membership: Membership) -> None:
        self._mine.generation = membership.generation
        self._mine.paused = membership.group.spec.paused
        given = {place.shard: place for place in membership.assigned}
        for shard in [shard for shard in self._sources if shard not in given]:
            self._give_up(shard)
        stream = await self._storage.catalog.fresh_stream(membership.group.stream)
        for shard, place in given.items():
            if shard not in self._sources:
                start = await self._storage.groups.position(membership.group, place)
                self._sources[shard] = ShardSource(
                    endpoint=self._endpoint,
                    storage=self._storage,
                    membership=self._mine,
                    stream=stream,
                    shard=shard,
                    start=start,
                )

    async def round(self) -> int:
        """Advance every shard as far as possible now; return the ms until one can continue."""
        waits = [await self._on(source) for source in list(self._sources.values())]
        for shard in [shard for shard, source in self._sources.items() if source.is_done]:
            del self._sources[shard]
        return min(waits, default=limits.WEBHOOK_COMMIT_MS)

    async def _on(self, source: ShardSource) -> int:
        while not source.is_done:
            if wait_ms := await source.step():
                return wait_ms
        return limits.WEBHOOK_COMMIT_MS

    def _give_up(self, shard: int) -> None:
        """Stop a shard and give it up, after deliveries in flight end and progress is committed."""
        source, task = self._sources[shard], self._tasks.get(shard)
        source.stopping = True
        if task is None:
            del self._sources[shard]
        elif source.is_reading:
            task.cancel()

    async def _run_tasks(self) -> None:
        """Run a task for each shard; restart one that lost its shard, from its commit."""
        for shard, task in list(self._tasks.items()):
            if not task.done():
                continue
            del self._tasks[shard]
            self._sources.pop(shard, None)
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, MillstreamError):
                raise error
            if isinstance(error, MillstreamError):
                self._endpoint.report_source_error(error.detail)
        for shard, source in self._sources.items():
            if shard not in self._tasks:
                self._tasks[shard] = asyncio.create_task(source.run())

    async def _leave(self) -> None:
        """Leave the group, so that other members get the shards immediately.

        The membership of a successor is left alone.
        """
        if self._endpoint.is_mine:
            with suppress(MillstreamError):
                await self._storage.groups.leave(
                    self._group, self._mine.member_id, generation=self._mine.generation
                )

    async def _wind_up(self) -> None:
        """Let deliveries end, for a moment, and commit those that are done."""
        for shard in list(self._sources):
            self._give_up(shard)
        tasks = list(self._tasks.values())
        self._tasks, self._sources = {}, {}
        if tasks:
            await asyncio.wait(tasks, timeout=limits.WEBHOOK_STOP_MS / limits.SECOND_MS)
            await end(*tasks)
            await asyncio.gather(*tasks, return_exceptions=True)
