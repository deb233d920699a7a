"""Consumer group member on a client's behalf: heartbeats and assignments.

assigned ──▶ held ──▶ revoking ──given up, or the group's patience is over──▶ revoked
              └───────────── the member was silent for too long ─────────────────▲
"""

from collections.abc import Iterable

import msgspec

from storage.domain.errors import MemberUnknown, StaleGeneration
from storage.domain.groups.group import Group, MemberShard, Membership
from storage.domain.names import GroupName
from storage.groups.engine import Groups


class Changes(msgspec.Struct, frozen=True):
    """The changes of an assignment that a heartbeat returned.

    A shard may be both revoked and assigned again: then the group was reset in the meantime.
    """

    revoked: tuple[int, ...] = ()
    revoking: tuple[int, ...] = ()
    assigned: tuple[MemberShard, ...] = ()


class OrderedGroupMember:
    """One member of an ordered group."""

    def __init__(self, groups: Groups, name: GroupName, member_id: str) -> None:
        self._groups = groups
        self.name = name
        self.member_id = member_id
        self.held: dict[int, MemberShard] = {}
        self.revoking: set[int] = set()
        self._given_up: set[int] = set()
        self._membership: Membership | None = None

    @property
    def group(self) -> Group:
        """The group as of the last heartbeat."""
        assert self._membership is not None, "a member has joined"
        return self._membership.group

    @property
    def generation(self) -> int:
        """The generation for the member's commits."""
        return self.group.generation

    async def beat(self) -> Changes:
        """Join, or send a heartbeat; return the changes of the assignment.

        Raises GroupNotFound, GroupFull, ValidationFailed for a simple group.
        """
        if self._membership is None:
            return self._changed(await self._groups.join(self.name, member_id=self.member_id))
        owned = self.held.keys() - self._given_up
        try:
            heard = await self._groups.heartbeat(
                self.name, self.member_id, generation=self.generation, owned=owned
            )
        except (MemberUnknown, StaleGeneration):
            return await self._anew()
        return self._changed(heard)

    async def _anew(self) -> Changes:
        """Join again after the member was silent too long and lost all its shards to others.

        Its state changes only once it has joined, so that no change is lost if the join fails.
        """
        membership = await self._groups.join(self.name, member_id=self.member_id)
        lost = tuple(self.held)
        self.held, self.revoking, self._given_up = {}, set(), set()
        joined = self._changed(membership)
        return Changes(lost, joined.revoking, joined.assigned)

    def _changed(self, heard: Membership) -> Changes:
        self._membership = heard
        assigned = {place.shard: place for place in heard.assigned}
        to_give_up = {place.shard for place in heard.revoked}
        revoked = tuple(shard for shard in self.held if self._is_gone(shard, assigned, to_give_up))
        for shard in revoked:
            del self.held[shard]
            self.revoking.discard(shard)
            self._given_up.discard(shard)
        revoking = tuple(
            shard for shard in self.held if shard in to_give_up and shard not in self.revoking
        )
        self.revoking.update(revoking)
        new = tuple(place for shard, place in assigned.items() if shard not in self.held)
        self.held.update({place.shard: place for place in new})
        return Changes(revoked, revoking, new)

    def _is_gone(self, shard: int, assigned: dict[int, MemberShard], to_give_up: set[int]) -> bool:
        if shard in to_give_up:
            return False
        now = assigned.get(shard)
        return now is None or now.generation != self.held[shard].generation

    def give_up(self, shards: Iterable[int]) -> bool:
        """Mark these shards as finished, if they are to be given up; return whether any were.

        The next heartbeat gives them up.
        """
        done = self.revoking.intersection(shards) - self._given_up
        self._given_up |= done
        return bool(done)

    async def leave(self) -> None:
        """Leave the group and give up all shards immediately.

        Raises MemberUnknown.
        """
        if self._membership is not None:
            self._membership = None
            await self._groups.leave(self.name, self.member_id)
