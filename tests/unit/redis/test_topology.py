"""The cluster topology: slots of keys, and their masters."""

import pytest
from redis.crc import key_slot

from storage.redis.transport.topology import Nodes, hash_tag_for

SEED = "redis://:secret@10.0.0.1:7000/0"
SECOND, THIRD = "redis://:secret@10.0.0.2:7001/0", "redis://:secret@[fd00::3]:7002/0"
LAST = 16_383


@pytest.fixture
def nodes():
    """Three masters whose slots begin at 0, 5000 and 10,000."""
    nodes = Nodes(SEED)
    nodes.note([(0, SEED), (5_000, SECOND), (10_000, THIRD)])
    return nodes


def key_in(slot):
    return b"ms:default:{%s}:log" % hash_tag_for(slot).encode()


@pytest.mark.parametrize("slot", [0, 4_999, 5_000, LAST])
def test_generated_word_hashes_to_the_requested_slot(slot):
    assert key_slot(key_in(slot)) == slot


@pytest.mark.parametrize(
    ("slot", "url"),
    [(0, SEED), (4_999, SEED), (5_000, SECOND), (9_999, SECOND), (10_000, THIRD), (LAST, THIRD)],
)
def test_key_is_routed_to_master_of_its_slot(nodes, slot, url):
    assert nodes.url_of(key_in(slot)) == url


def test_all_keys_are_at_the_seed_without_a_cluster():
    nodes = Nodes(SEED)
    nodes.note([])

    assert not nodes.is_cluster
    assert {nodes.url_of(key_in(slot)) for slot in (0, LAST)} == {SEED}


def test_single_master_with_all_slots_is_not_a_cluster():
    nodes = Nodes(SEED)
    nodes.note([(0, SEED)])

    assert not nodes.is_cluster


def test_each_master_is_listed_once_with_its_first_slot(nodes):
    masters = nodes.note([(0, SEED), (5_000, SECOND), (6_000, SEED), (10_000, SECOND)])

    assert [(master.url, master.slot) for master in masters] == [(SEED, 0), (SECOND, 5_000)]


async def test_moved_slot_is_routed_before_next_refresh(nodes):
    moved = nodes.moved(4_999, "10.0.0.9", 7_009)

    assert moved == "redis://:secret@10.0.0.9:7009/0"
    assert nodes.url_of(key_in(4_999)) == moved
    assert nodes.url_of(key_in(4_998)) == SEED
    await nodes.close()


def test_other_nodes_are_reached_with_credentials_of_the_seed():
    assert Nodes("rediss://user:word@a:1/0?ssl_cert_reqs=none").at("fd00::3", 7_002) == (
        "rediss://user:word@[fd00::3]:7002/0?ssl_cert_reqs=none"
    )
