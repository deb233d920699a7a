"""Which member of a consumer group reads which shard: rules that depend on their arguments alone.

    a shard   waiting ──▶ free ──▶ owned ──▶ revoking ──▶ free ──▶ …          ──▶ finished
              for its               ▲           │                                 closed, and read to
              parents               └───────────┘ wanted back before              its end by the group
                                                  it was given up

A shard goes from one member to another by being revoked first: its owner keeps it, and may commit, until it
gives it up, loses its membership, or `revoke_by_ms` passes. Every change raises the group's generation, and a
lease remembers the generation it was granted in, so a shard has one owner in each generation (G1), and a commit
that carries an older generation than the lease's is known to be stale (G2).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

MemberId = str


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A reader of a group. `joined_generation` is that of its latest join: what is older is not its own any more.

    A static member (`static`) keeps its shards for a while when it is silent; `away`: it said that it goes.
    """

    member_id: MemberId
    static: bool = False
    away: bool = False
    joined_generation: int
    joined_at_ms: int
    heartbeat_ms: int


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """One shard as the group sees it: who reads it since which generation, and whether it is to give it up."""

    shard: int
    owner: MemberId | None = None
    generation: int = 0
    revoke_by_ms: int | None = None
    finished: bool = False


class Link(msgspec.Struct, frozen=True):
    """A shard's place in the lineage of its stream."""

    shard: int
    parents: tuple[int, ...] = ()


class Patience(msgspec.Struct, frozen=True):
    """How long a group waits: for a heartbeat, for a static member's return, for a shard to be given up."""

    session_ms: int
    static_ms: int
    revoke_ms: int


class Assignment(msgspec.Struct, frozen=True):
    """Members and leases of a group in one generation, each in the order of its names."""

    generation: int
    members: tuple[Member, ...]
    leases: tuple[Lease, ...]

    def member(self, member_id: MemberId) -> Member | None:
        """The member of that name, if it is one."""
        return next((one for one in self.members if one.member_id == member_id), None)


def deadline_ms(member: Member, patience: Patience, grace_from_ms: int = 0) -> int:
    """When a silent member is no longer one. After an outage of the store, from `grace_from_ms` on, everyone
    has all of its time again."""
    allowed = patience.static_ms if member.static else patience.session_ms
    return max(member.heartbeat_ms, grace_from_ms) + max(allowed, patience.session_ms)


def eligible(lineage: Iterable[Link], finished: Collection[int]) -> list[int]:
    """The shards that a group may read now: not finished, and all their parents are, or have expired."""
    lineage = list(lineage)
    unfinished = {link.shard for link in lineage} - set(finished)
    return sorted(
        link.shard
        for link in lineage
        if link.shard in unfinished and unfinished.isdisjoint(link.parents)
    )


def assign(
    shards: Iterable[int], members: Iterable[MemberId], owners: Mapping[int, MemberId]
) -> dict[int, MemberId]:
    """Who should read each shard: as evenly as can be, and with as few changes of `owners` as that allows.

    The same arguments give the same answer, whatever their order. Nobody is given anything without members.
    """
    wanted, names = sorted(shards), sorted(members)
    if not names:
        return {}
    held: dict[MemberId, list[int]] = {name: [] for name in names}
    for shard in wanted:
        if owners.get(shard) in held:
            held[owners[shard]].append(shard)
    quotas = _quotas(len(wanted), held)
    target = {shard: name for name in names for shard in held[name][: quotas[name]]}
    free = iter([shard for shard in wanted if shard not in target])
    for name in names:
        for _ in range(quotas[name] - len(held[name][: quotas[name]])):
            target[next(free)] = name
    return target


def _quotas(shards: int, held: Mapping[MemberId, Sequence[int]]) -> dict[MemberId, int]:
    """Equal shares; what does not divide goes to those who hold most, so that the fewest shards move."""
    share, extra = divmod(shards, len(held))
    by_holding = sorted(held, key=lambda name: (-len(held[name]), name))
    return {name: share + (nth < extra) for nth, name in enumerate(by_holding)}


def join(before: Assignment, member: Member) -> Assignment:
    """With a new member, or a known one that starts anew: what it held is granted to it again, in a later
    generation, so that nothing its former self sends counts."""
    generation = before.generation + 1
    others = [one for one in before.members if one.member_id != member.member_id]
    joined = replace(member, joined_generation=generation)
    leases = [
        replace(lease, generation=generation) if lease.owner == member.member_id else lease
        for lease in before.leases
    ]
    return Assignment(generation, _by_name([*others, joined]), tuple(leases))


def leave(before: Assignment, member_id: MemberId, *, for_good: bool) -> Assignment:
    """Without a member; a static one is only away, unless it goes for good."""
    members = []
    for member in before.members:
        if member.member_id != member_id:
            members.append(member)
        elif member.static and not for_good:
            members.append(replace(member, away=True))
    return Assignment(before.generation + 1, tuple(members), before.leases)


def fence(before: Assignment, finished: Mapping[int, bool]) -> Assignment:
    """The named shards are granted anew to whoever has them, in a later generation: what was read of them
    before counts no more. Each is then finished or not, as is said of it."""
    generation = before.generation + 1
    leases = [
        replace(lease, generation=generation, finished=finished[lease.shard])
        if lease.shard in finished
        else lease
        for lease in before.leases
    ]
    return Assignment(generation, before.members, tuple(leases))


def settle(
    before: Assignment,
    lineage: Sequence[Link],
    patience: Patience,
    now_ms: int,
    *,
    grace_from_ms: int = 0,
    given_up: Collection[int] = (),
) -> Assignment:
    """What follows from the time, the shards there are, and what members gave up of what is being revoked.

    Silent members go; shards of nobody are granted; those that are to move are revoked first.
    """
    members = tuple(
        one for one in before.members if now_ms < deadline_ms(one, patience, grace_from_ms)
    )
    leases = _of_lineage(before.leases, lineage)
    readable = set(eligible(lineage, [lease.shard for lease in leases if lease.finished]))
    names = {one.member_id for one in members}
    kept = {
        lease.shard: lease.owner
        for lease in leases
        if lease.owner is not None
        and lease.owner in names
        and lease.shard in readable
        and not _is_given_up(lease, given_up, now_ms)
    }
    target = assign(readable, names, kept)
    generation = before.generation + 1
    after = tuple(
        _next_lease(
            lease, kept.get(lease.shard), target.get(lease.shard), generation, now_ms, patience
        )
        for lease in leases
    )
    same = _stands(before, members, after)
    return Assignment(before.generation if same else generation, members, after)


def _of_lineage(leases: Iterable[Lease], lineage: Iterable[Link]) -> list[Lease]:
    """A lease for each shard there is. That of an expired one goes, unless the group had not finished it: then
    it stays, of nobody, to tell that something was lost."""
    known = {lease.shard: lease for lease in leases}
    there = {link.shard for link in lineage}
    lost = {shard for shard, lease in known.items() if not lease.finished and shard not in there}
    return [known.get(shard, Lease(shard=shard)) for shard in sorted(there | lost)]


def _is_given_up(lease: Lease, given_up: Collection[int], now_ms: int) -> bool:
    """Only what is being revoked can be given up, or is taken when its time has passed."""
    if lease.revoke_by_ms is None:
        return False
    return lease.shard in given_up or lease.revoke_by_ms <= now_ms


def _next_lease(
    lease: Lease,
    owner: MemberId | None,
    target: MemberId | None,
    generation: int,
    now_ms: int,
    patience: Patience,
) -> Lease:
    if owner is None:
        if target is None:
            return replace(lease, owner=None, revoke_by_ms=None)
        return replace(lease, owner=target, generation=generation, revoke_by_ms=None)
    if owner == target:
        return replace(lease, revoke_by_ms=None)
    revoke_by_ms = lease.revoke_by_ms or now_ms + patience.revoke_ms
    return replace(lease, revoke_by_ms=revoke_by_ms)


def _stands(before: Assignment, members: Sequence[Member], leases: Sequence[Lease]) -> bool:
    """Whether nothing a member could notice has changed. A shard that nobody has had yet is no news."""
    if [one.member_id for one in members] != [one.member_id for one in before.members]:
        return False
    return [lease for lease in leases if lease.owner] == [
        lease for lease in before.leases if lease.owner
    ]


def _by_name(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda one: one.member_id))
