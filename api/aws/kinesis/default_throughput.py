"""Numbers of Amazon's, and ours where theirs would only be in the way."""

WARM_THROUGHPUT_MAX = 10 * 1024  # MiB/s
ON_DEMAND_STREAMS_MAX = 50  # told by DescribeLimits, and not enforced
SHARDS_OF_AN_ACCOUNT = 20_000  # the same
CONSUMERS_MAX_AT_AMAZON = 20  # of a stream
CONSUMERS_MAX = 1_000  # of a stream; enough for any, and few enough to count
