"""Change of the primary: fence members, read positions, promote the furthest.

    begin T ─▶ members promise T ─▶ quorum? ─▶ row: primary, epoch T ─▶ it promotes itself ─▶ others attached ─▶ end T
                     │                 └─ no ─▶ end T, members attached to the primary as before
                     └─ one knows T or a later term: stop; another controller is at work, or the row forgot a term

ADR 0080 has the reasons. Each step is conditional on T, in the row and at each member, so a controller that stalls between any two of them changes
nothing later. One that dies leaves a phase unfinished, which another one follows with a higher term.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from storage.domain.replication.replica_set import Phase, ReplicaSet
from storage.hot_store.members import MemberFacts, MemberSteps, Promise
from storage.replication.decisions import choose_primary, highest_term, next_term


class ReplicaSetSteps(Protocol):
    """Steps in Postgres; each returns False if the row has changed."""

    async def read(self) -> ReplicaSet | None:
        """Return the replica set."""
        ...

    async def begin(self, term: int, *, after: ReplicaSet, phase: Phase) -> bool:
        """Begin a term, if the row is still as `after` was read."""
        ...

    async def promote(
        self, term: int, primary: str, *, min_insync_replicas: int | None = None
    ) -> bool:
        """Make a member the primary of the epoch `term`."""
        ...

    async def end(self, term: int) -> bool:
        """Return to the phase `normal`."""
        ...


class TermResult(msgspec.Struct, frozen=True):
    """New primary of an attempt, or None, and the highest term that its members had met."""

    term: int
    primary: str | None = None
    highest: int = 0


async def fail_over(
    rows: ReplicaSetSteps, members: MemberSteps, replica_set: ReplicaSet, highest: int = 0
) -> TermResult:
    """Promote the furthest of a quorum of the members, in a term above `highest`.

    Raises StorageUnavailable; the term is then unfinished, if it began.
    """
    term = next_term(replica_set, highest)
    if not await rows.begin(term, after=replica_set, phase=Phase.FENCE):
        return TermResult(term)
    others = [member for member in replica_set.members if member != replica_set.primary]
    promises = dict(await members.promise(others, term))
    if _are_accepted(promises) and choose_primary(replica_set, promises) is None:
        promises |= await members.promise([replica_set.primary], term)
    return await promote_furthest(rows, members, replica_set, term, promises)


async def switch_over(
    rows: ReplicaSetSteps,
    members: MemberSteps,
    replica_set: ReplicaSet,
    target: str,
    *,
    highest: int = 0,
    min_insync_replicas: int | None = None,
    when_held: Callable[[], Awaitable[bool]] | None = None,
) -> TermResult:
    """Promote `target` if it is furthest once all members are fenced, the present primary too.

    The primary is fenced first, so that the others have all that it has sent, and can continue from one another. `when_held` is awaited in the phase `switch`, in which processes hold their writes back; if it returns False the term
    ends without a change.
    """
    term = next_term(replica_set, highest)
    if not await rows.begin(term, after=replica_set, phase=Phase.SWITCH):
        return TermResult(term)
    if when_held is not None and not await when_held():
        await rows.end(term)
        return TermResult(term)
    promises = dict(await members.promise([replica_set.primary], term))
    promises |= await members.promise(_without(replica_set.members, replica_set.primary), term)
    return await promote_furthest(
        rows,
        members,
        replica_set,
        term,
        promises,
        target=target,
        min_insync_replicas=min_insync_replicas,
    )


async def attach_members(
    rows: ReplicaSetSteps,
    members: MemberSteps,
    replica_set: ReplicaSet,
    facts: Mapping[str, MemberFacts],
) -> None:
    """Attach the members that answer and do not follow the primary.

    They promise the term first, and the row is read again after that: a member that lost its disk has forgotten its promise,
    and a controller that stalled would attach it to an earlier primary.
    """
    detached = [
        address
        for address, state in facts.items()
        if address != replica_set.primary and state.follows != replica_set.primary
    ]
    if not detached:
        return
    promises = await members.promise(detached, replica_set.term, again=True)
    if await rows.read() == replica_set:
        accepted = [address for address, promise in promises.items() if promise.is_accepted]
        await members.attach(accepted, replica_set.primary, replica_set.term)


async def promote_furthest(
    rows: ReplicaSetSteps,
    members: MemberSteps,
    replica_set: ReplicaSet,
    term: int,
    promises: Mapping[str, Promise],
    *,
    target: str | None = None,
    min_insync_replicas: int | None = None,
) -> TermResult:
    """Do the steps that follow the promises; see the module's drawing."""
    highest = highest_term(promises)
    if not _are_accepted(promises):
        return TermResult(term, highest=highest)
    choice = choose_primary(replica_set, promises, target)
    if choice is None:
        if await rows.end(term):
            await members.attach(_without(promises, replica_set.primary), replica_set.primary, term)
        return TermResult(term, highest=highest)
    if not await rows.promote(term, choice, min_insync_replicas=min_insync_replicas):
        return TermResult(term, highest=highest)
    min_insync = min_insync_replicas or replica_set.min_insync_replicas
    return await settle(rows, members, term, choice, fenced=promises, min_insync=min_insync)


async def settle(
    rows: ReplicaSetSteps,
    members: MemberSteps,
    term: int,
    primary: str,
    *,
    fenced: Iterable[str],
    min_insync: int,
) -> TermResult:
    """Promote the member that the row names, attach the fenced others, and end the term."""
    if not await members.promote(primary, term, min_insync):
        return TermResult(term)
    await members.attach(_without(fenced, primary), primary, term)
    if not await rows.end(term):
        return TermResult(term)
    return TermResult(term, primary)


def _are_accepted(promises: Mapping[str, Promise]) -> bool:
    return all(promise.is_accepted for promise in promises.values())


def _without(addresses: Iterable[str], primary: str) -> list[str]:
    return [address for address in addresses if address != primary]
