"""Changes of a group's assignment: who joins, leaves, gives up a shard; what a reset fences.

Changes of one group that come at a time are done in one transaction, in their order, and what follows from
them is settled once. All of them hold the group's row: see `storage.postgres.repositories.groups`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import GroupFull, GroupNotFound, MemberUnknown, MillstreamError
from storage.domain.groups.assignment import (
    Assignment,
    Member,
    MemberId,
    fence,
    join,
    leave,
    settle,
)
from storage.domain.groups.group import Membership
from storage.domain.limits import Limits
from storage.domain.names import GroupName
from storage.postgres.repositories.group_locks import LockedGroup
from storage.postgres.repositories.groups import GroupRows

_AT_ONCE = 2  # groups that one process changes: each needs a connection to Postgres

Step = Callable[[Assignment, int], Assignment]
"""What one caller wants changed, given the time in ms. Raises MillstreamError when that cannot be."""


class Change(msgspec.Struct, frozen=True):
    """One caller's change. It speaks for `member_id`, unless that is empty; `given_up` are that member's shards,
    `offsets` what a reset sets."""

    step: Step
    member_id: MemberId = ""
    given_up: frozenset[int] = frozenset()
    offsets: Mapping[int, int] = {}


class Changed(msgspec.Struct, frozen=True):
    """What stands after a change: for its member, and what had been committed before it."""

    membership: Membership
    committed_before: Mapping[int, int | None]


def nothing_else(before: Assignment, _now_ms: int) -> Assignment:
    """The step of who only wants the group settled."""
    return before


def joining(member_id: MemberId, *, static: bool, anew: bool) -> Step:
    """The step of a member that joins; `anew`: also when it is one, and then its former self is fenced."""

    def step(before: Assignment, now_ms: int) -> Assignment:
        known = before.member(member_id)
        if known is not None and not known.away and not anew:
            return before
        if known is None and len(before.members) >= limits.MEMBERS_MAX:
            raise GroupFull(f"A group has at most {limits.MEMBERS_MAX} members.")
        returns = not anew and known is not None and known.static
        member = Member(
            member_id=member_id,
            static=static or returns,
            joined_generation=0,
            joined_at_ms=now_ms,
            heartbeat_ms=now_ms,
        )
        return join(before, member)

    return step


def leaving(member_id: MemberId, *, for_good: bool) -> Step:
    """The step of a member that goes."""

    def step(before: Assignment, _now_ms: int) -> Assignment:
        if before.member(member_id) is None:
            raise MemberUnknown
        return leave(before, member_id, for_good=for_good)

    return step


def resetting(finished: Mapping[int, bool]) -> Step:
    """The step that fences the shards of a reset; a shard that is gone since is left out."""

    def step(before: Assignment, _now_ms: int) -> Assignment:
        return fence(before, finished)

    return step


class GroupCoordinator:
    """Does changes, and notes that the database is there."""

    def __init__(self, rows: GroupRows, clock: Clock, known: Limits) -> None:
        self._rows = rows
        self._clock = clock
        self._limits = known
        self._together: dict[GroupName, Batcher[Change, Changed]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._attending = asyncio.Lock()
        self._attended_ms: int | None = None

    async def close(self) -> None:
        """End what is under way."""
        for together in list(self._together.values()):
            await together.close()

    def now(self) -> int | None:
        """The time as queries take it: None for the database's own, so that all processes agree."""
        told = self._clock.script_time()
        return int(told) if told else None

    async def attend(self) -> None:
        """Note that the database is there, before anybody is found silent: once a second at most."""
        async with self._attending:
            now_ms = self._clock.now_ms()
            last = self._attended_ms
            if last is None or not 0 <= now_ms - last < limits.ATTENDANCE_MS:
                await self._rows.attend(self._limits.outage_ms, self.now())
                self._attended_ms = now_ms

    async def do(self, name: GroupName, change: Change) -> Changed:
        """Do a change, and settle the group. Raises GroupNotFound, and what the step raises."""
        together = self._together.get(name)
        if together is None:
            together = self._together[name] = Batcher(
                partial(self._do, name), when_idle=lambda: self._together.pop(name, None)
            )
        return await together.ask(change)

    async def _do(
        self, name: GroupName, changes: Sequence[Change]
    ) -> Sequence[Changed | MillstreamError]:
        await self.attend()
        async with self._turns, self._rows.held(name, self.now()) as held:
            if held is None:
                return [GroupNotFound(f"There is no group '{name.name}'.")] * len(changes)
            committed = held.committed
            refusals = await _apply(held, changes)
            return [
                refusals.get(nth) or _told(held, change, committed)
                for nth, change in enumerate(changes)
            ]


async def _apply(held: LockedGroup, changes: Sequence[Change]) -> dict[int, MillstreamError]:
    """Store what the changes make of the group; those that cannot be, by their places."""
    after, refusals = held.assignment, dict[int, MillstreamError]()
    for nth, change in enumerate(changes):
        try:
            after = change.step(after, held.now_ms)
        except MillstreamError as error:
            refusals[nth] = error
    after = settle(
        after,
        held.lineage,
        held.group.spec.patience,
        held.now_ms,
        grace_from_ms=held.back_since_ms,
        given_up=_given_up(after, changes),
    )
    await held.store(after)
    there = {lease.shard for lease in after.leases}
    for change in changes:
        await held.move({shard: at for shard, at in change.offsets.items() if shard in there})
    return refusals


def _given_up(assignment: Assignment, changes: Sequence[Change]) -> set[int]:
    """Of what members say they give up, what is theirs."""
    said = {(change.member_id, shard) for change in changes for shard in change.given_up}
    return {lease.shard for lease in assignment.leases if (lease.owner, lease.shard) in said}


def _told(
    held: LockedGroup, change: Change, committed: Mapping[int, int | None]
) -> Changed | MillstreamError:
    """What the caller is told: of a member that is none, only that."""
    member = held.assignment.member(change.member_id)
    if change.member_id and (member is None or member.away):
        return MemberUnknown()
    membership = Membership(
        group=held.group,
        member_id=change.member_id,
        assigned=held.places(change.member_id, revoked=False),
        revoked=held.places(change.member_id, revoked=True),
    )
    return Changed(membership, committed)
