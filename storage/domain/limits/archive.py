"""Limits of the archive."""

from storage.domain.units import DAY_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# The archive
HOT_RETENTION_MS_DEFAULT = DAY_MS  # most readers are behind by less
HOT_BYTES_MAX_DEFAULT = 1024 * MIB  # of a shard
HOT_BYTES_MIN = MIB
ARCHIVE_LAG_MS_DEFAULT = 5 * MINUTE_MS
ARCHIVE_LAG_MS_MIN = SECOND_MS
ARCHIVE_LAG_MS_MAX = DAY_MS
ARCHIVE_FILE_BYTES = 128 * MIB  # of records, before compression
ARCHIVE_FILE_RECORDS = 1_000_000
ARCHIVE_ROW_GROUP_BYTES = 16 * MIB  # what a read of one record decodes
RANGE_RECORDS_MAX = 10_000  # of one bulk read of a log: some 20 ms of the hot store at the worst
RANGE_BYTES_MAX = 4 * MIB
ARCHIVE_BUDGET_PARTS = 8  # of a hot budget: a quarter of what may lie unarchived makes a log due
ARCHIVE_RANGES_PER_JOB = 2_000  # that one job takes along
ARCHIVE_RANGE_RECORDS = ARCHIVE_FILE_RECORDS  # what one task archives
ARCHIVE_RANGES_PER_LOG = 32  # of one job, so that a log far behind lets others in between
ARCHIVE_LANES = 4  # jobs of a namespace at once: a stream is always in the same one
ARCHIVE_COPIES_AT_ONCE = 4  # ranges that one task has in hand: each holds some row groups in memory
ARCHIVE_LOGS_AT_ONCE = 50  # measured at one time
ARCHIVE_DELETIONS_PER_ROUND = 1_000
COMPACT_BELOW_BYTES = 32 * MIB
COMPACT_FILES_MIN = 4
COMPACT_AFTER_MS = 10 * MINUTE_MS  # behind the end of an hour
READER_GRACE_MS = DAY_MS  # a file that was replaced stays so long, for readers that planned with it
ORPHAN_AGE_MS = DAY_MS  # a file that nobody committed is deleted after this
STAGED_PARTS_MAX = 10_000  # of one commit: 80 GB in parts as the Spark sink makes them
COMMIT_TURN_MS = 5 * SECOND_MS  # what one call appends of a commit; then it is called again
COMMIT_ALONE_MS = MINUTE_MS  # a commit that its writer has left is finished by a sweep after this
WRITES_KEPT_MS = 30 * DAY_MS  # a batch that runs again after this would be appended again
ARCHIVE_READERS = 4  # threads of a process that fetch and decode
ARCHIVE_LOADS_MAX = (
    64  # row groups and footers under way or waiting; beyond it the caller hears 503
)
ARCHIVE_CACHE_BYTES = 128 * MIB  # of decoded row groups, in a process
ARCHIVE_GROUP_BYTES = (
    16 * KIB
)  # what one of them takes beside its records: small ones would be many
ARCHIVE_FOOTERS_BYTES = 32 * MIB  # of the files' footers, in a process
ARCHIVE_PLANS_MAX = 10_000  # shards whose next files a process knows
ARCHIVE_PLAN_FILES = 100  # that it knows ahead
ARCHIVE_PLAN_MS = 10 * MINUTE_MS  # far below READER_GRACE_MS
ARCHIVE_EXTENT_MS = SECOND_MS  # how old what is known of an archive's reach may be
ARCHIVE_EXTENT_WAIT_MS = 500  # a hot read waits so long, once, to hear where the archive begins
ARCHIVE_FOLLOWED_MAX = 10_000  # places where a read ended, which another one may go on from
