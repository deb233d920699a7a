"""Limits of streams."""

from storage.domain.units import DAY_MS, HOUR_MS, MIB, MINUTE_MS

# Streams
READ_RECORDS_MAX = 10_000
READ_BYTES_MAX = 10 * MIB  # as Kinesis GetRecords
SHARDS_MAX = 1_024
ON_DEMAND_SHARD_RECORDS = (
    1_000  # a second, as Kinesis; what a shard of an on-demand stream is meant to carry
)
ON_DEMAND_SHARD_BYTES = 1 * MIB  # a second
ON_DEMAND_HOT = 0.8  # of it: a shard is split before it is full
ON_DEMAND_QUIET = 0.2  # of it: a shard that carried less for so long may be merged
ON_DEMAND_COLD_MS = HOUR_MS
ON_DEMAND_WINDOW_MS = MINUTE_MS  # a shorter burst splits nothing
ON_DEMAND_SHARDS_MAX = 256  # what load alone may open; an owner's reshard goes further
ON_DEMAND_RANGE_MIN = (
    2**128 // 4_096
)  # a narrower shard is not split: one hot key would split for ever
TIDY_KEYS_PER_CALL = 1_000  # of a key index that one call looks at
TRUNCATE_ENTRIES_PER_CALL = 10_000  # freed at once; a sweep frees the rest
RESHARDS_AT_ONCE_MAX = 2  # by one process: each holds a connection to Postgres
RESHARD_LOGS_AT_ONCE = 4  # logs that a reshard makes or closes at one time
CLOSED_SHARD_MS_MIN = DAY_MS  # an empty closed shard stays so long, unless retention is shorter
STREAM_RETENTION_MS_MIN = MINUTE_MS
STREAM_RETENTION_MS_MAX = 3650 * DAY_MS
STREAM_RETENTION_MS_DEFAULT = 7 * DAY_MS

# Streams as Arrow tables
TABLE_BYTES_MAX = 16 * MIB  # of records that go out as one Arrow stream: a row group of the archive
TABLES_AT_ONCE = 4  # in a process: each takes some four times its bytes while it is made
TABLES_WAITING_MAX = 64  # calls that wait for one of these to end; beyond it the caller hears 503
