"""Random walks over the model of a replica set: the product keeps D1, and each rule is needed."""

import msgspec
import pytest

from storage.replication import decisions, primary_change
from storage.replication.engine import ReplicaSetEngine
from tests.replica_set_model import Rules, Violation, World

WALKS = 3_000
WALKS_AT_NIGHT = 60_000

SETTINGS = {
    "two_of_three": {},
    "all_of_three": {"min_insync": 3},
    "a_disk_is_lost": {"loses_disk": True},
    "min_insync_is_raised": {"raises_min_insync": True},
    "member_is_replaced": {"replaces_member": True},
    "three_of_five": {"addresses": "ABCDE", "min_insync": 3},
}


def _choose(replica_set, votes, needed):
    positions = {address: vote.position for address, vote in votes.items()}
    furthest = max(positions.values(), default=None)
    if furthest is None or (replica_set.primary not in votes and len(votes) < needed):
        return None
    return next(member for member in replica_set.members if positions.get(member) == furthest)


def _voters(votes):
    return {address: vote for address, vote in votes.items() if vote.position.epoch > 0}


def choose_without_quorum(replica_set, votes, target=None):
    """Choose the furthest of whoever answers."""
    return _choose(replica_set, _voters(votes), 0)


def choose_with_empty_voters(replica_set, votes, target=None):
    """Count members without an epoch too."""
    return _choose(replica_set, votes, replica_set.fence_quorum)


def choose_whatever_the_epoch(replica_set, votes, target=None):
    """Rely on today's count for writes of an earlier epoch."""
    return _choose(replica_set, _voters(votes), replica_set.fence_quorum)


RULES = {
    "fence_before_read": ({}, Rules(fence_first=False), None),
    "epoch_behind_confirmation": ({}, Rules(epoch_check=False), None),
    "quorum": ({}, Rules(), choose_without_quorum),
    "empty_has_no_vote": ({"loses_disk": True}, Rules(), choose_with_empty_voters),
    "present_epoch_in_quorum": (
        {"raises_min_insync": True},
        Rules(),
        choose_whatever_the_epoch,
    ),
    "promise_or_row_read_again": ({}, Rules(promises=False, row_read=False), None),
}

RARE_RULES = {
    "conditional_replicaof": Rules(conditional=False),
    "row_unchanged": Rules(row_unchanged=False),
    "row_read_again": Rules(row_read=False),
}
"""Rules whose absence takes a disk that is lost and more than `WALKS` walks to be found."""


def _walk(seeds, rules=Rules(), **settings):  # noqa: B008  a frozen struct
    acknowledged = 0
    for seed in seeds:
        world = World(seed, rules, **settings)
        world.walk()
        acknowledged += len(world.acknowledged)
    return acknowledged


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_no_acknowledged_write_is_lost(settings):
    assert _walk(range(WALKS), **settings) > WALKS // 4


@pytest.mark.parametrize(("settings", "rules", "choose"), RULES.values(), ids=RULES)
def test_loss_is_found_without_rule(settings, rules, choose, monkeypatch):
    monkeypatch.setattr(primary_change, "choose_primary", choose or decisions.choose_primary)

    with pytest.raises(Violation):
        _walk(range(WALKS), rules, **settings)


def test_loss_is_found_if_a_member_leaves_at_once(monkeypatch):
    async def leave(*_):
        """Neither fence it, nor confirm a write without it."""

    monkeypatch.setattr(ReplicaSetEngine, "_exclude", leave)

    with pytest.raises(Violation):
        _walk(range(WALKS), replaces_member=True)


@pytest.mark.chaos
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_no_acknowledged_write_is_lost_in_many_walks(settings):
    assert _walk(range(WALKS_AT_NIGHT), **settings) > WALKS_AT_NIGHT // 4


@pytest.mark.chaos
@pytest.mark.parametrize("rules", RARE_RULES.values(), ids=RARE_RULES)
def test_rare_loss_is_found_without_rule(rules):
    with pytest.raises(Violation):
        _walk(range(WALKS_AT_NIGHT), rules, loses_disk=True)


def test_walk_is_the_same_for_the_same_seed():
    worlds = [World(7, Rules()) for _ in range(2)]
    for world in worlds:
        world.walk()

    [first, second] = worlds
    assert first.acknowledged == second.acknowledged
    assert msgspec.structs.asdict(first.row) == msgspec.structs.asdict(second.row)
