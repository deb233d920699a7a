"""Consumer group member on a client's behalf: heartbeats and assignments.

assigned ──▶ owned ──▶ revoking ──released, or the group's revocation timeout is over──▶ revoked
               └────────────── the member's heartbeats stopped for too long ───────────────▲
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
        self.owned: dict[int, MemberShard] = {}
        self.revoking: set[int] = set()
        self._released: set[int] = set()
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
        reported = self.owned.keys() - self._released
        try:
            membership = await self._groups.heartbeat(
                self.name, self.member_id, generation=self.generation, owned=reported
            )
        except (MemberUnknown, StaleGeneration):
            return await self._rejoin()
        return self._changed(membership)

    async def _rejoin(self) -> Changes:
        """Join again after the member was silent too long and lost all its shards to others.

        Its state changes only once it has joined, so that no change is lost if the join fails.
        """
        membership = await self._groups.join(self.name, member_id=self.member_id)
        lost = tuple(self.owned)
        self.owned, self.revoking, self._released = {}, set(), set()
        joined = self._changed(membership)
        return Changes(lost, joined.revoking, joined.assigned)

    def _changed(self, membership: Membership) -> Changes:
        self._membership = membership
        assigned = {shard_state.shard: shard_state for shard_state in membership.assigned}
        to_release = {shard_state.shard for shard_state in membership.revoked}
        revoked = tuple(
            shard for shard in self.owned if self._is_revoked(shard, assigned, to_release)
        )
        for shard in revoked:
            del self.owned[shard]
            self.revoking.discard(shard)
            self._released.discard(shard)
        revoking = tuple(
            shard for shard in self.owned if shard in to_release and shard not in self.revoking
        )
        self.revoking.update(revoking)
        new = tuple(
            shard_state for shard, shard_state in assigned.items() if shard not in self.owned
        )
        self.owned.update({shard_state.shard: shard_state for shard_state in new})
        return Changes(revoked, revoking, new)

    def _is_revoked(
        self, shard: int, assigned: dict[int, MemberShard], to_release: set[int]
    ) -> bool:
        if shard in to_release:
            return False
        now = assigned.get(shard)
        return now is None or now.generation != self.owned[shard].generation

    def release(self, shards: Iterable[int]) -> bool:
        """Mark these shards as finished, if they are being revoked; return whether any were.

        The next heartbeat releases them.
        """
        done = self.revoking.intersection(shards) - self._released
        self._released |= done
        return bool(done)

    async def leave(self) -> None:
        """Leave the group and release all shards immediately.

        Raises MemberUnknown, StaleGeneration.
        """
        if self._membership is not None:
            generation, self._membership = self.generation, None
            await self._groups.leave(self.name, self.member_id, generation=generation)
