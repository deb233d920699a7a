"""Archiving without Spark: the worker's steps, one after another, in the test's own process."""

from collections.abc import Callable, Sequence

from storage.copying import open_copying
from storage.domain.archive import Copied, LogRange
from storage.domain.jobs import Job, JobKind
from storage.domain.names import StreamName
from storage.lifespan import Storage
from storage.settings import StorageSettings

Meanwhile = Callable[[Sequence[Copied]], Sequence[Copied]]


async def archive(
    storage: Storage,
    settings: StorageSettings,
    name: StreamName,
    *,
    meanwhile: Meanwhile = lambda copied: copied,
) -> Job:
    """Archive all there is of a stream; the job, which is done if nothing failed. `meanwhile` may change what was copied before it is
    committed."""
    asked = await storage.archives.flush(name)
    claimed = await storage.jobs.claim("test", [JobKind.ARCHIVE])
    assert claimed is not None
    assert claimed.job_id == asked.job_id
    copied = await copy(settings, await storage.archiving.due(name.namespace, stream=name.name))
    await storage.archiving.commit(claimed.claim, meanwhile(copied))
    return await storage.jobs.get(asked.job_id)


async def copy(settings: StorageSettings, ranges: Sequence[LogRange]) -> list[Copied]:
    """What a task makes of ranges."""
    async with open_copying(settings) as copying:
        return await copying.copy(ranges)
