"""Load of a shard: its hottest keys and the split that divides them."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.log.record_batch import Record
from storage.domain.streams.shard_load import KeyLoad, LoadSplit, shard_load
from storage.domain.streams.stream import RING_SIZE, LogRecord, Shard, hash_key

WHOLE = Shard(index=3, log_id="a", first_hash_key=0, last_hash_key=RING_SIZE - 1, opened_at_ms=0)


def split_of(shard: Shard, sample: list[LogRecord]) -> LoadSplit:
    split = shard_load(shard, 1.0, sample).split
    assert split is not None
    return split


def records(*keys: str) -> list[LogRecord]:
    return [LogRecord(nth, nth, Record(b"12345", key)) for nth, key in enumerate(keys)]


def test_shard_without_records_has_no_keys_and_no_split():
    load = shard_load(WHOLE, 0.0, ())

    assert (load.shard, load.sampled, load.keys, load.split) == (3, 0, (), None)


def test_hottest_keys_have_their_share():
    load = shard_load(WHOLE, 20.0, records(*["a"] * 6, *["b"] * 3, "c"))

    assert load.keys == (KeyLoad("a", 0.6), KeyLoad("b", 0.3), KeyLoad("c", 0.1))
    assert load.bytes_per_second == pytest.approx(20 * 6)


def test_one_hot_key_has_no_split():
    assert shard_load(WHOLE, 1.0, records(*["a"] * 17, "b", "c", "d")).split is None
    assert shard_load(WHOLE, 1.0, records("a", "a")).split is None


def test_records_without_key_split_in_the_middle():
    sample = records("", "", "", "")

    assert split_of(WHOLE, sample) == LoadSplit(RING_SIZE // 2, 0.5)
    assert shard_load(WHOLE, 1.0, sample).keyless_share == 1


def test_listed_keys_are_bounded():
    keys = [str(number) for number in range(100)]

    assert len(shard_load(WHOLE, 1.0, records(*keys)).keys) == limits.SHARD_LOAD_KEYS_MAX


def test_records_with_another_hash_key_do_not_count_for_the_split():
    narrow = Shard(index=0, log_id="a", first_hash_key=10, last_hash_key=20, opened_at_ms=0)

    assert shard_load(narrow, 1.0, records("a", "b")).split is None


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1), st.integers(0, 20))
def test_split_has_the_share_that_it_states(keys, keyless):
    load = shard_load(WHOLE, 1.0, records(*keys, *[""] * keyless))
    if load.split is None:
        hottest = Counter(keys).most_common(1)[0][1]
        assert hottest + keyless / 2 >= (len(keys) + keyless) / 2
        return
    at = load.split.at_hash_key
    second = sum(hash_key(key) >= at for key in keys) + keyless * (RING_SIZE - at) / RING_SIZE
    share = second / (len(keys) + keyless)

    assert load.split.larger_share == pytest.approx(max(share, 1 - share))
    assert load.split.larger_share < limits.SHARD_LOAD_SPLIT_SHARE_MAX


def test_many_keys_divide_almost_evenly():
    chance = random.Random(3)
    keys = [f"user-{chance.randrange(500)}" for _ in range(1_000)]

    assert split_of(WHOLE, records(*keys)).larger_share < 0.51
