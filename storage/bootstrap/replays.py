"""Assembly of the replays."""

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain.clock import Clock
from storage.groups.engine import Groups
from storage.jobs import Jobs
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.queues.engine import Queues
from storage.redis.counters.shared_rate import RedisPaceStore
from storage.redis.transport.pipeline import Pipeline
from storage.replays.engine import Replays
from storage.replays.planner import ReplayPlanner
from storage.replays.window import WindowResolver
from storage.streams.arrow_reader import ArrowReader
from storage.streams.engine import Streams
from storage.streams.read import RecordReader


def build_replays(
    *,
    pipeline: Pipeline,
    archive_rows: ArchiveRows,
    catalog: Catalog,
    queues: Queues,
    streams: Streams,
    reader: RecordReader,
    column_reader: ArrowReader,
    groups: Groups,
    jobs: Jobs,
    isolation: Isolation,
    clock: Clock,
) -> Replays:
    """Build the replays of streams into streams and queues."""
    windows = WindowResolver(reader, groups, catalog)
    return Replays(
        windows=windows,
        planning=ReplayPlanner(reader, windows, archive_rows),
        streams=streams,
        reader=reader,
        column_reader=column_reader,
        queues=queues,
        groups=groups,
        jobs=jobs,
        shared_rate=RedisPaceStore(pipeline),
        clock=clock,
        isolation=isolation,
    )
