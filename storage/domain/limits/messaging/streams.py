"""Limits of streams."""

from storage.domain.limits._shared import DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Streams
READ_RECORDS_MAX = 10_000
READ_BYTES_MAX = 10 * MIB  # as Kinesis GetRecords
GAP_REASONS_CACHED_MAX = 10_000  # gaps whose reason a process knows
SHARDS_MAX = 1_024
ON_DEMAND_SHARD_RECORDS = (
    1_000  # per second, as Kinesis; the target capacity of an on-demand stream's shard
)
ON_DEMAND_SHARD_BYTES = 1 * MIB  # per second
ON_DEMAND_SPLIT_LOAD = 0.8  # of the capacity: a shard is split before it is full
ON_DEMAND_MERGE_LOAD = (
    0.2  # of the capacity: a shard with a lower load for ON_DEMAND_MERGE_AFTER_MS may be merged
)
ON_DEMAND_MERGE_AFTER_MS = HOUR_MS
ON_DEMAND_WINDOW_MS = MINUTE_MS  # a shorter burst does not cause a split
ON_DEMAND_SHARDS_MAX = 256  # that automatic scaling opens; a manual reshard can exceed it
ON_DEMAND_RANGE_MIN = (
    2**128 // 4_096
)  # a narrower shard is not split: one hot key would cause endless splits
KEY_INDEX_SWEEP_PER_CALL = 1_000  # keys of an index that one call examines
TRUNCATE_ENTRIES_PER_CALL = 10_000  # freed immediately; a maintenance task frees the rest
RESHARD_CONCURRENCY_MAX = 2  # per process: each holds a connection to Postgres
RESHARD_LOG_CONCURRENCY_MAX = 4  # logs that a reshard creates or closes concurrently
CLOSED_SHARD_MS_MIN = DAY_MS  # an empty closed shard is kept this long, unless retention is shorter
STREAM_RETENTION_MS_MIN = MINUTE_MS
STREAM_RETENTION_MS_MAX = 3650 * DAY_MS
STREAM_RETENTION_MS_DEFAULT = 7 * DAY_MS

# Load of shards
SHARD_LOAD_WINDOW_MS = MINUTE_MS
SHARD_LOAD_CACHE_MS = 4 * SECOND_MS
SHARD_LOAD_CONCURRENCY_MAX = 32  # shards whose rate is read concurrently
SHARD_LOAD_SAMPLED_MAX = 16  # of a stream, the busiest
SHARD_LOAD_READS = 10  # of a shard
SHARD_LOAD_READ_RECORDS = 100
SHARD_LOAD_READ_BYTES = 128 * KIB
SHARD_LOAD_KEYS_MAX = 5
SHARD_LOAD_SPLIT_SHARE_MAX = 0.8  # a split that leaves more to one of the children does not help

# Streams as Arrow tables
TABLE_BYTES_MAX = 16 * MIB  # records returned as one Arrow stream: a row group of the archive
ARROW_TABLE_CONCURRENCY_MAX = (
    4  # per process: each needs about four times its size while it is built
)
TABLES_WAITING_MAX = 64  # calls waiting for one of these to finish; beyond it, calls get 503
