"""Archiving without Spark: the worker's steps in the test process, and their results."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.copy_task_bootstrap import open_copy_task
from storage.domain.archive import ArchivedFile, CopyResult, LogRange
from storage.domain.jobs import Job, JobKind
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.parquet.file_reader import read_group, verify_file
from storage.parquet.object_store import Root
from storage.parquet.record_schema import records_of
from storage.settings import StorageSettings

WITHOUT_BACKOFF = replace(Limits(), job_backoff_ms=0)
"""Limits without back-off: a failed job is retried immediately."""

Meanwhile = Callable[[Sequence[CopyResult]], Sequence[CopyResult]]


async def archive_stream(
    storage: Storage,
    settings: StorageSettings,
    name: StreamName,
    *,
    meanwhile: Meanwhile = lambda copied: copied,
) -> Job:
    """Archive everything in a stream, and return the job.

    `meanwhile` may change what was copied before it is committed.
    """
    asked = await storage.archive_admin.flush(name)
    claimed = await storage.jobs.claim("test", [JobKind.ARCHIVE])
    assert claimed is not None
    assert claimed.job_id == asked.job_id
    copied = await copy_ranges(
        settings, await storage.archive_planner.due(name.namespace, stream=name.name)
    )
    await storage.archive_committer.commit(claimed.claim, meanwhile(copied))
    return await storage.jobs.get(asked.job_id)


async def copy_ranges(settings: StorageSettings, ranges: Sequence[LogRange]) -> list[CopyResult]:
    """Copy ranges, as a task does."""
    async with open_copy_task(settings) as copying:
        return await copying.copy(ranges)


def numbered_records(first: int, count: int) -> list[Record]:
    """Numbered records with seven keys."""
    return [Record(b"%d" % number, key=f"k{number % 7}") for number in range(first, first + count)]


async def archived_files(storage: Storage, name: StreamName, shard: int = 0) -> list[ArchivedFile]:
    """The files of a shard, in order."""
    stream = await storage.catalog.stream(name)
    return await storage.archive_admin.files(stream, shard, after=-1, limit=1_000)


def archived_bodies(root: Root, files: Iterable[ArchivedFile]) -> list[bytes]:
    """Bodies of all records in the files, which are verified."""
    data = []
    for file in files:
        footer = verify_file(root, file.path, file.file_bytes, file.digest)
        for number in range(len(footer.facts.groups)):
            data += [record.record.data for record in records_of(read_group(root, footer, number))]
    return data
