"""Limits of replays."""

from storage.domain.limits._shared import DAY_MS, KIB, MIB, SECOND_MS

# Replays
REPLAY_BATCH_RECORDS = 4_000  # of one writer, in flight at the same time
REPLAY_BATCH_MESSAGES = 500  # the same, where the target is a queue: one script adds them
REPLAY_BATCH_BYTES = MIB
REPLAY_BATCH_SECONDS = 0.1  # of the rate: a slow replay does not send in bursts
REPLAY_READ_RECORDS = 8_000  # of one part, held in memory: two batches
REPLAY_READ_BYTES = 2 * MIB
REPLAY_READ_BYTES_MIN = 64 * KIB
REPLAY_MERGE_BYTES = 32 * MIB  # of all parts that one writer merges
REPLAY_PART_CONCURRENCY_MAX = 16  # per task: this bounds its memory
REPLAY_SMALL_RECORDS = (
    100_000  # a replay or back-test of fewer runs in the worker's process, without Spark
)
REPLAYS_SMALL_AT_ONCE = (
    4  # per worker, beside its other jobs: of small back-tests, and small replays without pacing
)
REPLAY_TURN_MS = 30 * SECOND_MS  # a task on a cluster then gives its slot to another
REPLAY_TASKS_MAX = (
    64  # of a replay or back-test on a cluster that adds executors when it needs them
)
REPLAY_RANGE_RECORDS = 250_000  # per part, if no order is requested
REPLAY_RANGES_MAX = (
    900  # the parts of a replay are stored in one call, and each is one producer at the target
)
REPLAY_SAVE_MS = (
    SECOND_MS  # interval at which progress is saved and the state requested by the owner is checked
)
REPLAY_LATENCY_MS_MAX = 250.0  # of its appends: above it, live traffic takes precedence
REPLAY_LATENCY_SAMPLES = 40  # recent appends that this is measured over
REPLAY_PAUSE_MS_MIN = 10.0
REPLAY_PAUSE_MS_MAX = 2_000.0
REPLAY_PAUSE_DECAY = 0.8  # the factor by which a pause shrinks after a fast append
REPLAY_RETRY_MS_MIN = 20  # before a failed append is repeated
REPLAY_RETRY_MS_MAX = 5_000
REPLAY_RETRIES_MAX = 60  # then the attempt fails, and another one starts later
REPLAY_RATE_MAX = 10_000_000
REPLAY_BYTES_RATE_MAX = 2**40
REPLAY_SPEED_MAX = 1_000_000
REPLAY_SCAN_RECORDS_MAX = 200_000  # that an exact plan reads while its caller waits
REPLAY_PROBES_PER_SHARD = 4  # positions of a shard that an estimate is based on
REPLAY_PROBE_RECORDS = 50
REPLAY_PROBES_MAX = 200  # per plan: with more shards, they are probed in rotation
REPLAY_SAMPLE_MAX = 20
REPLAY_RECORDS_PER_SECOND = 100_000  # what a plan assumes for a replay without a rate limit
REPLAY_RETRY_MARGIN_MS = (
    DAY_MS  # a failed replay can be retried until this long before it is deleted
)
FILTER_TERMS_MAX = 1_000  # keys, headers or conditions of a filter
