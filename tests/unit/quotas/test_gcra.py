"""Rate limits (GCRA), and the token leases of processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.quotas import Quotas, Rates, ResourceRates
from storage.quotas.gcra import TokenLease, grant

SECOND_US = 1_000_000


def test_full_bucket_grants_its_burst_and_no_more():
    granted, paid_until_us = grant(
        0, SECOND_US, unit_us=100_000, holds_us=SECOND_US, least=1, most=25
    )

    more, _ = grant(paid_until_us, SECOND_US, unit_us=100_000, holds_us=SECOND_US, least=1, most=1)

    assert (granted, more) == (10, 0)


def test_tokens_are_replenished_over_time():
    _, paid_until_us = grant(0, SECOND_US, unit_us=100_000, holds_us=SECOND_US, least=1, most=10)

    granted, _ = grant(paid_until_us, 1_300_000, 100_000, SECOND_US, least=1, most=10)

    assert granted == 3


def test_nothing_is_granted_below_the_minimum():
    _, paid_until_us = grant(0, SECOND_US, unit_us=100_000, holds_us=SECOND_US, least=1, most=10)

    granted, after_us = grant(paid_until_us, 1_300_000, 100_000, SECOND_US, least=5, most=10)

    assert (granted, after_us) == (0, paid_until_us)


def test_clock_set_back_blocks_for_at_most_one_bucket():
    an_hour_ahead_us = 3_600 * SECOND_US

    granted, paid_until_us = grant(an_hour_ahead_us, 0, 100_000, SECOND_US, least=1, most=1)

    assert (granted, paid_until_us) == (0, SECOND_US)


@given(
    rate=st.integers(1, 1_000),
    burst_seconds=st.integers(1, 10),
    calls=st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 500)), max_size=60),
)
def test_grants_equal_those_of_a_token_bucket(rate, burst_seconds, calls):
    """The model counts thousandths of a token, so it has no rounding errors."""
    holds_us = burst_seconds * SECOND_US
    paid_until_us, now_ms = 0.0, 10**9
    most = rate * burst_seconds * 1_000
    tokens = most

    for pause_ms, units in calls:
        now_ms += pause_ms
        tokens = min(most, tokens + pause_ms * rate)
        granted, paid_until_us = grant(
            paid_until_us, now_ms * 1_000, SECOND_US / rate, holds_us, units, units
        )
        passes = tokens >= units * 1_000

        assert granted == (units if passes else 0)
        tokens -= units * 1_000 if passes else 0


@given(
    rate=st.integers(1, 5_000),
    pauses=st.lists(st.integers(0, 400), min_size=1, max_size=200),
)
def test_leasing_processes_stay_within_rate_plus_one_lease_each(rate, pauses):
    leases = [TokenLease(rate, 1.0) for _ in range(3)]
    paid_until_us, now_ms, passed = 0.0, 10**9, 0
    began_ms = now_ms

    for turn, pause_ms in enumerate(pauses):
        now_ms += pause_ms
        lease = leases[turn % 3]
        for _ in range(20):
            if not lease.has(1, now_ms):
                if lease.retry_after_ms(1, now_ms):
                    break
                least, wanted = lease.units_to_request([1], now_ms)
                granted, paid_until_us = grant(
                    paid_until_us, now_ms * 1_000, lease.unit_us, lease.burst_us, least, wanted
                )
                lease.granted(granted, paid_until_us - now_ms * 1_000, now_ms)
            if lease.has(1, now_ms):
                lease.tokens -= 1
                passed += 1

    seconds = (now_ms - began_ms) / 1_000
    assert passed <= rate * (seconds + 1) + 1
    assert all(lease.tokens <= lease.share for lease in leases)


def test_unspent_tokens_expire_with_the_lease():
    lease = TokenLease(1_000, 1.0)
    lease.granted(50, 50_000, now_ms=0)

    assert lease.has(1, now_ms=limits.LEASE_MS - 1)
    assert not lease.has(1, now_ms=limits.LEASE_MS)
    assert lease.units_to_request([1], now_ms=limits.LEASE_MS) == (1, 1)


def test_lease_size_doubles_while_tokens_are_used_up():
    lease = TokenLease(1_000, 1.0)
    wanted = []

    for now_ms in range(0, 80, 10):
        _, most = lease.units_to_request([1], now_ms)
        lease.granted(most, 0.0, now_ms)
        lease.tokens = 0
        wanted.append(most)

    assert wanted == [1, 3, 5, 9, 17, 33, 65, 101]


def test_lease_size_follows_consumption():
    lease = TokenLease(1_000, 1.0)
    lease.granted(90, 0.0, now_ms=0)
    lease.tokens -= 12

    assert lease.units_to_request([1], now_ms=limits.LEASE_MS) == (1, 13)


def test_waiting_calls_are_requested_together():
    lease = TokenLease(1_000, 1.0)

    assert lease.units_to_request([3, 0, 1, 5], now_ms=0) == (1, 9)
    assert lease.units_to_request([0, 0], now_ms=0) == (0, 0)


def test_exhausted_lease_knows_when_it_reopens():
    lease = TokenLease(10, 1.0)
    lease.granted(0, 1_000_000, now_ms=5_000)

    assert lease.retry_after_ms(1, now_ms=5_000) == 100
    assert lease.retry_after_ms(5, now_ms=5_250) == 250
    assert lease.retry_after_ms(1, now_ms=5_100) == 0


def test_rate_below_one_per_second_grants_one():
    lease = TokenLease(0.1, 1.0)

    granted, _ = grant(0, 10**12, lease.unit_us, lease.burst_us, *lease.units_to_request([1], 0))

    assert lease.burst == granted == 1


def test_lease_is_low_below_a_fifth_of_the_bucket():
    lease = TokenLease(100, 1.0)

    lease.granted(0, 790_000, now_ms=0)
    before = lease.is_low(now_ms=0)
    lease.granted(0, 810_000, now_ms=0)

    assert (before, lease.is_low(now_ms=0), lease.remaining(now_ms=0)) == (False, True, 19)


@pytest.mark.parametrize(
    ("quotas", "pointer"),
    [
        (Quotas(rates=Rates(calls_per_second=0)), "/rates/calls_per_second"),
        (Quotas(rates=Rates(bytes_per_second=float("nan"))), "/rates/bytes_per_second"),
        (Quotas(rates=Rates(burst_seconds=0)), "/rates/burst_seconds"),
        (Quotas(resources=(ResourceRates("orders", Rates()),)), "/resources/0/resources"),
        (Quotas(resources=(ResourceRates("queue/a}b", Rates()),)), "/resources/0/resources"),
        (Quotas(queues_max=-1), "/queues_max"),
        (
            Quotas(resources=(ResourceRates("queue/*", Rates(messages_per_second=-1)),)),
            "/resources/0/rates/messages_per_second",
        ),
        (
            Quotas(resources=(ResourceRates("queue/*", Rates()),) * 2),
            "/resources/1/resources",
        ),
    ],
)
def test_invalid_quota_is_rejected_with_its_pointer(quotas, pointer):
    with pytest.raises(ValidationFailed) as refused:
        quotas.check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@pytest.mark.parametrize(
    ("glob", "resource", "speaks"),
    [
        ("queue/orders-*", "queue/orders-eu", True),
        ("queue/orders-*", "queue/order", False),
        ("queue/*", "stream/orders", False),
        ("stream/clicks?", "stream/clicks1", True),
        ("queue/a.b", "queue/axb", False),
    ],
)
def test_resource_glob_matches_names(glob, resource, speaks):
    assert ResourceRates(glob, Rates()).speaks_of(resource) is speaks
