"""A consumer group's records are delivered: the webhook is one member of its group, whoever serves it.

The member has the webhook's name. A deliverer that takes a webhook over joins anew as that member, which fences
its predecessor at once; shards that it is given are delivered side by side, each in its order.
"""

import asyncio
from collections.abc import Sequence

from consumers.webhooks.endpoint import Endpoint
from consumers.webhooks.shard_source import Membership, ShardSource
from storage.domain import limits
from storage.domain.errors import (
    MemberUnknown,
    MillstreamError,
    StaleGeneration,
)
from storage.domain.groups import Membership as Told
from storage.domain.names import GroupName
from storage.domain.tasks import end
from storage.lifespan import Storage


class GroupSource:
    """Delivers one group's shards to one receiver."""

    def __init__(self, endpoint: Endpoint, storage: Storage) -> None:
        self._endpoint = endpoint
        self._storage = storage
        webhook = endpoint.webhook
        self._group = GroupName(webhook.spec.source.name, webhook.name.namespace)
        self._mine = Membership(self._group, f"webhook.{webhook.webhook_id}")
        self._sources: dict[int, ShardSource] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Deliver until cancelled, or until a later self of the member has joined: StaleGeneration then."""
        try:
            while True:
                try:
                    await self._be_a_member()
                except (MemberUnknown, MillstreamError) as error:
                    if isinstance(error, StaleGeneration):
                        raise
                    self._endpoint.trouble(error.detail)
                    await self._stop(list(self._sources))
                    await asyncio.sleep(limits.WEBHOOK_SOURCE_RETRY_MS / limits.SECOND_MS)
        finally:
            await self._wind_up()

    async def _be_a_member(self) -> None:
        told = await self.join()
        while True:
            await self._run_tasks()
            await asyncio.sleep(told.group.spec.heartbeat_ms / limits.SECOND_MS)
            told = await self.heartbeat()

    async def join(self) -> Told:
        """Become the member, and begin with what it is given. Raises GroupNotFound, GroupFull."""
        told = await self._storage.groups.join(self._group, member_id=self._mine.member_id)
        await self._arrange(told)
        return told

    async def heartbeat(self) -> Told:
        """Say that the member is there, begin and end with shards as it is told. Raises MemberUnknown, StaleGeneration."""
        told = await self._storage.groups.heartbeat(
            self._group,
            self._mine.member_id,
            generation=self._mine.generation,
            owned=set(self._sources),
        )
        await self._arrange(told)
        return told

    async def _arrange(self, told: Told) -> None:
        self._mine.generation = told.generation
        given = {place.shard: place for place in told.assigned}
        await self._stop([shard for shard in self._sources if shard not in given])
        stream = await self._storage.catalog.fresh_stream(told.group.stream)
        for shard, place in given.items():
            if shard not in self._sources:
                start = await self._storage.groups.position(told.group, place)
                self._sources[shard] = ShardSource(
                    self._endpoint, self._storage, self._mine, stream, shard, start
                )

    async def round(self) -> int:
        """Let every shard go on as far as it can now; gives how long until one can go further, in ms."""
        waits = [await self._on(source) for source in list(self._sources.values())]
        for shard in [shard for shard, source in self._sources.items() if source.is_done]:
            del self._sources[shard]
        return min(waits, default=limits.WEBHOOK_COMMIT_MS)

    async def _on(self, source: ShardSource) -> int:
        while not source.is_done:
            if wait_ms := await source.step():
                return wait_ms
        return limits.WEBHOOK_COMMIT_MS

    async def _run_tasks(self) -> None:
        """A task for each shard. One that found its shard to be another's is begun anew from its commit."""
        for shard, task in list(self._tasks.items()):
            if not task.done():
                continue
            del self._tasks[shard]
            self._sources.pop(shard, None)
            error = task.exception()
            if error is not None and not isinstance(error, MillstreamError):
                raise error
            if isinstance(error, MillstreamError):
                self._endpoint.trouble(error.detail)
        for shard, source in self._sources.items():
            if shard not in self._tasks:
                self._tasks[shard] = asyncio.create_task(source.run())

    async def _stop(self, shards: Sequence[int]) -> None:
        """End with shards: what is under way may end, and what is done is committed."""
        for shard in shards:
            self._sources.pop(shard).stopping = True
        tasks = [task for shard in shards if (task := self._tasks.pop(shard, None)) is not None]
        if tasks:
            timeout_ms = self._endpoint.spec.timeout_ms + limits.WEBHOOK_STOP_MS
            await asyncio.wait(tasks, timeout=timeout_ms / limits.SECOND_MS)
            await end(*tasks)
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wind_up(self) -> None:
        tasks = list(self._tasks.values())
        for source in self._sources.values():
            source.stopping = True
        if tasks:
            await asyncio.wait(tasks, timeout=limits.WEBHOOK_STOP_MS / limits.SECOND_MS)
            await end(*tasks)
            await asyncio.gather(*tasks, return_exceptions=True)
