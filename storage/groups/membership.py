"""Group membership: join, heartbeat, leave, with heartbeats batched into one statement."""

import secrets
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from storage.concurrency.batcher import Batcher
from storage.domain.errors import (
    MemberUnknown,
    MillstreamError,
    StaleGeneration,
    ValidationFailed,
)
from storage.domain.groups.assignment import MemberId
from storage.domain.groups.committed_offsets import GroupOffsets
from storage.domain.groups.group import Group, GroupKind, Membership, group_not_found
from storage.domain.names import GroupName, check_name
from storage.groups.coordinator import (
    FENCED,
    GroupCoordinator,
    MembershipChange,
    joining,
    leaving,
    reevaluate,
)
from storage.groups.offset_store import OffsetStore
from storage.groups.offsets import OffsetCommitter
from storage.postgres.repositories.groups import GroupRows, HeartbeatResult, MemberHeartbeat


class GroupMembership:
    """The members that are connected to this process."""

    def __init__(
        self,
        rows: GroupRows,
        hot: OffsetStore,
        changes: GroupCoordinator,
        offsets: OffsetCommitter,
    ) -> None:
        self._rows = rows
        self._hot = hot
        self._coordinator = changes
        self._offsets = offsets
        self._beats = Batcher[MemberHeartbeat, HeartbeatResult | None](self._flush_heartbeats)

    async def close(self) -> None:
        """Stop; callers that wait get an error."""
        await self._beats.close()

    async def join(self, name: GroupName, member_id: MemberId, instance_id: str) -> Membership:
        if member_id and instance_id:
            detail = "A static member's name must be its instance id"
            raise ValidationFailed.at("/instance_id", detail, "conflict")
        who = instance_id or member_id or secrets.token_hex(8)
        check_name(who)
        _check_ordered(await self._offsets.find(name))
        step = joining(who, static=bool(instance_id), anew=True)
        return (await self._coordinator.apply(name, MembershipChange(step, who))).membership

    async def heartbeat(
        self,
        name: GroupName,
        member_id: MemberId,
        generation: int | None,
        owned: Collection[int] | None,
    ) -> Membership:
        result = await self._heartbeat(name, member_id, generation)
        if not result.counts:
            raise (StaleGeneration(FENCED) if result.is_member else MemberUnknown)
        owned_shards = set[int]() if owned is None else set(owned)
        revoked = {member_shard.shard for member_shard in result.revoked}
        revocations_acknowledged = (
            frozenset(revoked - owned_shards) if owned is not None else frozenset[int]()
        )
        if result.unsettled or revocations_acknowledged:
            return await self._rebalance(name, member_id, revocations_acknowledged)
        return _membership(result, member_id)

    async def leave(
        self, name: GroupName, member_id: MemberId, *, for_good: bool, generation: int | None
    ) -> None:
        step = leaving(member_id, for_good=for_good, generation=generation)
        await self._coordinator.apply(name, MembershipChange(step))

    async def _heartbeat(
        self, name: GroupName, member_id: MemberId, generation: int | None = None
    ) -> HeartbeatResult:
        result = await self._beats.submit(MemberHeartbeat(name, member_id, generation))
        if result is None:
            raise group_not_found(name)
        self._offsets.remember(result.group)
        _check_ordered(result.group)
        return result

    async def _flush_heartbeats(
        self, beats: Sequence[MemberHeartbeat]
    ) -> Sequence[HeartbeatResult | MillstreamError | None]:
        """Record heartbeats, and complete their results by the offsets committed last.

        A group that the hot store cannot decide about must be settled, so that its commits do not need Postgres.
        """
        await self._coordinator.record_database_heartbeat()
        results = await self._rows.heartbeat(beats, self._coordinator.now())
        groups = {result.group.group_id: result.group for result in results if result is not None}
        read = await self._hot.read_many([*groups.values()])
        offsets = dict(zip(groups, read, strict=True))
        return [result and _complete(result, offsets[result.group.group_id]) for result in results]

    async def _rebalance(
        self, name: GroupName, member_id: MemberId, revocations_acknowledged: frozenset[int]
    ) -> Membership:
        change = MembershipChange(reevaluate, member_id, revocations_acknowledged)
        return (await self._coordinator.apply(name, change)).membership

    async def begin_instance(self, name: GroupName, member_id: MemberId) -> Membership:
        """Join as a new instance of a member, which fences the previous one.

        The shards that the member was to give up are given up. Raises GroupFull, ValidationFailed.
        """
        check_name(member_id)
        _check_ordered(await self._offsets.find(name))
        membership = await self._join_again(name, member_id, anew=True)
        return await self._release(membership) if membership.revoked else membership

    async def ensure_member(
        self, name: GroupName, member_id: MemberId, generation: int | None
    ) -> Membership:
        """Return a member's membership, after joining if it had none.

        `generation`: the instance's own, if it sends it. The shards that the member was to give up are given up. Raises
        StaleGeneration when a later instance has joined, GroupFull, ValidationFailed.
        """
        check_name(member_id)
        result = await self._heartbeat(name, member_id, generation)
        if not result.counts and result.is_member:
            raise StaleGeneration(FENCED)
        if not result.counts:
            return await self._join_again(name, member_id, anew=False)
        membership = _membership(result, member_id)
        if not result.unsettled and not result.revoked:
            return membership
        try:
            return await self._release(membership)
        except MemberUnknown:  # found silent a moment ago
            return await self.ensure_member(name, member_id, generation)

    async def _join_again(self, name: GroupName, member_id: MemberId, *, anew: bool) -> Membership:
        step = joining(member_id, static=None, anew=anew)
        return (await self._coordinator.apply(name, MembershipChange(step, member_id))).membership

    async def _release(self, membership: Membership) -> Membership:
        """Give up the shards that are being revoked, and rebalance."""
        revoked = frozenset(place.shard for place in membership.revoked)
        return await self._rebalance(membership.group.name, membership.member_id, revoked)


def _check_ordered(group: Group) -> None:
    if group.spec.kind is GroupKind.SIMPLE:
        raise ValidationFailed.at("/member", "A simple group cannot have members", "not_supported")


def _complete(
    result: HeartbeatResult, offsets: GroupOffsets | MillstreamError
) -> HeartbeatResult | MillstreamError:
    if isinstance(offsets, MillstreamError) or result.group.spec.kind is GroupKind.SIMPLE:
        return offsets if isinstance(offsets, MillstreamError) else result
    return replace(
        result,
        unsettled=result.unsettled or offsets.generation != result.group.generation,
        assigned=offsets.latest(result.assigned),
        revoked=offsets.latest(result.revoked),
    )


def _membership(result: HeartbeatResult, member_id: MemberId) -> Membership:
    return Membership(
        group=result.group,
        member_id=member_id,
        assigned=result.assigned,
        revoked=result.revoked,
    )
