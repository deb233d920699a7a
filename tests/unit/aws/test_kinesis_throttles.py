"""Amazon's limits as token buckets, and who may subscribe when."""

import pytest

from api.aws.kinesis.state.subscriptions import SETTLED_S, Subscriptions
from api.aws.kinesis.state.throttles import BUCKETS_MAX, MIB, Pace, Throttles
from api.aws.protocol.errors import AwsError

SHARD = ("stream", 0)


def test_a_bucket_holds_a_second_and_refills_at_its_rate():
    throttles = Throttles()

    assert [throttles.take("k", 1, 5, 0.0) for _ in range(6)] == [True] * 5 + [False]
    assert throttles.take("k", 1, 5, 0.2)
    assert not throttles.take("k", 1, 5, 0.2)
    assert [throttles.take("k", 1, 5, 100.0) for _ in range(6)] == [True] * 5 + [False]


def test_one_large_thing_passes_a_full_bucket_and_is_paid_for():
    throttles = Throttles()

    assert throttles.take("k", 50, 5, 0.0)
    assert not throttles.take("k", 1, 5, 9.0)
    assert throttles.take("k", 1, 5, 9.3)


def test_time_that_goes_back_takes_nothing_away():
    throttles = Throttles()
    throttles.take("k", 4, 5, 100.0)

    assert throttles.take("k", 1, 5, 50.0)


def test_buckets_are_limited_in_number():
    throttles = Throttles()
    for number in range(BUCKETS_MAX + 10):
        throttles.take(number, 1, 5, 0.0)

    assert len(throttles._buckets) == BUCKETS_MAX


def test_a_shard_takes_a_thousand_records_and_a_megabyte_a_second():
    pace = Pace("aws")

    assert sum(pace.write(SHARD, 100, 0.0) for _ in range(1_200)) == 1_000
    assert sum(pace.write(("stream", 1), 64 * 1024, 0.0) for _ in range(20)) == 16
    assert pace.write(SHARD, 100, 1.0)


def test_a_read_of_ten_megabytes_is_paid_for_by_those_that_follow():
    pace = Pace("aws")
    pace.read(SHARD, "it", 0.0)
    pace.was_read(SHARD, 10 * MIB, 0.0)

    with pytest.raises(AwsError) as refused:
        pace.read(SHARD, "it", 3.9)
    pace.read(SHARD, "it", 5.0)

    assert refused.value.fault.shape == "ProvisionedThroughputExceededException"


def test_a_shard_is_read_five_times_a_second():
    pace = Pace("aws")
    for _ in range(5):
        pace.read(SHARD, "it", 0.0)

    with pytest.raises(AwsError):
        pace.read(SHARD, "it", 0.1)


def test_control_calls_have_their_own_words():
    pace = Pace("aws")
    pace.control("DescribeLimits", "default", 1, 0.0)

    with pytest.raises(AwsError) as refused:
        pace.control("DescribeLimits", "default", 1, 0.5)
    pace.control("DescribeLimits", "other", 1, 0.5)

    assert refused.value.fault.shape == "LimitExceededException"


def test_some_calls_are_counted_by_the_day():
    pace = Pace("aws")
    for _ in range(10):
        pace.daily("UpdateShardCount", "stream", 10, 0.0)

    with pytest.raises(AwsError):
        pace.daily("UpdateShardCount", "stream", 10, 3_600.0)
    pace.daily("UpdateShardCount", "other", 10, 3_600.0)
    pace.daily("UpdateShardCount", "stream", 10, 8_640.0)


def test_without_limits_nothing_is_counted():
    pace = Pace("native")
    for _ in range(5_000):
        assert pace.write(SHARD, MIB, 0.0)
        pace.read(SHARD, "it", 0.0)
        pace.control("ListStreams", "default", 1, 0.0)
        pace.daily("UpdateShardCount", "stream", 10, 0.0)


KEY = ("stream", "app", 0)


async def test_a_subscription_is_taken_over_once_it_is_settled():
    subscriptions = Subscriptions()
    first = subscriptions.open(KEY, 0.0)

    with pytest.raises(AwsError) as refused:
        subscriptions.open(KEY, SETTLED_S - 0.1)
    second = subscriptions.open(KEY, SETTLED_S)

    assert refused.value.fault.shape == "ResourceInUseException"
    assert first.taken_over.is_set()
    assert not second.taken_over.is_set()


async def test_what_is_over_is_forgotten():
    subscriptions = Subscriptions()
    for shard in range(100):
        subscriptions.open(("stream", "app", shard), float(shard)).ended = True
    subscriptions.open(("stream", "app", 1_000), 1_000.0)

    assert len(subscriptions._last) == 1


async def test_one_that_never_began_is_forgotten_by_its_age():
    subscriptions = Subscriptions()
    subscriptions.open(KEY, 0.0)
    subscriptions.open(("stream", "other", 0), 400.0)
    assert len(subscriptions._last) == 2

    subscriptions.open(("stream", "third", 0), 700.0)

    assert KEY not in subscriptions._last


async def test_a_consumer_that_is_forgotten_has_no_subscriptions():
    subscriptions = Subscriptions()
    mine, other = subscriptions.open(KEY, 0.0), subscriptions.open(("stream", "b", 0), 0.0)

    subscriptions.end_all("stream", "app")

    assert (mine.taken_over.is_set(), other.taken_over.is_set()) == (True, False)
