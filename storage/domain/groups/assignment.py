"""Assignment of shards to the members of a consumer group, by pure functions.

    a shard   waiting ──▶ free ──▶ owned ──▶ revoking ──▶ free ──▶ …          ──▶ finished
              for its               ▲           │                                 closed, and read to
              parents               └───────────┘ assigned back before            its end by the group
                                                  it was released

A shard moves from one member to another by being revoked first: its owner keeps it, and may commit, until it
releases it, loses its membership, or `revoke_by_ms` passes. Every change increments the group's generation, and
a lease records the generation it was granted in, so a shard has one owner in each generation (G1), and a commit
with an older generation than the lease's is known to be stale (G2). docs/internals/rebalance.md has the whole protocol.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

MemberId = str


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a group.

    `joined_generation` is the generation of its latest join: commits with an older one do not belong to this
    instance. A static member (`static`) keeps its shards for a while without heartbeats; `disconnected`: it has announced
    that it leaves; stored as `away`.
    """

    member_id: MemberId
    static: bool = False
    disconnected: bool = msgspec.field(default=False, name="away")
    joined_generation: int
    joined_at_ms: int
    heartbeat_ms: int


class ShardLease(msgspec.Struct, frozen=True, kw_only=True):
    """A group's lease of one shard.

    Its owner, the generation in which it was granted, and the deadline of its revocation, if it is being revoked.
    """

    shard: int
    owner: MemberId | None = None
    generation: int = 0
    revoke_by_ms: int | None = None
    finished: bool = False


class Link(msgspec.Struct, frozen=True):
    """A shard and its parents in the lineage of its stream."""

    shard: int
    parents: tuple[int, ...] = ()


class RevocationPolicy(msgspec.Struct, frozen=True):
    """Timeouts of a group: for a heartbeat, a static member's return, the release of a shard."""

    session_ms: int
    static_ms: int
    revoke_ms: int


class Assignment(msgspec.Struct, frozen=True):
    """Members and leases of a group in one generation, each ordered by name."""

    generation: int
    members: tuple[Member, ...]
    leases: tuple[ShardLease, ...]

    def member(self, member_id: MemberId) -> Member | None:
        """Return the member of that name, or None."""
        return next((one for one in self.members if one.member_id == member_id), None)


def deadline_ms(member: Member, patience: RevocationPolicy, grace_from_ms: int = 0) -> int:
    """Return when a member without heartbeats is removed.

    After an outage of the store, from `grace_from_ms` on, each member has its whole timeout again.
    """
    allowed = patience.static_ms if member.static else patience.session_ms
    return max(member.heartbeat_ms, grace_from_ms) + max(allowed, patience.session_ms)


def eligible(lineage: Iterable[Link], finished: Collection[int]) -> list[int]:
    """Return the shards that a group may read now.

    Those that are not finished, and whose parents all are, or have expired.
    """
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
    """Assign shards to members as evenly as possible, with as few changes as possible.

    `owners` are the present ones. The same arguments give the same result, whatever their order. Without members
    nothing is assigned.
    """
    ordered, names = sorted(shards), sorted(members)
    if not names:
        return {}
    retained: dict[MemberId, list[int]] = {name: [] for name in names}
    for shard in ordered:
        if owners.get(shard) in retained:
            retained[owners[shard]].append(shard)
    quotas = _quotas(len(ordered), retained)
    target = {shard: name for name in names for shard in retained[name][: quotas[name]]}
    free = iter([shard for shard in ordered if shard not in target])
    for name in names:
        for _ in range(quotas[name] - len(retained[name][: quotas[name]])):
            target[next(free)] = name
    return target


def _quotas(shards: int, retained: Mapping[MemberId, Sequence[int]]) -> dict[MemberId, int]:
    """Return equal shares of the shards.

    The remainder goes to the members that have the most shards, so that the fewest move.
    """
    share, extra = divmod(shards, len(retained))
    by_holding = sorted(retained, key=lambda name: (-len(retained[name]), name))
    return {name: share + (nth < extra) for nth, name in enumerate(by_holding)}


def join(before: Assignment, member: Member) -> Assignment:
    """Add a member, or restart an existing one.

    Its leases are granted to it again, in a later generation, so that requests of its previous instance are
    fenced.
    """
    generation = before.generation + 1
    others = [one for one in before.members if one.member_id != member.member_id]
    joined = replace(member, joined_generation=generation)
    leases = [
        replace(lease, generation=generation) if lease.owner == member.member_id else lease
        for lease in before.leases
    ]
    return Assignment(generation, _by_name([*others, joined]), tuple(leases))


def leave(before: Assignment, member_id: MemberId, *, for_good: bool) -> Assignment:
    """Remove a member; mark a static one as disconnected, unless it leaves permanently."""
    members = []
    for member in before.members:
        if member.member_id != member_id:
            members.append(member)
        elif member.static and not for_good:
            members.append(replace(member, disconnected=True))
    return Assignment(before.generation + 1, tuple(members), before.leases)


def fence(before: Assignment, finished: Mapping[int, bool]) -> Assignment:
    """Grant the named shards again to their owners, in a later generation.

    Reads of them before that no longer count. `finished` says for each shard whether it is finished then.
    """
    generation = before.generation + 1
    leases = [
        replace(lease, generation=generation, finished=finished[lease.shard])
        if lease.shard in finished
        else lease
        for lease in before.leases
    ]
    return Assignment(generation, before.members, tuple(leases))


def rebalance(
    before: Assignment,
    lineage: Sequence[Link],
    patience: RevocationPolicy,
    now_ms: int,
    *,
    grace_from_ms: int = 0,
    revocations_acknowledged: Collection[int] = (),
) -> Assignment:
    """Apply the passing of time, the shards that exist, and the shards that members released.

    Only shards that are being revoked can be released. Members without heartbeats are removed; unowned shards
    are granted; shards that are to move are revoked first.
    """
    members = tuple(
        one for one in before.members if now_ms < deadline_ms(one, patience, grace_from_ms)
    )
    leases = _of_lineage(before.leases, lineage)
    readable = set(eligible(lineage, [lease.shard for lease in leases if lease.finished]))
    names = {one.member_id for one in members}
    owners = {
        lease.shard: lease.owner
        for lease in leases
        if lease.owner is not None
        and lease.owner in names
        and lease.shard in readable
        and not _is_acknowledged(lease, revocations_acknowledged, now_ms)
    }
    target = assign(readable, names, owners)
    generation = before.generation + 1
    after = tuple(
        _next_lease(
            lease,
            owner=owners.get(lease.shard),
            target=target.get(lease.shard),
            generation=generation,
            now_ms=now_ms,
            patience=patience,
        )
        for lease in leases
    )
    same = _is_valid(before, members, after)
    return Assignment(before.generation if same else generation, members, after)


def _of_lineage(leases: Iterable[ShardLease], lineage: Iterable[Link]) -> list[ShardLease]:
    """Return a lease for each shard that exists.

    The lease of an expired shard is removed, unless the group had not finished it: then it stays, without an
    owner, to record the loss.
    """
    by_shard = {lease.shard: lease for lease in leases}
    existing = {link.shard for link in lineage}
    lost = {
        shard for shard, lease in by_shard.items() if not lease.finished and shard not in existing
    }
    return [by_shard.get(shard, ShardLease(shard=shard)) for shard in sorted(existing | lost)]


def _is_acknowledged(
    lease: ShardLease, revocations_acknowledged: Collection[int], now_ms: int
) -> bool:
    """Return whether a lease has been released, or its revocation deadline has passed.

    Both apply only to a lease that is being revoked.
    """
    if lease.revoke_by_ms is None:
        return False
    return lease.shard in revocations_acknowledged or lease.revoke_by_ms <= now_ms


def _next_lease(
    lease: ShardLease,
    *,
    owner: MemberId | None,
    target: MemberId | None,
    generation: int,
    now_ms: int,
    patience: RevocationPolicy,
) -> ShardLease:
    if owner is None:
        if target is None:
            return replace(lease, owner=None, revoke_by_ms=None)
        return replace(lease, owner=target, generation=generation, revoke_by_ms=None)
    if owner == target:
        return replace(lease, revoke_by_ms=None)
    revoke_by_ms = lease.revoke_by_ms or now_ms + patience.revoke_ms
    return replace(lease, revoke_by_ms=revoke_by_ms)


def _is_valid(before: Assignment, members: Sequence[Member], leases: Sequence[ShardLease]) -> bool:
    """Return whether nothing visible to a member has changed.

    A new shard that has had no owner yet is not a change.
    """
    if [one.member_id for one in members] != [one.member_id for one in before.members]:
        return False
    return [lease for lease in leases if lease.owner] == [
        lease for lease in before.leases if lease.owner
    ]


def _by_name(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: member.member_id))
