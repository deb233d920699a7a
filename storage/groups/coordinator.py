"""Changes of a group's assignment: joins, leaves, revocations, and resets with fencing.

Concurrent changes of one group are applied in one transaction, in their order, and the group is rebalanced
once after them. All of them lock the group's row: see `storage.postgres.repositories.groups`.
docs/internals/rebalance.md explains the protocol.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    GroupFull,
    MemberUnknown,
    MillstreamError,
    StaleGeneration,
)
from storage.domain.groups.assignment import (
    Assignment,
    Member,
    MemberId,
    fence,
    join,
    leave,
    rebalance,
)
from storage.domain.groups.group import Membership, group_not_found
from storage.domain.limits import Limits
from storage.domain.names import GroupName
from storage.groups.assignment_cache import AssignmentCache
from storage.postgres.repositories.group_locks import LockedGroup
from storage.postgres.repositories.groups import GroupRows

FENCED = "A newer instance of this member has joined; this one no longer holds its shards."

_GROUP_CONCURRENCY_MAX = 2  # groups that one process changes: each needs a connection to Postgres

Step = Callable[[Assignment, int], Assignment]
"""One caller's change of an assignment, given the time in ms. Raises MillstreamError if it is not possible."""


class MembershipChange(msgspec.Struct, frozen=True):
    """One caller's change of a group's assignment.

    It is made by `member_id`, unless that is empty; `revocations_acknowledged` are the shards that this member gives up,
    `offsets` those that a reset sets.
    """

    step: Step
    member_id: MemberId = ""
    revocations_acknowledged: frozenset[int] = frozenset()
    offsets: Mapping[int, int] = {}


class ChangeResult(msgspec.Struct, frozen=True):
    """The result of a change: the member's membership, and the offsets committed before it."""

    membership: Membership
    committed_before: Mapping[int, int | None]


def reevaluate(before: Assignment, _now_ms: int) -> Assignment:
    """Change nothing: the step of a caller that only wants the group rebalanced."""
    return before


def joining(member_id: MemberId, *, static: bool | None, anew: bool) -> Step:
    """Return the step of a member that joins; with `static` None, as static as it was.

    With `anew`, also if it is a member already: then its previous instance is fenced.
    """

    def step(before: Assignment, now_ms: int) -> Assignment:
        current = before.member(member_id)
        if current is not None and not current.disconnected and not anew:
            return before
        if current is None and len(before.members) >= limits.MEMBERS_MAX:
            raise GroupFull(f"A group can have at most {limits.MEMBERS_MAX} members.")
        was_static = current is not None and current.static
        member = Member(
            member_id=member_id,
            static=was_static if static is None else static,
            joined_generation=0,
            joined_at_ms=now_ms,
            heartbeat_ms=now_ms,
        )
        return join(before, member)

    return step


def leaving(member_id: MemberId, *, for_good: bool, generation: int | None) -> Step:
    """Return the step of a member that leaves.

    `generation`: the instance's own, if it sends it.
    """

    def step(before: Assignment, _now_ms: int) -> Assignment:
        member = before.member(member_id)
        if member is None:
            raise MemberUnknown
        if generation is not None and generation < member.joined_generation:
            raise StaleGeneration(FENCED)
        return leave(before, member_id, for_good=for_good)

    return step


def resetting(finished: Mapping[int, bool]) -> Step:
    """Return the step that fences the shards of a reset.

    A shard that no longer exists is left out.
    """

    def step(before: Assignment, _now_ms: int) -> Assignment:
        return fence(before, finished)

    return step


class GroupCoordinator:
    """Coordinator of group changes, which also records that the database is reachable."""

    def __init__(
        self, rows: GroupRows, clock: Clock, limits: Limits, assignments: AssignmentCache
    ) -> None:
        self._rows = rows
        self._assignments = assignments
        self._clock = clock
        self._limits = limits
        self._together: dict[GroupName, Batcher[MembershipChange, ChangeResult]] = {}
        self._turns = asyncio.Semaphore(_GROUP_CONCURRENCY_MAX)
        self._attending = asyncio.Lock()
        self._attended_ms: int | None = None

    async def close(self) -> None:
        """Stop the changes in progress."""
        for together in list(self._together.values()):
            await together.close()

    def now(self) -> int | None:
        """Return the time for queries, or None to use the database's, so that all processes agree."""
        script_time = self._clock.script_time()
        return int(script_time) if script_time else None

    async def record_database_heartbeat(self) -> None:
        """Record that the database is reachable, before any member is found silent.

        At most once a second.
        """
        async with self._attending:
            now_ms = self._clock.now_ms()
            last = self._attended_ms
            if last is None or not 0 <= now_ms - last < limits.DATABASE_HEARTBEAT_MS:
                await self._rows.record_database_heartbeat(self._limits.outage_ms, self.now())
                self._attended_ms = now_ms

    async def apply(self, name: GroupName, change: MembershipChange) -> ChangeResult:
        """Apply a change and rebalance the group.

        Raises GroupNotFound, and what the step raises.
        """
        together = self._together.get(name)
        if together is None:
            together = self._together[name] = Batcher(
                partial(self._apply, name), when_idle=lambda: self._together.pop(name, None)
            )
        return await together.submit(change)

    async def _apply(
        self, name: GroupName, changes: Sequence[MembershipChange]
    ) -> Sequence[ChangeResult | MillstreamError]:
        await self.record_database_heartbeat()
        async with self._turns, self._rows.lock_assignment(name, self.now()) as locked:
            if locked is None:
                return [group_not_found(name)] * len(changes)
            committed, generation = locked.committed, locked.group.generation
            refusals = await _apply(locked, changes)
            if locked.group.generation != generation:
                await self._assignments.announce(locked.group)
            return [
                refusals.get(nth) or _change_result(locked, change, committed)
                for nth, change in enumerate(changes)
            ]


async def _apply(
    locked: LockedGroup, changes: Sequence[MembershipChange]
) -> dict[int, MillstreamError]:
    """Apply the changes to the group and store it; return the rejected ones' errors by index."""
    after, refusals = locked.assignment, dict[int, MillstreamError]()
    for nth, change in enumerate(changes):
        try:
            after = change.step(after, locked.now_ms)
        except MillstreamError as error:
            refusals[nth] = error
    after = rebalance(
        after,
        locked.lineage,
        locked.group.spec.patience,
        locked.now_ms,
        grace_from_ms=locked.back_since_ms,
        revocations_acknowledged=_revocations_acknowledged(after, changes),
    )
    await locked.store(after)
    shards = {lease.shard for lease in after.leases}
    for change in changes:
        await locked.move({shard: at for shard, at in change.offsets.items() if shard in shards})
    return refusals


def _revocations_acknowledged(
    assignment: Assignment, changes: Sequence[MembershipChange]
) -> set[int]:
    """Return the shards that members report as given up, and that are theirs."""
    acknowledged = {
        (change.member_id, shard) for change in changes for shard in change.revocations_acknowledged
    }
    return {
        lease.shard for lease in assignment.leases if (lease.owner, lease.shard) in acknowledged
    }


def _change_result(
    locked: LockedGroup, change: MembershipChange, committed: Mapping[int, int | None]
) -> ChangeResult | MillstreamError:
    """Return a caller's result; MemberUnknown for a member that does not exist."""
    member = locked.assignment.member(change.member_id)
    if change.member_id and (member is None or member.disconnected):
        return MemberUnknown()
    membership = Membership(
        group=locked.group,
        member_id=change.member_id,
        assigned=locked.assignments(change.member_id, revoked=False),
        revoked=locked.assignments(change.member_id, revoked=True),
    )
    return ChangeResult(membership, committed)
