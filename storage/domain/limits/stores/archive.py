"""Limits of the archive."""

from storage.domain.limits._shared import DAY_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Archive
HOT_RETENTION_MS_DEFAULT = DAY_MS  # the lag of most readers is lower
HOT_BYTES_MAX_DEFAULT = 1024 * MIB  # per shard
HOT_BYTES_MIN = MIB
ARCHIVE_LAG_MS_DEFAULT = 5 * MINUTE_MS
ARCHIVE_LAG_MS_MIN = SECOND_MS
ARCHIVE_LAG_MS_MAX = DAY_MS
ARCHIVE_FILE_BYTES = 128 * MIB  # of records, before compression
ARCHIVE_FILE_RECORDS = 1_000_000
ARCHIVE_ROW_GROUP_BYTES = 16 * MIB  # what a read of one record decodes
RANGE_RECORDS_MAX = 10_000  # per bulk read of a log: about 20 ms of the hot store at worst
RANGE_BYTES_MAX = 4 * MIB
ARCHIVE_BUDGET_PARTS = (
    8  # of a hot budget: a log is due at a quarter of its maximum of unarchived bytes
)
ARCHIVE_RANGES_PER_JOB = 2_000
ARCHIVE_RANGE_RECORDS = ARCHIVE_FILE_RECORDS  # archived by one task
ARCHIVE_RANGES_PER_LOG = (
    32  # per job, so that a log with a large backlog does not hold up the others
)
ARCHIVE_JOBS_PER_NAMESPACE = 4  # at the same time; a stream is always archived by the same one
ARCHIVE_COPY_CONCURRENCY_MAX = (
    4  # ranges that one task copies concurrently: each holds some row groups in memory
)
ARCHIVE_MEASURE_CONCURRENCY_MAX = 50  # measured concurrently
ARCHIVE_DELETIONS_PER_ROUND = 1_000
COMPACT_BELOW_BYTES = 32 * MIB
COMPACT_FILES_MIN = 4
COMPACT_AFTER_MS = 10 * MINUTE_MS  # after the end of an hour
READER_GRACE_MS = DAY_MS  # a replaced file is kept this long, for readers whose plan contains it
ORPHAN_AGE_MS = DAY_MS  # a file that was never committed is deleted after this
STAGED_PARTS_MAX = 10_000  # per commit: 80 GB in parts of the size that the Spark sink writes
COMMIT_CALL_MS = (
    5 * SECOND_MS
)  # how long one call appends parts of a commit; then it is called again
COMMIT_ABANDONED_MS = (
    MINUTE_MS  # a commit abandoned by its writer is finished by a maintenance task after this
)
WRITE_RETENTION_MS = 30 * DAY_MS  # a batch that is repeated after this would be appended again
ARCHIVE_READERS = 4  # threads per process that fetch and decode
ARCHIVE_LOADS_MAX = 64  # row groups and footers being loaded or waiting; beyond it, calls get 503
ARCHIVE_CACHE_BYTES = 128 * MIB  # decoded row groups, per process
ARCHIVE_GROUP_BYTES = (
    16 * KIB
)  # overhead of each beside its records: otherwise small ones would be too many
ARCHIVE_FOOTERS_BYTES = 32 * MIB  # footers of files, per process
ARCHIVE_PLANS_MAX = 10_000  # shards whose next files a process caches
ARCHIVE_PLAN_FILES = 100  # files that are planned ahead
ARCHIVE_PLAN_MS = 10 * MINUTE_MS  # far below READER_GRACE_MS
ARCHIVE_EXTENT_MS = SECOND_MS  # maximum age of the cached extent of an archive
ARCHIVE_EXTENT_WAIT_MS = 500  # how long a hot read waits, once, for the archive's first offset
ARCHIVE_SCAN_POSITIONS_MAX = (
    10_000  # positions where a read ended, from which another one may continue
)
