"""Amazon's limits, and Millstream's where Amazon's would be too strict."""

WARM_THROUGHPUT_MAX = 10 * 1024  # MiB/s
ON_DEMAND_STREAMS_MAX = 50  # returned by DescribeLimits, and not enforced
SHARDS_OF_AN_ACCOUNT = 20_000  # also returned by DescribeLimits only
CONSUMERS_MAX_AT_AMAZON = 20  # of a stream
CONSUMERS_MAX = 1_000  # of a stream; enough for any use, and few enough to count
