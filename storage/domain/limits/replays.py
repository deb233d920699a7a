"""Limits of replays."""

from storage.domain.units import DAY_MS, KIB, MIB, SECOND_MS

# Replays
REPLAY_BATCH_RECORDS = 500  # of one part that are on their way at once
REPLAY_BATCH_BYTES = MIB
REPLAY_BATCH_SECONDS = 0.1  # of a rate: a slow replay does not come in bursts
REPLAY_READ_RECORDS = 2_000  # of one part that are held in memory
REPLAY_READ_BYTES = 2 * MIB
REPLAY_READ_BYTES_MIN = 64 * KIB
REPLAY_LANE_BYTES = 32 * MIB  # of all parts that one writer merges
REPLAY_PARTS_AT_ONCE = 16  # of one task: what bounds its memory
REPLAY_RANGE_RECORDS = 250_000  # of a part, where no order is asked for
REPLAY_RANGES_MAX = (
    900  # so that a replay's parts are stored at once, and each is one producer at the target
)
REPLAY_SAVE_MS = SECOND_MS  # between two notes of how far it is, and looks at what its owner wishes
REPLAY_LATENCY_MS_MAX = 250.0  # of its appends: beyond it live traffic has the right of way
REPLAY_LATENCIES = 40  # the last appends that this is judged by
REPLAY_PAUSE_MS_MIN = 10.0
REPLAY_PAUSE_MS_MAX = 2_000.0
REPLAY_PAUSE_EASES = 0.8  # of a pause is left after an append that was quick
REPLAY_RETRY_MS_MIN = 20  # before an append that failed is repeated
REPLAY_RETRY_MS_MAX = 5_000
REPLAY_RETRIES_MAX = 60  # then the attempt has failed, and another one is made after a while
REPLAY_RATE_MAX = 10_000_000
REPLAY_BYTES_RATE_MAX = 2**40
REPLAY_SPEED_MAX = 1_000_000
REPLAY_SCAN_RECORDS_MAX = 200_000  # that an exact plan reads while its caller waits
REPLAY_LOOKS_PER_SHARD = 4  # places of a shard that an estimate is made from
REPLAY_LOOK_RECORDS = 50
REPLAY_LOOKS_MAX = 200  # of a plan: more shards are looked at in turn
REPLAY_SAMPLE_MAX = 20
REPLAY_RECORDS_PER_SECOND = 20_000  # what a plan assumes of one that goes as fast as it can
REPLAY_FORGOTTEN_BEFORE_MS = (
    DAY_MS  # a failed one can be tried again until so long before it is deleted
)
FILTER_WORDS_MAX = 1_000  # keys, headers or conditions of a filter
