"""Shard assignment: the rules one by one, and in any order."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.groups.assignment import (
    Assignment,
    Link,
    Member,
    RevocationPolicy,
    ShardLease,
    assign,
    eligible,
    fence,
    join,
    leave,
    rebalance,
)
from storage.domain.groups.group import without_holes

PATIENCE = RevocationPolicy(session_ms=30, static_ms=300, revoke_ms=60)
FOUR = [Link(0), Link(1), Link(2), Link(3)]

SHARDS = st.sets(st.integers(0, 30))
MEMBERS = st.sets(st.sampled_from("abcdefgh"))
OWNERS = st.dictionaries(st.integers(0, 30), st.sampled_from("abcdefghxy"))


def member(name: str, *, now_ms: int = 0, static: bool = False) -> Member:
    return Member(
        member_id=name, static=static, joined_generation=0, joined_at_ms=now_ms, heartbeat_ms=now_ms
    )


def group(*names: str, lineage: Sequence[Link] = FOUR, static: bool = False) -> Assignment:
    """A group after these members joined one by one and gave up shards as required."""
    assignment = Assignment(0, (), ())
    for name in names:
        assignment = join(assignment, member(name, static=static))
        for _ in range(2):
            assignment = rebalance(
                assignment, lineage, PATIENCE, 0, revocations_acknowledged=range(100)
            )
    return assignment


def owners(assignment: Assignment) -> dict[int, str]:
    return {lease.shard: lease.owner for lease in assignment.leases if lease.owner is not None}


def lease(assignment: Assignment, shard: int) -> ShardLease:
    return next(each_lease for each_lease in assignment.leases if each_lease.shard == shard)


# Target assignment


@given(SHARDS, MEMBERS, OWNERS)
def test_all_shards_are_assigned_evenly(shards, members, owned):
    target = assign(shards, members, owned)

    assert set(target) == (shards if members else set())
    assert set(target.values()) <= members
    if members:
        sizes = [Counter(target.values())[name] for name in members]
        assert max(sizes) - min(sizes) <= 1


@given(SHARDS, MEMBERS, OWNERS)
def test_assignment_moves_the_fewest_shards(shards, members, owned):
    target = assign(shards, members, owned)

    if members:
        counts = Counter(owned[shard] for shard in shards if owned.get(shard) in members)
        share, extra = divmod(len(shards), len(members))
        most = sorted((counts[name] for name in members), reverse=True)
        could_stay = sum(min(n, share + (nth < extra)) for nth, n in enumerate(most))
        stay = sum(owned.get(shard) == name for shard, name in target.items())
        assert stay == could_stay


@given(SHARDS, MEMBERS, OWNERS)
def test_assignment_is_stable(shards, members, owned):
    target = assign(shards, members, owned)

    assert assign(shards, members, target) == target


# Eligible shards


def test_child_shard_waits_for_all_parents():
    merged = [Link(0), Link(1), Link(2, parents=(0, 1))]

    assert eligible(merged, []) == [0, 1]
    assert eligible(merged, [0]) == [1]
    assert eligible(merged, [0, 1]) == [2]


def test_expired_parents_are_ignored():
    assert eligible([Link(5, parents=(1, 2))], []) == [5]


@given(st.data())
def test_shard_is_read_only_after_its_parents(data):
    lineage = [
        Link(
            shard, tuple(data.draw(st.sets(st.integers(0, shard - 1), max_size=2)) if shard else ())
        )
        for shard in range(data.draw(st.integers(1, 12)))
    ]
    finished: set[int] = set()
    while readable := eligible(lineage, finished):
        for shard in readable:
            assert set(lineage[shard].parents) <= finished
        finished.add(data.draw(st.sampled_from(readable)))
    assert finished == {link.shard for link in lineage}


def test_expired_unfinished_shard_keeps_its_lease():
    split = [Link(0), Link(1, parents=(0,)), Link(2, parents=(0,))]
    unread = rebalance(group("a", lineage=split), split[1:], PATIENCE, 1)
    finished = rebalance(fence(group("a", lineage=split), {0: True}), split[1:], PATIENCE, 1)

    assert owners(unread) == owners(finished) == {1: "a", 2: "a"}
    assert [each_lease.shard for each_lease in unread.leases] == [0, 1, 2]
    assert [each_lease.shard for each_lease in finished.leases] == [1, 2]


# Transfer of shards


def test_first_member_owns_all_shards_immediately():
    assert owners(group("a")) == dict.fromkeys(range(4), "a")


def test_second_member_waits_until_shards_are_given_up():
    joined = rebalance(join(group("a"), member("b")), FOUR, PATIENCE, 5)

    assert owners(joined) == dict.fromkeys(range(4), "a")
    assert [
        each_lease.shard for each_lease in joined.leases if each_lease.revoke_by_ms is not None
    ] == [2, 3]

    shared = rebalance(joined, FOUR, PATIENCE, 6, revocations_acknowledged=[2])

    assert owners(shared) == {0: "a", 1: "a", 2: "b", 3: "a"}
    assert lease(shared, 2).generation == shared.generation > joined.generation
    assert lease(shared, 0).generation == lease(joined, 0).generation


def test_giving_up_unrevoked_shards_has_no_effect():
    alone = group("a")

    assert rebalance(alone, FOUR, PATIENCE, 1, revocations_acknowledged=range(4)) == alone


def test_shard_is_revoked_when_not_given_up_in_time():
    joined = rebalance(join(group("a"), member("b")), FOUR, PATIENCE, 5)
    beating = Assignment(
        joined.generation,
        tuple(member(each_member.member_id, now_ms=64) for each_member in joined.members),
        joined.leases,
    )

    late = rebalance(beating, FOUR, PATIENCE, 64)
    rebalanced = rebalance(beating, FOUR, PATIENCE, 65)

    assert owners(late) == owners(joined)
    assert Counter(owners(rebalanced).values()) == {"a": 2, "b": 2}


def test_silent_member_loses_its_shards():
    shared = group("a", "b")
    alive = Assignment(
        shared.generation, (member("a", now_ms=30), member("b", now_ms=0)), shared.leases
    )

    assert rebalance(alive, FOUR, PATIENCE, 29) == alive
    after = rebalance(alive, FOUR, PATIENCE, 30)

    assert owners(after) == dict.fromkeys(range(4), "a")
    assert after.generation == shared.generation + 1


def test_sessions_are_extended_after_an_outage():
    shared = group("a", "b")

    assert rebalance(shared, FOUR, PATIENCE, 1_029, grace_from_ms=1_000) == shared
    assert rebalance(shared, FOUR, PATIENCE, 1_030, grace_from_ms=1_000).members == ()


def test_static_member_keeps_its_shards_while_away():
    shared = group("a", "b", static=True)

    away = rebalance(leave(shared, "a", for_good=False), FOUR, PATIENCE, 299)
    gone = rebalance(leave(shared, "a", for_good=True), FOUR, PATIENCE, 299)

    assert Counter(owners(away).values()) == {"a": 2, "b": 2}
    assert owners(gone) == dict.fromkeys(range(4), "b")
    assert rebalance(away, FOUR, PATIENCE, 300).members == ()


def test_rejoining_member_fences_its_earlier_leases():
    before = group("a")

    after = rebalance(join(before, member("a")), FOUR, PATIENCE, 1)

    assert owners(after) == owners(before)
    assert all(each_lease.generation > before.generation for each_lease in after.leases)
    assert after.members[0].joined_generation > before.generation


def test_reset_increments_generation_of_the_lease():
    before = group("a")

    after = fence(before, {1: False})

    assert lease(after, 1).generation == after.generation == before.generation + 1
    assert lease(after, 0) == lease(before, 0)


def test_finished_shard_is_replaced_by_its_children():
    split = [Link(0), Link(1, parents=(0,)), Link(2, parents=(0,))]
    before = group("a", "b", lineage=split)

    after = rebalance(fence(before, {0: True}), split, PATIENCE, 1)

    assert set(owners(before)) == {0}
    assert sorted(owners(after)) == [1, 2]
    assert Counter(owners(after).values()) == {"a": 1, "b": 1}


def test_generation_is_unchanged_when_nothing_changes():
    shared = group("a", "b")

    assert rebalance(shared, FOUR, PATIENCE, 1) == shared


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "leave", "beat", "give up", "finish", "reset"]),
        st.sampled_from("abc"),
        st.integers(0, 40),
    ),
    max_size=30,
)
FAMILY = [Link(0), Link(1), Link(2, (0,)), Link(3, (0,)), Link(4, (1, 3))]


@given(STEPS)
def test_shard_has_one_owner_per_generation(steps):
    """G1: an owner loses a shard only by giving it up, by silence, or by the deadline."""
    now_ms, current = 0, Assignment(0, (), ())
    history: dict[tuple[int, int], str] = {}
    for what, who, number in steps:
        now_ms += number
        before = current
        revocations_acknowledged: Sequence[int] = ()
        match what:
            case "join":
                current = join(current, member(who, now_ms=now_ms))
            case "leave" if current.member(who):
                current = leave(current, who, for_good=True)
            case "beat":
                beating = tuple(
                    member(one.member_id, now_ms=now_ms) if one.member_id == who else one
                    for one in current.members
                )
                current = Assignment(current.generation, beating, current.leases)
            case "give up":
                revocations_acknowledged = [number % 5]
            case "finish":
                current = fence(current, {number % 5: True})
            case "reset":
                current = fence(current, {number % 5: False})
            case _:
                pass
        current = rebalance(
            current, FAMILY, PATIENCE, now_ms, revocations_acknowledged=revocations_acknowledged
        )

        assert current.generation >= before.generation
        names = {one.member_id for one in current.members}
        for one in current.leases:
            if one.owner is None:
                continue
            assert one.owner in names
            assert history.setdefault((one.shard, current.generation), one.owner) == one.owner
            assert one.generation <= current.generation
            was = next((old for old in before.leases if old.shard == one.shard), None)
            if was is not None and was.owner not in (None, one.owner):
                former_is_gone = was.owner not in names
                taken = was.revoke_by_ms is not None and was.revoke_by_ms <= now_ms
                assert former_is_gone or taken or one.shard in revocations_acknowledged
                assert one.generation > was.generation
        finished = [one.shard for one in current.leases if one.finished]
        readable = eligible(FAMILY, finished)
        assert set(owners(current)) == (set(readable) if names else set())


@pytest.mark.parametrize(
    ("first", "next_", "records"), [(0, 10, 5), (3, 10, 2), (4, 4, 0), (9, 3, 0), (2, 5, 1)]
)
def test_records_in_holes_are_not_counted(first, next_, records):
    assert without_holes(first, next_, [(3, 5), (7, 10)]) == records
