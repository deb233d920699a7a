"""Bootstrap of a copy task: its connections to the hot store, without the engines.

A process of Spark that copies loads a half of what `storage.bootstrap` loads.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from storage.archive.copy_task import ArchiveCopyTask
from storage.domain.limits import Limits
from storage.parquet.object_store import open_root
from storage.redis.streams.logs import RedisLogStore
from storage.redis.streams.range_reader import RedisRangeReader
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.topology import Nodes
from storage.settings import StorageSettings

_DEFAULT_LIMITS = Limits()


@asynccontextmanager
async def open_copy_task(settings: StorageSettings) -> AsyncGenerator[ArchiveCopyTask]:
    """Open a copy task with its own connections to the hot store.

    Raises ValueError if the archive's URL is invalid.
    """
    root = open_root(settings.archive_url or "")
    pipeline = Pipeline(Nodes(settings.redis_url), _DEFAULT_LIMITS, _nothing)
    try:
        yield ArchiveCopyTask(
            RedisRangeReader(pipeline), RedisLogStore(pipeline, _DEFAULT_LIMITS), root
        )
    finally:
        await pipeline.close()


async def _nothing() -> None:
    """Do nothing on connect: a process that only reads need not know the store's epoch."""
