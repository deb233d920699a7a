"""Amazon's limits of calls and throughput, as token buckets: for `limits=aws` only.

Each process counts for itself: with several, a client that spreads its calls gets that many times as much.
"""

from collections.abc import Hashable
from typing import NamedTuple

from cachetools import LRUCache

from api.aws.kinesis.errors import LIMIT_EXCEEDED, THROUGHPUT_EXCEEDED, refuse

BUCKETS_MAX = 100_000  # a few tens of megabytes; beyond it the least recently used is reset
MIB = 1024 * 1024
DAY_S = 86_400
WRITE_BYTES, WRITE_RECORDS, READ_BYTES, READ_CALLS, ITERATOR_CALLS = (
    1 * MIB,
    1_000,
    2 * MIB,
    5,
    5,
)  # of a shard, in a second


class Bucket(NamedTuple):
    """Token count at a moment."""

    left: float
    at_s: float


class TokenBuckets:
    """Token buckets of one process.

    Each refills at its rate, and holds a second's worth unless a larger burst is given.
    """

    def __init__(self) -> None:
        self._buckets: LRUCache[Hashable, Bucket] = LRUCache(BUCKETS_MAX)

    def take(
        self, key: Hashable, amount: float, rate: float, now_s: float, holds: float | None = None
    ) -> bool:
        """Debit the bucket and return whether there was enough.

        A full bucket serves any amount, and is in debt afterwards: so a record of 10 MiB passes a shard of 1 MiB/s, which then
        refuses records for ten seconds.
        """
        most = rate if holds is None else holds
        left = self._left(key, rate, now_s, most)
        if left < min(amount, most):
            return False
        self._buckets[key] = Bucket(left - amount, now_s)
        return True

    def peek(self, key: Hashable, amount: float, rate: float, now_s: float) -> bool:
        """Return whether `take` would succeed."""
        return self._left(key, rate, now_s) >= min(amount, rate)

    def debit(self, key: Hashable, amount: float, rate: float, now_s: float) -> None:
        """Debit the bucket for an amount already used, whether or not there was enough."""
        self._buckets[key] = Bucket(self._left(key, rate, now_s) - amount, now_s)

    def _left(self, key: Hashable, rate: float, now_s: float, holds: float | None = None) -> float:
        most = rate if holds is None else holds
        bucket = self._buckets.get(key)
        if bucket is None:
            return most
        return min(most, bucket.left + max(0.0, now_s - bucket.at_s) * rate)


class AwsShardLimits:
    """Limits that the deployment enforces: Amazon's, or none."""

    def __init__(self, profile: str) -> None:
        self.limited = profile == "aws"
        self._buckets = TokenBuckets()

    def control(self, operation: str, whose: Hashable, per_second: float, now_s: float) -> None:
        """Count a control call. Raises AwsError: LimitExceeded."""
        if self.limited and not self._buckets.take((operation, whose), 1, per_second, now_s):
            refuse(LIMIT_EXCEEDED, "Rate exceeded for operation.")

    def daily(self, operation: str, whose: Hashable, per_day: int, now_s: float) -> None:
        """Count a call with a daily limit. Raises AwsError: LimitExceeded."""
        key, rate = ("day", operation, whose), per_day / DAY_S
        if self.limited and not self._buckets.take(key, 1, rate, now_s, per_day):
            refuse(
                LIMIT_EXCEEDED,
                f"{operation} has been called {per_day} times for this stream in 24 hours.",
            )

    def iterator(self, shard: Hashable, shard_id: str, now_s: float) -> None:
        """Count a GetShardIterator. Raises AwsError: ProvisionedThroughputExceeded."""
        if self.limited and not self._buckets.take(("i", shard), 1, ITERATOR_CALLS, now_s):
            refuse(THROUGHPUT_EXCEEDED, f"Rate exceeded for shard {shard_id}.")

    def read(self, shard: Hashable, words: str, now_s: float) -> None:
        """Count a GetRecords before it runs. Raises AwsError: ProvisionedThroughputExceeded."""
        if not self.limited:
            return
        enough = self._buckets.peek(("rb", shard), 1, READ_BYTES, now_s)
        if not enough or not self._buckets.take(("rc", shard), 1, READ_CALLS, now_s):
            refuse(THROUGHPUT_EXCEEDED, f"Rate exceeded for {words}.")

    def was_read(self, shard: Hashable, size_bytes: int, now_s: float) -> None:
        """Charge a GetRecords for its bytes.

        After ten megabytes the next five seconds return none.
        """
        if self.limited:
            self._buckets.debit(("rb", shard), size_bytes, READ_BYTES, now_s)

    def write(self, shard: Hashable, size_bytes: int, now_s: float) -> bool:
        """Count a record for a shard; return False if it exceeds the rate."""
        if not self.limited:
            return True
        if not self._buckets.peek(("wb", shard), size_bytes, WRITE_BYTES, now_s):
            return False
        if not self._buckets.take(("wr", shard), 1, WRITE_RECORDS, now_s):
            return False
        return self._buckets.take(("wb", shard), size_bytes, WRITE_BYTES, now_s)
