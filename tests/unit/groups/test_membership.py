"""A proxied group member whose session expired, and that cannot rejoin at first."""

from typing import Any, cast

import pytest

from consumers.subscriptions.group_membership import Changes, OrderedGroupMember
from storage.domain.errors import MemberUnknown, StorageUnavailable
from storage.domain.groups.group import Group, GroupSpec, MemberShard, Membership
from storage.domain.names import GroupName
from storage.groups.engine import Groups

NAME = GroupName("default", "readers")


class Told:
    """Groups that return or raise the given answers in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]

    async def join(self, name: GroupName, *, member_id: str) -> Membership:
        return self._next()

    async def heartbeat(self, name: GroupName, member: str, **about: Any) -> Membership:
        return self._next()

    def _next(self) -> Membership:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast(Membership, answer)


def member_of(*answers: Any) -> OrderedGroupMember:
    return OrderedGroupMember(cast(Groups, Told(*answers)), NAME, "alice")


def membership(generation: int, *shards: int) -> Membership:
    group = Group(
        group_id="g",
        name=NAME,
        spec=GroupSpec(stream="clicks"),
        stream_id="s",
        generation=generation,
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )
    places = tuple(MemberShard(shard, generation, None) for shard in shards)
    return Membership(group=group, member_id="alice", assigned=places, revoked=())


async def test_member_keeps_its_group_while_rejoin_fails():
    """Readers of its shards needed the group meanwhile, and raised an AssertionError."""
    member = member_of(membership(1, 0), MemberUnknown(), StorageUnavailable())
    await member.beat()

    with pytest.raises(StorageUnavailable):
        await member.beat()

    assert member.generation == 1
    assert [*member.owned] == [0]


async def test_lost_shards_are_reported_after_delayed_rejoin():
    """A failed join had discarded the shards, so no reader was stopped."""
    member = member_of(
        membership(1, 0, 1),
        MemberUnknown(),
        StorageUnavailable(),
        MemberUnknown(),
        membership(3, 1),
    )
    await member.beat()
    with pytest.raises(StorageUnavailable):
        await member.beat()

    changes = await member.beat()

    assert changes == Changes(revoked=(0, 1), assigned=(MemberShard(1, 3, None),))
    assert (member.generation, [*member.owned]) == (3, [1])
