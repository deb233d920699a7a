"""AWS limits as token buckets, and takeover of subscriptions."""

import pytest

from api.aws.kinesis.state.subscriptions import SETTLED_S, Subscriptions
from api.aws.kinesis.state.throttles import BUCKETS_MAX, MIB, AwsShardLimits, TokenBuckets
from api.aws.protocol.errors import AwsError

SHARD = ("stream", 0)


def test_bucket_holds_one_second_and_refills_at_its_rate():
    throttles = TokenBuckets()

    assert [throttles.take("k", 1, 5, 0.0) for _ in range(6)] == [True] * 5 + [False]
    assert throttles.take("k", 1, 5, 0.2)
    assert not throttles.take("k", 1, 5, 0.2)
    assert [throttles.take("k", 1, 5, 100.0) for _ in range(6)] == [True] * 5 + [False]


def test_oversized_request_drains_full_bucket_into_debt():
    throttles = TokenBuckets()

    assert throttles.take("k", 50, 5, 0.0)
    assert not throttles.take("k", 1, 5, 9.0)
    assert throttles.take("k", 1, 5, 9.3)


def test_clock_going_backwards_removes_no_tokens():
    throttles = TokenBuckets()
    throttles.take("k", 4, 5, 100.0)

    assert throttles.take("k", 1, 5, 50.0)


def test_number_of_buckets_is_limited():
    throttles = TokenBuckets()
    for number in range(BUCKETS_MAX + 10):
        throttles.take(number, 1, 5, 0.0)

    assert len(throttles._buckets) == BUCKETS_MAX


def test_shard_accepts_1000_records_and_1_mib_per_second():
    pace = AwsShardLimits("aws")

    assert sum(pace.write(SHARD, 100, 0.0) for _ in range(1_200)) == 1_000
    assert sum(pace.write(("stream", 1), 64 * 1024, 0.0) for _ in range(20)) == 16
    assert pace.write(SHARD, 100, 1.0)


def test_large_read_throttles_following_reads():
    pace = AwsShardLimits("aws")
    pace.read(SHARD, "it", 0.0)
    pace.was_read(SHARD, 10 * MIB, 0.0)

    with pytest.raises(AwsError) as refused:
        pace.read(SHARD, "it", 3.9)
    pace.read(SHARD, "it", 5.0)

    assert refused.value.fault.shape == "ProvisionedThroughputExceededException"


def test_shard_accepts_five_reads_per_second():
    pace = AwsShardLimits("aws")
    for _ in range(5):
        pace.read(SHARD, "it", 0.0)

    with pytest.raises(AwsError):
        pace.read(SHARD, "it", 0.1)


def test_control_calls_raise_limit_exceeded_per_namespace():
    pace = AwsShardLimits("aws")
    pace.control("DescribeLimits", "default", 1, 0.0)

    with pytest.raises(AwsError) as refused:
        pace.control("DescribeLimits", "default", 1, 0.5)
    pace.control("DescribeLimits", "other", 1, 0.5)

    assert refused.value.fault.shape == "LimitExceededException"


def test_daily_limits_refill_over_a_day():
    pace = AwsShardLimits("aws")
    for _ in range(10):
        pace.daily("UpdateShardCount", "stream", 10, 0.0)

    with pytest.raises(AwsError):
        pace.daily("UpdateShardCount", "stream", 10, 3_600.0)
    pace.daily("UpdateShardCount", "other", 10, 3_600.0)
    pace.daily("UpdateShardCount", "stream", 10, 8_640.0)


def test_native_mode_has_no_limits():
    pace = AwsShardLimits("native")
    for _ in range(5_000):
        assert pace.write(SHARD, MIB, 0.0)
        pace.read(SHARD, "it", 0.0)
        pace.control("ListStreams", "default", 1, 0.0)
        pace.daily("UpdateShardCount", "stream", 10, 0.0)


KEY = ("stream", "app", 0)


async def test_subscription_is_taken_over_after_settling_time():
    subscriptions = Subscriptions()
    first = subscriptions.open(KEY, 0.0)

    with pytest.raises(AwsError) as refused:
        subscriptions.open(KEY, SETTLED_S - 0.1)
    second = subscriptions.open(KEY, SETTLED_S)

    assert refused.value.fault.shape == "ResourceInUseException"
    assert first.superseded.is_set()
    assert not second.superseded.is_set()


async def test_ended_subscriptions_are_forgotten():
    subscriptions = Subscriptions()
    for shard in range(100):
        subscriptions.open(("stream", "app", shard), float(shard)).ended = True
    subscriptions.open(("stream", "app", 1_000), 1_000.0)

    assert len(subscriptions._last) == 1


async def test_subscription_never_ended_is_forgotten_by_age():
    subscriptions = Subscriptions()
    subscriptions.open(KEY, 0.0)
    subscriptions.open(("stream", "other", 0), 400.0)
    assert len(subscriptions._last) == 2

    subscriptions.open(("stream", "third", 0), 700.0)

    assert KEY not in subscriptions._last


async def test_removing_consumer_ends_its_subscriptions_only():
    subscriptions = Subscriptions()
    mine, other = subscriptions.open(KEY, 0.0), subscriptions.open(("stream", "b", 0), 0.0)

    subscriptions.end_all("stream", "app")

    assert (mine.superseded.is_set(), other.superseded.is_set()) == (True, False)
