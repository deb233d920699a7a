"""Changes of a group's assignment: joins, leaves, revocations, and resets with fencing.

Concurrent changes of one group are applied in one transaction, in their order, and the group is rebalanced
once after them. All of them lock the group's row: see `storage.postgres.repositories.groups`. Before leases change, the
group's offsets in the hot store are frozen, and after the commit they are seeded: see `storage.groups.offset_store`.
docs/internals/rebalance.md explains the protocol.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial

import msgspec

from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    GroupFull,
    MemberUnknown,
    MillstreamError,
    OutcomeUnknown,
    StaleGeneration,
    StorageUnavailable,
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
from storage.domain.groups.committed_offsets import GroupOffsets, OffsetEntry
from storage.domain.groups.group import Group, Membership, group_not_found, without_back
from storage.domain.limits import Limits
from storage.domain.names import GroupName
from storage.groups.offset_copier import later_copies
from storage.groups.offset_store import OffsetStore
from storage.postgres.repositories.group_locks import LockedGroup
from storage.postgres.repositories.group_mapping import GroupShard
from storage.postgres.repositories.groups import GroupRows

logger = logging.getLogger(__name__)

FENCED = "A newer instance of this member has joined; this one no longer holds its shards."

_FREEZE_SECONDS = limits.GROUP_FREEZE_MS_MAX / limits.SECOND_MS
_GROUP_CONCURRENCY_MAX = 2  # groups that one process changes: each needs a connection to Postgres

Step = Callable[[Assignment, int], Assignment]
"""One caller's change of an assignment, given the time in ms. Raises MillstreamError if it is not possible."""


class MembershipChange(msgspec.Struct, frozen=True):
    """One caller's change of a group's assignment.

    It is made by `member_id`, unless that is empty; `revocations_acknowledged` are the shards that this member gives up,
    `offsets` those that a reset sets; with `never_back`, those of them that are ahead of the committed ones. Without
    `rebalances` the group is only seeded, for a commit that the hot store could not decide.
    """

    step: Step
    member_id: MemberId = ""
    revocations_acknowledged: frozenset[int] = frozenset()
    offsets: Mapping[int, int] = {}
    never_back: bool = False
    rebalances: bool = True


class ChangeResult(msgspec.Struct, frozen=True):
    """The result of a change: the assignment, and the offsets committed before it.

    `membership`: that of the member that made it.
    """

    assignment: Assignment
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


def advancing(finished: Mapping[int, bool]) -> Step:
    """Return the step of a mirror that moves a group without members.

    It is refused with StaleGeneration for a group with members.
    """
    fencing = resetting(finished)

    def step(before: Assignment, now_ms: int) -> Assignment:
        if before.members:
            raise StaleGeneration("The group has members.")
        return fencing(before, now_ms)

    return step


class GroupCoordinator:
    """Coordinator of group changes, which also records that the database is reachable."""

    def __init__(self, rows: GroupRows, clock: Clock, limits: Limits, hot: OffsetStore) -> None:
        self._rows = rows
        self._hot = hot
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
        async with self._turns:
            async with self._rows.lock_assignment(name, self.now()) as locked:
                if locked is None:
                    return [group_not_found(name)] * len(changes)
                after, refusals = _decide(locked, changes)
                fence = await self._take_offsets(
                    locked, is_changed=_changes(locked, after, changes)
                )
                committed = locked.committed
                await _store(locked, after, changes, refusals)
            if fence:
                await self._seed(locked, fence)
            return [
                refusals.get(nth) or _change_result(locked, change, committed)
                for nth, change in enumerate(changes)
            ]

    async def _take_offsets(self, locked: LockedGroup, *, is_changed: bool) -> str:
        """Adopt the hot store's offsets; return the fence if the group had to be frozen.

        Raises StorageUnavailable.
        """
        fence = ""
        offsets = None if is_changed else await self._hot.read(locked.group)
        if offsets is None or not _is_seeded(locked, offsets):
            fence, offsets = await self.freeze(locked.group)
        await locked.take(later_copies(locked.group, offsets, locked.shards))
        return fence

    async def freeze(self, group: Group) -> tuple[str, GroupOffsets]:
        """Freeze a group's offsets, under the lock on its row; return the fence, and the offsets.

        Raises StorageUnavailable.
        """
        fence = secrets.token_hex(8)
        try:
            async with asyncio.timeout(_FREEZE_SECONDS):
                return fence, await self._hot.freeze(group, fence)
        except (TimeoutError, OutcomeUnknown):
            raise StorageUnavailable("The store timed out.") from None

    async def _seed(self, locked: LockedGroup, fence: str) -> None:
        """Accept commits under the new leases; if that fails, the next caller does it."""
        entries = {shard: _entry(row) for shard, row in locked.shards.items()}
        try:
            async with asyncio.timeout(_FREEZE_SECONDS):
                await self._hot.seed(locked.group, fence, entries)
        except (MillstreamError, TimeoutError) as error:
            logger.warning("group_offsets_not_seeded", extra={"reason": str(error)})


def _entry(row: GroupShard) -> OffsetEntry:
    lease = row.lease
    return OffsetEntry(lease.generation, lease.owner, row.committed, row.committed_at_ms)


def _is_seeded(locked: LockedGroup, offsets: GroupOffsets) -> bool:
    """Return whether the hot store decides by the leases in the group's rows."""
    if offsets.generation != locked.group.generation:
        return False
    leases = {
        shard: (entry.lease_generation, entry.owner) for shard, entry in offsets.shards.items()
    }
    return leases == {
        shard: (row.lease.generation, row.lease.owner) for shard, row in locked.shards.items()
    }


def _decide(
    locked: LockedGroup, changes: Sequence[MembershipChange]
) -> tuple[Assignment, dict[int, MillstreamError]]:
    """Return the assignment after the changes, and the rejected ones' errors by index."""
    after, refusals = locked.assignment, dict[int, MillstreamError]()
    for nth, change in enumerate(changes):
        try:
            after = change.step(after, locked.now_ms)
        except MillstreamError as error:
            refusals[nth] = error
    if not _rebalances(changes):
        return after, refusals
    after = rebalance(
        after,
        locked.lineage,
        locked.group.spec.patience,
        locked.now_ms,
        grace_from_ms=locked.back_since_ms,
        revocations_acknowledged=_revocations_acknowledged(after, changes),
    )
    return after, refusals


def _rebalances(changes: Sequence[MembershipChange]) -> bool:
    return any(change.rebalances for change in changes)


def _changes(locked: LockedGroup, after: Assignment, changes: Sequence[MembershipChange]) -> bool:
    """Return whether leases or committed offsets are to change."""
    before = locked.assignment
    is_same = (after.generation, after.leases) == (before.generation, before.leases)
    return not is_same or any(change.offsets for change in changes)


async def _store(
    locked: LockedGroup,
    after: Assignment,
    changes: Sequence[MembershipChange],
    refusals: Container[int],
) -> None:
    if not _rebalances(changes):
        return  # nor would the mark of the lineage be right
    await locked.store(after)
    shards = {lease.shard for lease in after.leases}
    for nth, change in enumerate(changes):
        if nth not in refusals:
            offsets = {shard: at for shard, at in change.offsets.items() if shard in shards}
            is_free = not change.never_back
            await locked.move(offsets if is_free else without_back(offsets, locked.committed))


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
    return ChangeResult(locked.assignment, membership, committed)
