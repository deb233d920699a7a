"""Bootstrap of a copy task: its connections to the hot store, without the engines.

A process of Spark that copies loads a half of what `storage.bootstrap` loads.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from storage.archive.copy_task import ArchiveCopyTask
from storage.domain.limits import Limits
from storage.parquet.object_store import open_root
from storage.redis.discovery import discover_replica_set
from storage.redis.streams.logs import RedisLogStore
from storage.redis.streams.range_reader import RedisRangeReader
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.primary import ReplicaSetNodes
from storage.redis.transport.topology import Nodes
from storage.settings import StorageSettings

_DEFAULT_LIMITS = Limits()


@asynccontextmanager
async def open_copy_task(settings: StorageSettings) -> AsyncGenerator[ArchiveCopyTask]:
    """Open a copy task with its own connections to the hot store.

    Raises ValueError if the archive's URL is invalid.
    """
    root = open_root(settings.archive_url or "")
    pipeline = _open_pipeline(settings)
    try:
        yield ArchiveCopyTask(
            RedisRangeReader(pipeline), RedisLogStore(pipeline, _DEFAULT_LIMITS), root
        )
    finally:
        await pipeline.close()


def _open_pipeline(settings: StorageSettings) -> Pipeline:
    if not settings.has_replica_set:
        return Pipeline(Nodes(settings.redis_url), _DEFAULT_LIMITS, _nothing)
    nodes = ReplicaSetNodes(settings.redis_url)

    async def use_primary() -> int:
        replica_set = await asyncio.to_thread(discover_replica_set, settings.redis_url)
        nodes.use(replica_set)
        return replica_set.epoch

    return Pipeline(nodes, _DEFAULT_LIMITS, use_primary)


async def _nothing() -> None:
    """Do nothing on connect: a process that only reads need not know the store's epoch."""
