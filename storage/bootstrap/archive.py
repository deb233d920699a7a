"""Assembly of the archive."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from storage.archive.admin import ArchiveAdmin
from storage.archive.commit import ArchiveCommitter
from storage.archive.garbage_collection import ArchiveGarbageCollector
from storage.archive.manifest_cache import ManifestCache
from storage.archive.planner import ArchivePlanner
from storage.archive.tiered_reader import TieredReader
from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain.clock import Clock
from storage.domain.limits import Limits
from storage.jobs import Jobs
from storage.parquet.cache import ArchiveCache
from storage.parquet.object_store import Root
from storage.postgres.database import Database
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.postgres.repositories.manifest_reads import ManifestRows
from storage.postgres.repositories.staged_writes import WriteRows
from storage.redis.streams.logs import RedisLogStore
from storage.streams.engine import Streams
from storage.streams.staged_writes import StagedWrites


class ArchiveEngines(NamedTuple):
    """Planning, commits and deletions of the archive."""

    admin: ArchiveAdmin
    planner: ArchivePlanner
    committer: ArchiveCommitter
    garbage_collector: ArchiveGarbageCollector | None
    staged_writes: StagedWrites


def build_archive(
    *,
    root: Root | None,
    database: Database,
    rows: ArchiveRows,
    logs: RedisLogStore,
    trimmer: HotTrimmer,
    streams: Streams,
    catalog: Catalog,
    jobs: Jobs,
    isolation: Isolation,
    clock: Clock,
) -> ArchiveEngines:
    """Build the engines of the archive at `root`; without one, nothing is collected."""
    writes = WriteRows(database)
    return ArchiveEngines(
        admin=ArchiveAdmin(rows, logs, catalog, jobs, clock, on=root is not None),
        planner=ArchivePlanner(
            rows=rows, hot=logs, catalog=catalog, jobs=jobs, clock=clock, isolation=isolation
        ),
        committer=ArchiveCommitter(rows, catalog, jobs, trimmer, clock),
        garbage_collector=ArchiveGarbageCollector(
            rows=rows,
            writes=writes,
            root=root,
            hot=logs,
            catalog=catalog,
            clock=clock,
            isolation=isolation,
        )
        if root
        else None,
        staged_writes=StagedWrites(
            rows=writes,
            root=root,
            catalog=catalog,
            streams=streams,
            clock=clock,
            isolation=isolation,
        ),
    )


@asynccontextmanager
async def open_tiered_reader(
    root: Root | None, database: Database, rows: ArchiveRows, clock: Clock, limits: Limits
) -> AsyncGenerator[TieredReader | None]:
    """Open the reader of the archive at `root`, if there is one."""
    if root is None:
        yield None
        return
    manifest, cache = ManifestCache(ManifestRows(database), clock), ArchiveCache(root, limits)
    try:
        yield TieredReader(manifest, rows, cache)
    finally:
        await manifest.close()
        await cache.close()
