"""Limits of mirrors."""

from storage.domain.limits._shared import MIB, SECOND_MS

# Mirrors
MIRROR_PATTERNS_MAX = 100
MIRROR_KEY_CHARACTERS_MAX = 4_096  # an API key, or a token of an identity provider
MIRROR_SHARDS_MAX = 512  # read at once by one mirror, each with a connection that waits
MIRROR_QUEUES_MAX = (
    512  # and partitions of queues, copied at once by one mirror, each with a connection that waits
)
MIRROR_RELOAD_MS = 2 * SECOND_MS  # until a changed, paused or deleted mirror is noticed
MIRROR_DISCOVERY_MS = 5 * SECOND_MS  # until a new stream or a reshard of the origin is noticed
MIRROR_WAIT_MS = 5 * SECOND_MS  # of a read at the end of a shard, for the next record
MIRROR_REQUEST_MS_MAX = 30 * SECOND_MS
MIRROR_REPORT_MS = (
    SECOND_MS  # between writes of positions, whose loss repeats reads but adds nothing
)
MIRROR_BACKOFF_MS = SECOND_MS  # after the first failure; doubled with each further one
MIRROR_BACKOFF_MS_MAX = 30 * SECOND_MS
MIRROR_READ_BYTES = 2 * MIB  # or one larger record
MIRROR_RESPONSE_BYTES_MAX = 32 * MIB
MIRROR_STALE_MS = 4 * MIRROR_WAIT_MS  # without a report, from which on the lag includes its age
MIRROR_FAILURE_CHARACTERS_MAX = 500
MIRROR_OFFSET_INTERVAL = 1_000  # records between entries of an offset table: read again at most
MIRROR_OFFSETS_MAX = 1_000  # entries for each pair of shards; then older ones become sparser
MIRROR_GROUPS_MS = 5 * SECOND_MS  # between moves of the groups of copied streams
MIRROR_GROUPS_MAX = 1_000  # that one mirror moves
MIRROR_FENCE_MS_MAX = 10 * SECOND_MS  # of a promotion, to make the origin read-only
MIRROR_ALERT_LAG_MS = 60 * SECOND_MS  # from which on the dashboard names a mirror
