"""Lag of mirrors, and what the copy of a stream is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from consumers.mirrors.origin import OriginFailed, OriginShard, spec_of
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.mirrors.mirror import MirrorSpec
from storage.domain.mirrors.progress import MirrorStatus, ShardProgress
from storage.domain.streams.stream import RING_SIZE, StreamSpec

SHARD = ShardProgress(
    stream="orders",
    origin_id="o",
    shard=0,
    target_id="t",
    next_offset=90,
    tip=100,
    behind_ms=400,
    checked_at_ms=10_000,
)


@pytest.mark.parametrize(
    ("patterns", "detail"),
    [
        ({"streams": ("topic:orders",)}, "Topics are not mirrored"),
        ({"queues": ("route:orders.crm",)}, "The queue of a route is not mirrored"),
        ({"streams": ("a b",)}, "Must be a name"),
    ],
)
def test_pattern_of_topic_is_refused_with_reason(patterns, detail):
    with pytest.raises(ValidationFailed) as refusal:
        MirrorSpec(url="https://eu.example.com", **patterns).check()

    assert refusal.value.faults[0].detail.startswith(detail)


def test_lag_is_that_of_the_last_check():
    assert (SHARD.lag_records, SHARD.lag_ms(11_000)) == (10, 400)


def test_lag_grows_when_checks_fail_or_are_missing():
    failing = replace(SHARD, failure="no answer")
    stale_ms = 10_000 + limits.MIRROR_STALE_MS + 1

    assert failing.lag_ms(11_000) == 1_400
    assert SHARD.lag_ms(stale_ms) == 400 + limits.MIRROR_STALE_MS + 1


def test_ended_shard_has_no_lag():
    assert replace(SHARD, ended=True, next_offset=100).lag_ms(10**9) == 0


def test_status_has_the_largest_lag_and_each_failure_once():
    failing = replace(SHARD, failure="no answer")
    status = MirrorStatus(shards=(SHARD, failing, failing), failure="no list", listed_at_ms=10_900)

    assert (status.lag_records, status.lag_ms(11_000)) == (30, 1_400)
    assert status.failures == ("no list", "no answer")


def test_lag_grows_while_streams_are_not_listed():
    """A mirror whose origin had never answered had no shards, and so no lag."""
    never = MirrorStatus(created_at_ms=10_000, failure="no answer")
    listed = replace(never, listed_at_ms=12_000)

    assert (never.lag_ms(10_400), never.lag_ms(70_000)) == (400, 60_000)
    assert listed.lag_ms(12_000 + limits.MIRROR_STALE_MS) == 0
    assert listed.lag_ms(112_000) == 100_000


@given(st.integers(0, RING_SIZE - 1), st.integers(0, RING_SIZE - 1), st.integers(0, RING_SIZE - 1))
def test_record_is_routed_within_the_range_of_its_shard(one, other, key_hash):
    first, last = min(one, other), max(one, other)
    shard = OriginShard(0, (), str(first), str(last))

    assert first <= shard.hash_key_for(key_hash) <= last
    assert shard.hash_key_for(None) == first
    if first <= key_hash <= last:
        assert shard.hash_key_for(key_hash) == key_hash


def test_copy_has_the_origins_settings_and_accepts_late_records():
    fields = {
        "name": "orders",
        "shards": 1,
        "open_shards": 3,
        "retention_seconds": None,
        "hot_retention_seconds": 1.5,
        "event_time_skew_seconds_max": 60,
        "tags": {"team": "shop"},
        "a_later_field": 7,
    }

    assert spec_of(fields) == StreamSpec(
        shards=3, retention_ms=None, hot_retention_ms=1_500, tags={"team": "shop"}
    )


@pytest.mark.parametrize("fields", [{"shards": "three"}, {"retention_seconds": "a day"}])
def test_settings_of_no_known_form_are_a_failure_of_the_origin(fields):
    with pytest.raises(OriginFailed, match="settings of no known form"):
        spec_of(fields)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"streams": ()}, "/streams"),
        ({"streams": ("a/b",)}, "/streams/0"),
        ({"streams": ("a",) * 101}, "/streams"),
        ({"key": "two words"}, "/from/key"),
        ({"key": "k" * 4_097}, "/from/key"),
    ],
)
def test_invalid_specification_is_refused(fields, pointer):
    spec = MirrorSpec(**{"url": "https://example.com", "streams": ("*",)} | fields)

    with pytest.raises(ValidationFailed) as refused:
        spec.check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_patterns_match_whole_names():
    spec = MirrorSpec(url="https://example.com", streams=("eu.*", "order?"))

    assert [spec.matches(name) for name in ("eu.a", "eu", "orders", "order", "xorders")] == [
        *(True, False, True, False, False)
    ]
