"""Placement of partitions in the hash slots of a cluster."""

import pytest
from redis.crc import key_slot

from storage.domain.names import new_log_id
from storage.redis.placement import spread_log_ids

SLOTS = 16_384


def primaries_of(ids, primaries):
    """Return the primary of each log in a cluster of even ranges, as `--cluster create` makes it."""
    return [key_slot(one.encode()) * primaries // SLOTS for one in ids]


@pytest.mark.parametrize("partitions", [2, 3, 8, 64])
def test_new_logs_lie_at_even_distances(partitions):
    first = new_log_id()

    ids = [first, *spread_log_ids([first], partitions)]

    slots = sorted(key_slot(one.encode()) for one in ids)
    gaps = [(b - a) % SLOTS for a, b in zip(slots, [*slots[1:], slots[0]], strict=True)]
    assert len(set(ids)) == partitions
    assert max(gaps) - min(gaps) <= SLOTS // 64


def test_partitions_are_on_different_primaries():
    shared = 0
    for _ in range(100):
        first = new_log_id()
        ids = [first, *spread_log_ids([first], 3)]
        shared += len(set(primaries_of(ids, 3))) < 3

    assert shared <= 12  # a log near the end of a range may lie beyond it


@pytest.mark.parametrize("counts", [(1, 2, 4), (1, 3, 6), (2, 3), (5, 7, 64)])
def test_added_logs_fill_the_gaps(counts):
    ids = [new_log_id()]
    for count in counts:
        ids += spread_log_ids(ids, count)

        assert len(set(ids)) == count

    slots = sorted(key_slot(one.encode()) for one in ids)
    gaps = [(b - a) % SLOTS for a, b in zip(slots, [*slots[1:], slots[0]], strict=True)]
    assert max(gaps) <= 2 * SLOTS // counts[-1] + SLOTS // 64


def test_enough_logs_need_no_more():
    ids = [new_log_id(), *spread_log_ids([new_log_id()], 4)]
    assert spread_log_ids(ids, 4) == []
