"""Assembly of the streams."""

from typing import NamedTuple

from storage.archive.tiered_reader import TieredReader
from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.domain.clock import Clock
from storage.hot_store.wakeups import Wakeups
from storage.log.gap_reasons import GapReasons
from storage.log.provisioner import LogProvisioner
from storage.log.stream_executor import StreamExecutor
from storage.postgres.database import Database
from storage.quotas.memory_guard import MemoryGuard
from storage.redis.streams.idempotence import RedisWatermarkStore
from storage.redis.streams.logs import RedisLogStore
from storage.redis.streams.range_reader import RedisRangeReader
from storage.redis.transport.pipeline import Pipeline
from storage.streams.append import Appender
from storage.streams.arrow_reader import ArrowReader
from storage.streams.columnar_append import ColumnarAppender
from storage.streams.engine import Streams
from storage.streams.idempotent_append import IdempotentAppender
from storage.streams.read import RecordReader
from storage.streams.reshard import Resharder
from storage.streams.shard_loads import ShardLoads


class StreamEngines(NamedTuple):
    """Streams, and their readers."""

    streams: Streams
    record_reader: RecordReader
    arrow_reader: ArrowReader
    shard_loads: ShardLoads


def build_streams(
    *,
    pipeline: Pipeline,
    logs: RedisLogStore,
    watermarks: RedisWatermarkStore,
    database: Database,
    catalog: Catalog,
    provisioner: LogProvisioner,
    executor: StreamExecutor,
    trimmer: HotTrimmer,
    archive: TieredReader | None,
    wakeups: Wakeups,
    memory_guard: MemoryGuard,
    gap_reasons: GapReasons,
    clock: Clock,
) -> StreamEngines:
    """Build the engines that append to the shards of streams, and read them."""
    resharder = Resharder(logs, catalog, provisioner, database)
    record_reader = RecordReader(
        hot=logs,
        executor=executor,
        resharder=resharder,
        wakeups=wakeups,
        clock=clock,
        archive=archive,
        gap_reasons=gap_reasons,
    )
    appender = Appender(
        hot=logs,
        executor=executor,
        provisioner=provisioner,
        resharder=resharder,
        clock=clock,
        memory_guard=memory_guard,
    )
    streams = Streams(
        hot=logs,
        executor=executor,
        catalog=catalog,
        provisioner=provisioner,
        trimmer=trimmer,
        clock=clock,
        archive=archive,
        resharder=resharder,
        appender=appender,
        columnar_appender=ColumnarAppender(appender, executor),
        idempotent_appender=IdempotentAppender(watermarks, appender, executor, resharder, clock),
    )
    return StreamEngines(
        streams=streams,
        record_reader=record_reader,
        arrow_reader=ArrowReader(RedisRangeReader(pipeline), executor, archive, gap_reasons),
        shard_loads=ShardLoads(record_reader, executor, clock),
    )
